"""Platforms' signatures: what they signed is taken, and nothing else is."""

import datetime as dt
import hashlib
import hmac
from collections.abc import Callable, Mapping

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from stream.platforms.signatures import BadKey, BadSignature, discord, discord_key, slack, twitch
from tracker.records import Reason, Refused

NOW = dt.datetime(2026, 10, 1, 8, 0, tzinfo=dt.UTC)
BODY = '{"text": "+1 the bridge é"}'.encode()
SECRET = "a secret of the tests"
PRIVATE = Ed25519PrivateKey.from_private_bytes(b"a key that only the tests know of"[:32])
PUBLIC = PRIVATE.public_key()

Headers = dict[str, str]
Check = Callable[[Mapping[str, str], bytes], None]


def slack_headers(body: bytes = BODY, at: dt.datetime = NOW, secret: str = SECRET) -> Headers:
    stamp = str(int(at.timestamp()))
    signature = hmac.new(secret.encode(), f"v0:{stamp}:".encode() + body, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={signature}"}


def twitch_headers(body: bytes = BODY, at: dt.datetime = NOW, secret: str = SECRET) -> Headers:
    stamp = at.strftime("%Y-%m-%dT%H:%M:%S.123456789Z")
    signature = hmac.new(secret.encode(), f"m1{stamp}".encode() + body, hashlib.sha256).hexdigest()
    name = "Twitch-Eventsub-Message-"
    return {f"{name}Id": "m1", f"{name}Timestamp": stamp, f"{name}Signature": f"sha256={signature}"}


def discord_headers(body: bytes = BODY) -> Headers:
    signature = PRIVATE.sign(b"1790841600" + body).hex()
    return {"X-Signature-Timestamp": "1790841600", "X-Signature-Ed25519": signature}


CHECKS: dict[str, tuple[Headers, Check]] = {
    "slack": (slack_headers(), lambda headers, body: slack(SECRET, headers, body, NOW)),
    "twitch": (twitch_headers(), lambda headers, body: twitch(SECRET, headers, body, NOW)),
    "discord": (discord_headers(), lambda headers, body: discord(PUBLIC, headers, body)),
}
HEADERS = [(platform, name) for platform, (headers, _) in CHECKS.items() for name in headers]


def test_the_example_of_slacks_documentation() -> None:
    body = (
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
        b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
        b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554"
        b"%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
    )
    headers = {
        "X-Slack-Request-Timestamp": "1531420618",
        "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    }
    slack("8f742231b10e8888abcd99yyyzzz85a5", headers, body, dt.datetime.fromtimestamp(1531420618, dt.UTC))


@pytest.mark.parametrize("platform", CHECKS)
def test_what_is_signed_is_taken(platform: str) -> None:
    headers, check = CHECKS[platform]
    check(headers, BODY)
    check({name.lower(): value for name, value in headers.items()}, BODY)


@pytest.mark.parametrize("platform", CHECKS)
def test_another_body_is_refused(platform: str) -> None:
    headers, check = CHECKS[platform]
    for body in (BODY + b" ", b"", BODY.replace(b"+1", b"-1")):
        with pytest.raises(BadSignature, match="signature of something else"):
            check(headers, body)


@pytest.mark.parametrize(("platform", "name"), HEADERS)
def test_a_header_that_is_missing_or_empty_is_named(platform: str, name: str) -> None:
    headers, check = CHECKS[platform]
    for left in ({key: value for key, value in headers.items() if key != name}, headers | {name: ""}):
        with pytest.raises(BadSignature) as raised:
            check(left, BODY)
        assert (raised.value.reason, raised.value.field) == (Reason.MISSING_FIELD, name)


@pytest.mark.parametrize(("platform", "name"), HEADERS)
@pytest.mark.parametrize(
    "value", ["x", "é", "\udcff", "v0=", "sha256=", "00", "9" * 400, " ", "2026-10-01T08:00:00"]
)
def test_a_header_that_is_wrong_is_named(platform: str, name: str, value: str) -> None:
    headers, check = CHECKS[platform]
    with pytest.raises(BadSignature) as raised:
        check(headers | {name: value}, BODY)
    assert raised.value.reason == Reason.INVALID_VALUE
    assert raised.value.field in (name, *(other for other in headers if "Signature" in other))


@pytest.mark.parametrize(
    ("minutes", "make", "check", "is_taken"),
    [
        (4.9, slack_headers, slack, True),
        (-4.9, slack_headers, slack, True),
        (5.1, slack_headers, slack, False),
        (-5.1, slack_headers, slack, False),
        (9.9, twitch_headers, twitch, True),
        (10.1, twitch_headers, twitch, False),
        (-10.1, twitch_headers, twitch, False),
    ],
)
def test_what_is_too_old_or_of_the_future_is_refused(
    minutes: float, make: Callable[..., Headers], check: Callable[..., None], is_taken: bool
) -> None:
    headers = make(at=NOW - dt.timedelta(minutes=minutes))
    if is_taken:
        check(SECRET, headers, BODY, NOW)
        return
    with pytest.raises(BadSignature, match="s from now") as raised:
        check(SECRET, headers, BODY, NOW)
    assert raised.value.field.endswith("Timestamp")


def test_another_secret_is_refused() -> None:
    with pytest.raises(BadSignature, match="the app's signing secret"):
        slack("another", slack_headers(), BODY, NOW)
    with pytest.raises(BadSignature, match="the subscription's secret"):
        twitch("another", twitch_headers(), BODY, NOW)
    other = Ed25519PrivateKey.generate().public_key()
    with pytest.raises(BadSignature, match="the application's public key"):
        discord(other, discord_headers(), BODY)


def test_an_empty_secret_signs_nothing() -> None:
    with pytest.raises(BadKey, match="empty secret"):
        slack("", slack_headers(secret=""), BODY, NOW)
    with pytest.raises(BadKey, match="empty secret"):
        twitch("", twitch_headers(secret=""), BODY, NOW)


def test_discords_public_key_is_hex() -> None:
    assert discord_key(PUBLIC.public_bytes_raw().hex()) == PUBLIC
    for key in ("", "secret", "00", "é", "0" * 66):
        with pytest.raises(BadKey, match="32 bytes in hex"):
            discord_key(key)


def test_it_is_answered_as_any_refusal_is() -> None:
    assert issubclass(BadSignature, Refused)


@given(
    st.dictionaries(st.sampled_from([name for _, name in HEADERS]), st.text(max_size=30)),
    st.binary(max_size=30),
)
def test_nothing_unsigned_is_taken(headers: Headers, body: bytes) -> None:
    for _, check in CHECKS.values():
        with pytest.raises(BadSignature):
            check(headers, body)
