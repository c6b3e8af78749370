"""What stands in the turns topic: a turn, or another operation on a conversation.

`op` is decoded first (absent: create), the member of the union second, each with its own required
fields. What cannot be a record is `Refused` with a reason, the field, the kind of its value and the remedy.
"""

import datetime as dt
import enum
from typing import Annotated, Literal

import msgspec

from tracker import keys
from tracker.stances import Stance

MAX_TEXT_BYTES = 16 * 1024
MAX_NAME_BYTES = 512  # ids, holders, names: they travel in keys and headers
MAX_PROPOSITION_BYTES = 1024
MAX_DESCRIPTION_BYTES = 4 * 1024
MAX_MEDIA = 8
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

Time = Annotated[dt.datetime, msgspec.Meta(tz=True)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
Revision = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]


class Reason(enum.StrEnum):
    """Why a record is refused; the dead letter's stable word."""

    NULL = "null"
    NOT_UTF8 = "not_utf8"
    NOT_JSON = "not_json"
    LONE_SURROGATE = "lone_surrogate"
    NOT_AN_OBJECT = "not_an_object"
    UNKNOWN_OP = "unknown_op"
    MISSING_FIELD = "missing_field"
    WRONG_TYPE = "wrong_type"
    INVALID_VALUE = "invalid_value"
    NAIVE_TIME = "naive_time"
    TOO_LONG = "too_long"
    EMPTY_TEXT = "empty_text"
    WRONG_KEY = "wrong_key"
    REPEATED_TURN = "repeated_turn"
    TOO_MANY_TARGETS = "too_many_targets"
    TOO_MANY_PINS = "too_many_pins"
    UNKNOWN_TARGET = "unknown_target"
    IN_CLEAR = "in_clear"  # a name, where the tenant's topics hold pseudonyms alone
    TOO_LATE = "too_late"
    FAILED = "failed"  # failed N times while others succeeded


class Refused(ValueError):
    """A record that is not taken, with all that is needed to mend it."""

    def __init__(self, reason: Reason, field: str, got: str, remedy: str) -> None:
        self.reason, self.field, self.got, self.remedy = reason, field, got, remedy
        super().__init__(f"{reason}: {field}: {got}; {remedy}")


class Modality(enum.StrEnum):
    """The kinds of media of StanceFlip section 3.1; stickers are memes."""

    IMAGE = "image"
    MEME = "meme"
    AUDIO = "audio"
    VIDEO = "video"


class HolderKind(enum.StrEnum):
    """Who speaks; a policy may exempt kinds."""

    USER = "user"
    BOT = "bot"
    MODERATOR = "moderator"
    SYSTEM = "system"


class TargetStatus(enum.StrEnum):
    """Whether a target is read."""

    ACTIVE = "active"
    RETIRED = "retired"


class Media(msgspec.Struct, frozen=True, omit_defaults=True):
    """A media item of a turn."""

    modality: Modality
    uri: str | None = None
    mime: str | None = None
    description: str | None = None


class _Base(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="op"):
    conversation: Name
    sent_at: Time
    tenant: Name = "default"


class CreateTurn(_Base, frozen=True, kw_only=True, omit_defaults=True, tag="create"):
    """A turn: the native JSONL line."""

    turn: Name
    holder: Name
    text: str
    id: Name | None = None
    revision: Revision = 0
    reply_to: Name | None = None
    holder_kind: HolderKind = HolderKind.USER
    display_name: str | None = None
    language: str | None = None
    media: Annotated[tuple[Media, ...], msgspec.Meta(max_length=MAX_MEDIA)] = ()


class EditTurn(_Base, frozen=True, kw_only=True, omit_defaults=True, tag="edit"):
    """A turn's new text; its revision defaults to sent_at in milliseconds."""

    turn: Name
    text: str
    id: Name | None = None
    revision: Revision | None = None


class DeleteTurn(_Base, frozen=True, kw_only=True, omit_defaults=True, tag="delete"):
    """A turn taken back."""

    turn: Name
    id: Name | None = None
    revision: Revision = 0


class ClearTurns(_Base, frozen=True, kw_only=True, omit_defaults=True, tag="clear"):
    """All turns of a conversation taken back, or one holder's."""

    id: Name
    holder: Name | None = None


class DeclareTarget(_Base, frozen=True, kw_only=True, omit_defaults=True, tag="target"):
    """A debate proposition to be tracked, renamed or retired; `replaces` carries states over."""

    id: Name
    proposition: Name
    status: TargetStatus = TargetStatus.ACTIVE
    replaces: Name | None = None


