"""Cursors: where the next page begins, as a word that clients hand back as they got it."""

import base64
import binascii
from typing import TypeVar

import msgspec

from stream.gateway.problems import Kind, Problem

T = TypeVar("T")


def cursor(key: object) -> str:
    """A key as a cursor."""
    return base64.urlsafe_b64encode(msgspec.json.encode(key)).decode().rstrip("=")


def key_of(given: str | None, decoder: msgspec.json.Decoder[T]) -> T | None:
    """The key in a cursor, if one was given. Raises Problem."""
    if given is None:
        return None
    try:
        raw = base64.b64decode(given + "=" * (-len(given) % 4), altchars=b"-_", validate=True)
        return decoder.decode(raw)
    except (binascii.Error, msgspec.DecodeError, ValueError):
        remedy = "hand back `next` of the page before, or leave cursor out"
        raise Problem(Kind.INVALID, "this is no cursor", field="query.cursor", remedy=remedy) from None
