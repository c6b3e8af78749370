"""API keys: how one is made, told apart and recognised.

A key is `vf_<id>_<secret>`. Its id (64 bits) is no secret and finds the row; its secret has 256 bits from the
system's generator. What is kept is SHA-256 of the whole key, plain: slow and salted hashes are for passwords,
which people choose and others guess. Nobody guesses 256 random bits however fast the hash is, two keys never
are the same, and a slow hash would only be paid at every request.
"""

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

_FORM = re.compile(r"vf_(?P<id>[0-9a-f]{16})_[A-Za-z0-9_-]{43}")


class Made(NamedTuple):
    """A new key: `text` is shown once and never kept."""

    id: str
    text: str
    digest: str


def made() -> Made:
    """A new key."""
    ident = secrets.token_hex(8)
    text = f"vf_{ident}_{secrets.token_urlsafe(32)}"
    return Made(ident, text, digest(text))


def id_of(text: str) -> str | None:
    """The id in a key; None for what has not a key's form."""
    found = _FORM.fullmatch(text)
    return found["id"] if found else None


def digest(text: str) -> str:
    """What is kept of a key."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def matches(text: str, kept: str) -> bool:
    """Whether a key has that digest, in a time that does not tell how much of it is right."""
    return hmac.compare_digest(digest(text), kept)
