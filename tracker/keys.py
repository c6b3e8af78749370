"""Every key and id, made in one place: Kafka keys, Redis keys, target, record and event ids.

Parts are percent-encoded (RFC 3986 section 2.1; all but its unreserved characters), so that a
separator never comes from a part, and joined by "/".
"""

import hashlib
from urllib.parse import quote, unquote_to_bytes

LIVE = "live"


class MalformedKey(ValueError):
    """A Kafka key that is not `<tenant>/<conversation>` in escaped parts."""


def escape(part: str) -> str:
    """Percent-encode all but RFC 3986's unreserved characters."""
    return quote(part, safe="")


def joined(*parts: str) -> str:
    """The escaped parts, joined by "/"; injective."""
    return "/".join(escape(part) for part in parts)


def digest(*parts: str, length: int) -> str:
    """The first `length` hex digits of SHA-256 over the joined parts."""
    return hashlib.sha256(joined(*parts).encode()).hexdigest()[:length]


def conversation_key(tenant: str, conversation: str) -> bytes:
    """The Kafka key of every record of a conversation: it decides the partition, and so the order."""
    return joined(tenant, conversation).encode()


def parse_conversation_key(key: bytes) -> tuple[str, str]:
    """(tenant, conversation) of a Kafka key. Raises MalformedKey."""
    parts = key.split(b"/")
    try:
        tenant, conversation = (unquote_to_bytes(part).decode() for part in parts)
    except ValueError as error:
        raise MalformedKey(f"a key is <tenant>/<conversation>, each part percent-encoded: {error}") from None
    if conversation_key(tenant, conversation) != key:
        raise MalformedKey("a key's parts are percent-encoded except letters, digits, '-', '.', '_' and '~'")
    return tenant, conversation


def holder_key(tenant: str, conversation: str, holder: str, target: str) -> bytes:
    """The Kafka key of one state in the compacted states topic."""
    return joined(tenant, conversation, holder, target).encode()


def record_id(op: str, turn: str, revision: int) -> str:
    """The id of a create, edit or delete that brings none."""
    return joined(op, turn, str(revision))


def found_id(record: str, change: str) -> str:
    """The id of the Cartographer's `target` record, prompted by that record, that declares or retires one."""
    return "found-" + digest(record, change, length=32)


def target_id(tenant: str, conversation: str, proposition: str) -> str:
    """`t-` and 12 hex digits of a hash of tenant, conversation and proposition."""
    return "t-" + digest(tenant, conversation, proposition, length=12)


def event_id(
    tenant: str,
    run: str,
    conversation: str,
    holder: str,
    target: str,
    turn: str,
    revision: int,
    kind: str,
    before: str,
    after: str,
    record: str,
) -> str:
    """32 hex digits, the same whenever the same record is applied again."""
    parts = (tenant, run, conversation, holder, target, turn, str(revision), kind, before, after, record)
    return digest(*parts, length=32)


def event_source(tenant: str, run: str, conversation: str) -> str:
    """The CloudEvents source of a conversation's events."""
    return "volteface/" + joined(tenant, run, conversation)


def redis_key(prefix: str, run: str, tenant: str, conversation: str, part: str) -> str:
    """A Redis key; its hash tag keeps a conversation's keys on one Cluster node."""
    return f"{prefix}:{escape(run)}:{{{joined(tenant, conversation)}}}:{part}"


def topic(prefix: str, run: str, name: str) -> str:
    """A topic's name: `volteface.turns` for live, `volteface.<run>.turns` for another run."""
    return f"{prefix}.{name}" if run == LIVE else f"{prefix}.{run}.{name}"
