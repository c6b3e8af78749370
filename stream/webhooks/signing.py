"""Signatures of Standard Webhooks 1.0.0: `v1,` and the base64 of an HMAC-SHA256 over `id.timestamp.body`.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence

PREFIX = "whsec_"
LEAST_BYTES, MOST_BYTES = 24, 64
NEW_BYTES = 32


class BadSecret(ValueError):
    """A secret that is none; its message never repeats it."""


def new_secret() -> str:
    """A secret that nobody has."""
    return PREFIX + base64.b64encode(secrets.token_bytes(NEW_BYTES)).decode()


def key_of(secret: str) -> bytes:
    """The bytes that a secret stands for. Raises BadSecret."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith(PREFIX) or not LEAST_BYTES <= len(key) <= MOST_BYTES:
        raise BadSecret(f"a secret is {PREFIX} and the base64 of {LEAST_BYTES} to {MOST_BYTES} bytes")
    return key


def headers(secrets: Sequence[str], ident: str, timestamp: int, body: bytes) -> Mapping[str, str]:
    """The headers of one attempt; while secrets are being changed, a signature by each of them.

    `ident` stays the same over all attempts; `timestamp` is the attempt's own, in seconds since 1970.
    Raises BadSecret.
    """
    signed = b"%s.%d.%s" % (ident.encode(), timestamp, body)
    signatures = (hmac.digest(key_of(secret), signed, hashlib.sha256) for secret in secrets)
    return {
        "content-type": "application/json",
        "webhook-id": ident,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{base64.b64encode(each).decode()}" for each in signatures),
    }
