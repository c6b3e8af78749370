"""Whether a platform sent a request: its signature over the body's bytes, as they came.

A request that is refused is answered with 401 and not looked at further. Names of headers are compared
without case; `now` has a zone.
"""

import datetime as dt
import hashlib
import hmac
import re
from collections.abc import Mapping

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from stream.platforms.times import since_epoch
from tracker.parsing import RFC_3339
from tracker.records import Reason, Refused

SLACK_TOLERANCE = dt.timedelta(minutes=5)  # as Slack's own libraries have it
TWITCH_TOLERANCE = dt.timedelta(minutes=10)  # as Twitch's documentation asks

_SECOND = dt.timedelta(seconds=1)
_DIGITS = re.compile("[0-9]{1,11}")
_TWITCH = "Twitch-Eventsub-Message-"
_KEY_BYTES = 32


class BadSignature(Refused):
    """A request that the platform did not send, or that is too old to be believed."""


class BadKey(ValueError):
    """A secret or a public key that is none; its message never repeats it."""


def slack(secret: str, headers: Mapping[str, str], body: bytes, now: dt.datetime) -> None:
    """Slack's `v0`: HMAC-SHA256 by the app's signing secret. Raises BadSignature and BadKey.

    https://docs.slack.dev/authentication/verifying-requests-from-slack
    """
    stamp = _header(headers, "X-Slack-Request-Timestamp")
    given = _header(headers, "X-Slack-Signature")
    _near(now, _seconds("X-Slack-Request-Timestamp", stamp), SLACK_TOLERANCE, "X-Slack-Request-Timestamp")
    signed = b"v0:%b:%b" % (stamp.encode(), body)
    _equal("X-Slack-Signature", given, f"v0={_hmac(secret, signed)}", "the app's signing secret")


def twitch(secret: str, headers: Mapping[str, str], body: bytes, now: dt.datetime) -> None:
    """EventSub's HMAC-SHA256 by the subscription's secret. Raises BadSignature and BadKey.

    https://dev.twitch.tv/docs/eventsub/handling-webhook-events#verifying-the-event-message
    """
    ident, stamp, given = (_header(headers, _TWITCH + each) for each in ("Id", "Timestamp", "Signature"))
    _near(now, _rfc_3339(f"{_TWITCH}Timestamp", stamp), TWITCH_TOLERANCE, f"{_TWITCH}Timestamp")
    signed = b"%b%b%b" % (ident.encode(errors="replace"), stamp.encode(errors="replace"), body)
    _equal(f"{_TWITCH}Signature", given, f"sha256={_hmac(secret, signed)}", "the subscription's secret")


def discord_key(public_key: str) -> Ed25519PublicKey:
    """The application's public key, in hex as its General Information page shows it. Raises BadKey."""
    try:
        return Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
    except ValueError:
        raise BadKey(f"a public key of Discord's is {_KEY_BYTES} bytes in hex") from None


def discord(key: Ed25519PublicKey, headers: Mapping[str, str], body: bytes) -> None:
    """Discord's Ed25519, of interactions and webhook events. Raises BadSignature.

    https://docs.discord.com/developers/interactions/overview. Discord defines no age beyond which a request
    is too old; one that is sent again gives the same records.
    """
    stamp = _header(headers, "X-Signature-Timestamp")
    given = _header(headers, "X-Signature-Ed25519")
    try:
        key.verify(bytes.fromhex(given), stamp.encode(errors="replace") + body)
    except (InvalidSignature, ValueError):
        raise _not_signed("X-Signature-Ed25519", "the application's public key") from None


def _header(headers: Mapping[str, str], name: str) -> str:
    found = next((value for key, value in headers.items() if key.lower() == name.lower()), "")
    if not found:
        remedy = "take no request without it; a proxy before must hand it on"
        raise BadSignature(Reason.MISSING_FIELD, name, "missing or empty", remedy)
    return found


def _hmac(secret: str, signed: bytes) -> str:
    if not secret:
        raise BadKey("an empty secret signs everything: set the platform's own")
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def _equal(name: str, given: str, expected: str, by: str) -> None:
    """In constant time, whatever was given."""
    if not hmac.compare_digest(given.encode(errors="replace"), expected.encode()):
        raise _not_signed(name, by)


def _not_signed(name: str, by: str) -> BadSignature:
    remedy = f"check {by}, and that the body's bytes are those that came"
    return BadSignature(Reason.INVALID_VALUE, name, "signature of something else", remedy)


def _seconds(name: str, stamp: str) -> dt.datetime:
    if _DIGITS.fullmatch(stamp) is None:
        raise BadSignature(Reason.INVALID_VALUE, name, "no number of seconds", "send seconds since 1970")
    return since_epoch(name, int(stamp), _SECOND)


def _rfc_3339(name: str, stamp: str) -> dt.datetime:
    try:
        time = dt.datetime.fromisoformat(stamp)
    except ValueError:
        time = dt.datetime.min
    if time.tzinfo is None:
        raise BadSignature(Reason.INVALID_VALUE, name, "no RFC 3339 time with zone", RFC_3339)
    return time


def _near(now: dt.datetime, stamp: dt.datetime, tolerance: dt.timedelta, name: str) -> None:
    apart = abs(now - stamp)
    if apart > tolerance:
        got = f"time {int(apart.total_seconds())} s from now"
        remedy = f"at most {int(tolerance.total_seconds())} s: set this machine's clock, or send it anew"
        raise BadSignature(Reason.INVALID_VALUE, name, got, remedy)
