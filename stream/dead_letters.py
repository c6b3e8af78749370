"""Dead letters: a refused record as it came, with headers that say where it stood and how to mend it.

Headers follow Kafka Connect's names; what the record itself brought under a name is never overwritten.
"""

from collections.abc import Sequence

from stream.store.port import Message
from tracker.records import Refused

TOPIC = "dead-letters"
MAX_HEADER_BYTES = 1024
MAX_ORIGINAL_HEADERS_BYTES = 16 * 1024
HEADER_OVERHEAD_BYTES = 16  # above the lengths that the format writes, so that empty headers count, too
MAX_VALUE_BYTES = 512 * 1024
MAX_KEY_BYTES = 4 * 1024
PLACE = ("__connect.errors.topic", "__connect.errors.partition", "__connect.errors.offset")
LETTER = "volteface.letter"  # where the letter's record stood, in one; its last value counts

Headers = Sequence[tuple[str, bytes]]


def dead_letter(
    key: bytes | None,
    value: bytes | None,
    headers: Headers,
    source: str,
    refused: Refused,
    *,
    bare: bool = False,
) -> tuple[Message, Headers]:
    """The message and headers of a refused record. `source` is `<topic>/<partition>/<offset>`.

    A bare one has neither what the record said nor its headers: they stay where they stand.
    """
    if bare:
        value, headers = None, ()
    kept = _kept(headers)
    names = {name for name, _ in kept}
    added = [
        (name, _cut(text))
        for name, text in _described(key, value, source, refused).items()
        if name not in names
    ]
    if names & {*PLACE, LETTER}:  # it came with another letter's place, and must not be taken for that letter
        added.append((LETTER, source.encode()))
    message = Message(
        TOPIC,
        key if key is None else key[:MAX_KEY_BYTES],
        value if value is None else value[:MAX_VALUE_BYTES],
    )
    return message, [*kept, *added]


def _described(key: bytes | None, value: bytes | None, source: str, refused: Refused) -> dict[str, str]:
    described = {
        **dict(zip(PLACE, source.rsplit("/", 2), strict=True)),
        "__connect.errors.connector.name": "volteface",
        "__connect.errors.stage": "VALUE_CONVERTER",
        "__connect.errors.class.name": "tracker.parsing",
        "__connect.errors.exception.class.name": "tracker.records.Refused",
        "__connect.errors.exception.message": str(refused),
        "volteface.reason": refused.reason.value,
        "volteface.field": refused.field,
        "volteface.got": refused.got,
        "volteface.remedy": refused.remedy,
    }
    if len(value or b"") > MAX_VALUE_BYTES:
        described["volteface.cut.value"] = str(len(value or b""))
    if len(key or b"") > MAX_KEY_BYTES:
        described["volteface.cut.key"] = str(len(key or b""))
    return described


def _kept(headers: Headers) -> list[tuple[str, bytes]]:
    """The record's own headers, as far as they fit."""
    kept, size = [], 0
    for name, value in headers:
        size += HEADER_OVERHEAD_BYTES + len(name.encode()) + len(value or b"")
        if size > MAX_ORIGINAL_HEADERS_BYTES:
            break
        kept.append((name, value or b""))
    return kept


def _cut(text: str) -> bytes:
    """At most MAX_HEADER_BYTES of UTF-8, cut between characters."""
    return text.encode(errors="replace")[:MAX_HEADER_BYTES].decode(errors="ignore").encode()
