"""Pseudonyms of holders, where topics hold no names: HMAC-SHA256 (RFC 2104) under the tenant's key.

Whoever makes records has the key, and nobody behind the turns topic needs it. A holder has one pseudonym in
all of a tenant's conversations; without the key none can be told from a name, or be made for one.
"""

import hashlib
import hmac
import re

import msgspec

from tracker import keys
from tracker.records import ClearTurns, CreateTurn, EraseHolder, OverrideStance, Reason, Record, Refused

LEAST_KEY_BYTES = 32
DIGITS = 32  # hex: 128 bits
_PREFIX = "p-"
_FORM = re.compile(rf"{_PREFIX}[0-9a-f]{{{DIGITS}}}")
_Named = CreateTurn | ClearTurns | OverrideStance | EraseHolder


def pseudonym(key: bytes, tenant: str, holder: str) -> str:
    """A holder's pseudonym. Raises ValueError for a key that is too short."""
    if len(key) < LEAST_KEY_BYTES:
        raise ValueError(f"a key has at least {LEAST_KEY_BYTES} bytes")
    return _PREFIX + hmac.new(key, keys.joined(tenant, holder).encode(), hashlib.sha256).hexdigest()[:DIGITS]


def is_pseudonym(holder: str) -> bool:
    """Whether a holder has a pseudonym's form."""
    return _FORM.fullmatch(holder) is not None


def concealed(key: bytes, record: Record) -> Record:
    """The record with its holder's pseudonym and without a display name; one that has it stays.

    What the text itself says is not looked at.
    """
    if not isinstance(record, _Named) or record.holder is None:
        return record
    changes: dict[str, str | None] = {}
    if not is_pseudonym(record.holder):
        changes["holder"] = pseudonym(key, record.tenant, record.holder)
    if isinstance(record, CreateTurn):
        changes["display_name"] = None
    return msgspec.structs.replace(record, **changes)


def check(record: Record) -> None:
    """Raises Refused for a record that names a person in clear."""
    if not isinstance(record, _Named):
        return
    if record.holder is not None and not is_pseudonym(record.holder):
        remedy = (
            "send the holder's pseudonym, `volteface conceal` makes it: this tenant's topics hold no names"
        )
        raise Refused(Reason.IN_CLEAR, "holder", "a name in clear", remedy)
    if isinstance(record, CreateTurn) and record.display_name is not None:
        raise Refused(Reason.IN_CLEAR, "display_name", "a name in clear", "leave display_name out")
