"""The events: CloudEvents 1.0 in structured JSON, with deterministic ids and a gapless sequence."""

import datetime as dt
import enum
from typing import Literal

import msgspec

from tracker import keys
from tracker.observations import Critic, Evidence, Mark, Model, Trigger
from tracker.stances import Emotion, Sentiment, Stance, TransitionKind

CONTENT_TYPE = "application/cloudevents+json"
SEQUENCE_DIGITS = 20


class EventType(enum.StrEnum):
    """The CloudEvents types."""

    ESTABLISHED = "volteface.stance.established"
    PERSISTED = "volteface.stance.persisted"
    FLIPPED = "volteface.stance.flipped"
    RETRACTED = "volteface.stance.retracted"  # an event that no longer holds
    OVERRIDDEN = "volteface.stance.overridden"  # a person's word pins a state
    RESTORED = "volteface.stance.restored"  # a pin ended: from it to the fold beneath
    FORGOTTEN = "volteface.stance.forgotten"  # an erased holder's state


OF_TRANSITION = {
    TransitionKind.ESTABLISHMENT: EventType.ESTABLISHED,
    TransitionKind.PERSISTENCE: EventType.PERSISTED,
    TransitionKind.FLIP: EventType.FLIPPED,
}


class TargetRef(msgspec.Struct, frozen=True):
    """A target as events name it."""

    id: str
    proposition: str


class Position(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"before": "from", "after": "to"}
):
    """What a turn did to a holder's stance: the sextuple; on a flip with trigger, the heptatuple.

    `confidence` is the probability of the expressed position that made the transition; on a persisted
    event that of the state's own position. A retraction repeats what it takes back (`retracts` is the
    event's id) and names the record that did (`cause`). `by` and `reason` stand where a person's word
    decided: on a state, which is no turn's, or on a turn.
    """

    tenant: str
    run: str
    conversation: str
    turn: str | msgspec.UnsetType = msgspec.UNSET
    revision: int
    holder: str
    target: TargetRef
    before: Stance
    after: Stance
    emotion: Emotion | msgspec.UnsetType = msgspec.UNSET
    sentiment: Sentiment | msgspec.UnsetType = msgspec.UNSET
    confidence: float | msgspec.UnsetType = msgspec.UNSET
    trigger: Trigger | msgspec.UnsetType = msgspec.UNSET
    rationale: str | msgspec.UnsetType = msgspec.UNSET
    evidence: tuple[Evidence, ...] | msgspec.UnsetType = msgspec.UNSET
    critic: Critic | msgspec.UnsetType = msgspec.UNSET
    model: Model | msgspec.UnsetType = msgspec.UNSET
    by: str | msgspec.UnsetType = msgspec.UNSET
    reason: str | msgspec.UnsetType = msgspec.UNSET
    expires_at: dt.datetime | msgspec.UnsetType = msgspec.UNSET
    retracts: str | msgspec.UnsetType = msgspec.UNSET
    cause: str | msgspec.UnsetType = msgspec.UNSET
    policy: str
    marks: tuple[Mark, ...]


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A CloudEvent. `sequence` is gapless over a conversation's events but persisted ones, which repeat
    the last number; `previous`, on flips and on retractions of flips, is that of the last event before it
    in the flips topic, which holds these.
    """

    specversion: Literal["1.0"]
    id: str
    source: str
    type: EventType
    sequence: str
    previous: str | msgspec.UnsetType = msgspec.UNSET
    subject: str
    time: dt.datetime
    datacontenttype: Literal["application/json"]
    dataschema: Literal["urn:volteface:stance:1"]
    data: Position


def make(
    data: Position,
    *,
    kind: EventType,
    time: dt.datetime,
    sequence: int,
    previous: int | None,
    record: str,
) -> Event:
    """The event of a position; `record` is the id of the record being applied.

    `previous`: of the last event in the flips topic, where this one goes there, too.
    """
    # Where no turn moved the state, what it is about keeps apart two events of one record.
    turn = data.turn or data.retracts or ""
    ident = keys.event_id(
        data.tenant, data.run, data.conversation, data.holder, data.target.id, turn, data.revision,
        kind, data.before, data.after, record,
    )  # fmt: skip
    return Event(
        specversion="1.0",
        id=ident,
        source=keys.event_source(data.tenant, data.run, data.conversation),
        type=kind,
        sequence=numbered(sequence),
        previous=msgspec.UNSET if previous is None else numbered(previous),
        subject=keys.joined(data.holder, data.target.id),
        time=time,
        datacontenttype="application/json",
        dataschema="urn:volteface:stance:1",
        data=data,
    )


def numbered(sequence: int) -> str:
    """A sequence number that sorts as a string (CloudEvents sequence extension)."""
    return f"{sequence:0{SEQUENCE_DIGITS}d}"


def encode(event: Event) -> bytes:
    """The event in CloudEvents structured JSON."""
    return msgspec.json.encode(event)


def schema() -> dict[str, object]:
    """The JSON Schema of every event."""
    return msgspec.json.schema(Event)