class OverrideStance(_Base, frozen=True, kw_only=True, tag="override"):
    """A person's word: on one turn, or on a holder's state (`to: null` lifts it)."""

    id: Name
    by: Name
    reason: str
    to: Stance | None
    turn: Name | None = None
    holder: Name | None = None
    target: Name | None = None
    expires_at: Time | None = None


class EraseHolder(_Base, frozen=True, kw_only=True, omit_defaults=True, tag="erase"):
    """A person to be forgotten; every rebuild obeys it."""

    id: Name
    holder: Name


Record = CreateTurn | EditTurn | DeleteTurn | ClearTurns | DeclareTarget | OverrideStance | EraseHolder
Op = Literal["create", "edit", "delete", "clear", "target", "override", "erase"]


def op_of(record: Record) -> str:
    """The record's operation, as written."""
    return str(record.__struct_config__.tag)


def record_id(record: Record) -> str:
    """The id that the applied set, `cause` and event ids use."""
    if record.id is not None:
        return record.id
    assert isinstance(record, CreateTurn | EditTurn | DeleteTurn)
    return keys.record_id(op_of(record), record.turn, revision_of(record))


def revision_of(record: Record) -> int:
    """A turn operation's revision; 0 for the others."""
    if isinstance(record, EditTurn) and record.revision is None:
        # In whole numbers: a float of seconds loses the last millisecond. No revision is below 0.
        return max(0, (record.sent_at - EPOCH) // dt.timedelta(milliseconds=1))
    return getattr(record, "revision", 0) or 0


def encode(record: Record) -> bytes:
    """The record as JSON, as it stands in the turns topic."""
    return msgspec.json.encode(record)


# Bytes by field; msgspec's max_length counts characters.
_LIMITS = {
    "text": MAX_TEXT_BYTES,
    "reason": MAX_DESCRIPTION_BYTES,
    "proposition": MAX_PROPOSITION_BYTES,
    "description": MAX_DESCRIPTION_BYTES,
    "uri": MAX_DESCRIPTION_BYTES,
}


def _check_limits(struct: msgspec.Struct, path: str = "") -> None:
    for field in struct.__struct_fields__:
        value = getattr(struct, field)
        if type(value) is str:
            _check_text(f"{path}{field}", value, _LIMITS.get(field, MAX_NAME_BYTES))


def _check_text(field: str, value: str, limit: int) -> None:
    if len(value) * 4 <= limit:  # no encoding needed: UTF-8 takes at most four bytes a character
        return
    if (size := len(value.encode())) > limit:
        raise Refused(Reason.TOO_LONG, field, f"string of {size} bytes", f"at most {limit} bytes of UTF-8")


def check(record: Record) -> Record:
    """The record with its times in UTC. Raises Refused where a limit or a rule between fields is broken."""
    _check_limits(record)
    if isinstance(record, CreateTurn):
        for index, media in enumerate(record.media):
            _check_limits(media, f"media[{index}].")
        if not record.media and not record.text.strip():
            raise Refused(Reason.EMPTY_TEXT, "text", "empty string", 'text is "" only beside media')
    if isinstance(record, OverrideStance):
        _check_override(record)
    return _in_utc(record)


def _check_override(record: OverrideStance) -> None:
    by_state = record.holder is not None and record.target is not None
    if (record.turn is None) is not by_state or (record.holder is None) is not (record.target is None):
        raise Refused(
            Reason.INVALID_VALUE,
            "turn",
            "override of nothing, of half a state or of two things",
            "give turn alone, or holder and target",
        )
    if record.turn is not None and record.expires_at is not None:
        remedy = "lift it by another with to null, or override holder and target"
        raise Refused(Reason.INVALID_VALUE, "expires_at", "a time for a word on one turn", remedy)


def _in_utc(record: Record) -> Record:
    """Two records of the same moment are equal and encode alike."""
    fields = {"sent_at": record.sent_at}
    if isinstance(record, OverrideStance) and record.expires_at is not None:
        fields["expires_at"] = record.expires_at
    changed = {name: _utc(name, time) for name, time in fields.items() if time.tzinfo is not dt.UTC}
    return msgspec.structs.replace(record, **changed) if changed else record


def _utc(field: str, time: dt.datetime) -> dt.datetime:
    try:
        return time.astimezone(dt.UTC)
    except OverflowError:
        raise Refused(
            Reason.INVALID_VALUE, field, "time outside the years 1 to 9999 in UTC", "send the real time"
        ) from None
