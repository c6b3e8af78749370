"""What is asked and answered as JSON, beside the records, events and problems that are defined elsewhere."""

import datetime as dt
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from stream.views.port import LONGEST_PAGE, PAGE
from tracker.records import MAX_NAME_BYTES, MAX_PROPOSITION_BYTES, TargetStatus
from tracker.stances import Stance

Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_BYTES)]
Limit = Annotated[int, Field(ge=1, le=LONGEST_PAGE, description=f"Rows of a page; {PAGE} unless told.")]
Position = Annotated[int, Field(ge=0, le=2**53 - 1)]
Ident = Annotated[
    Name | None, Field(description="The record's id, for idempotency; a UUID is made where it is left out.")
]


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NewTarget(_Asked):
    """A debate proposition to be tracked; with `replaces` it takes over that target's states (a rename)."""

    conversation: Name
    proposition: Annotated[str, Field(min_length=1, max_length=MAX_PROPOSITION_BYTES)]
    replaces: Name | None = None
    id: Ident = None


class Override(_Asked):
    """A person's word: on one turn, or on a holder's state towards a target. `to: null` lifts it."""

    conversation: Name
    reason: Annotated[str, Field(max_length=4096)]
    to: Stance | None
    turn: Name | None = None
    holder: Name | None = None
    target: Name | None = None
    expires_at: AwareDatetime | None = None
    id: Ident = None


class Erasure(_Asked):
    """A holder to be forgotten in one conversation."""

    conversation: Name
    holder: Name
    id: Ident = None


class Accepted(BaseModel):
    """The record stands in the conversation's log; what it does is told by events."""

    status: Literal["accepted"] = "accepted"
    id: str
    conversation: str
    target: str | None = None


class RecordAnswer(BaseModel):
    """What became of one record; `problem` is a problem document."""

    index: int
    status: Literal["accepted", "refused"]
    id: str | None = None
    conversation: str | None = None
    problem: dict[str, Any] | None = Field(None, json_schema_extra={"description": "As schema Problem."})


class TurnsAnswer(BaseModel):
    """What became of each record, in order."""

    accepted: int
    refused: int
    records: list[RecordAnswer]


class EventRow(BaseModel):
    """An event at its position; `retracted_by` is the id of the event that took it back since."""

    position: int
    retracted_by: str | None
    event: dict[str, Any] = Field(description="As schema CloudEvent.")


class EventPage(BaseModel):
    """Events; `next` is the `after` (or `before`, newest first) of the next page, null where none is."""

    events: list[EventRow]
    next: int | None


class ConversationSummary(BaseModel):
    """A conversation: when it was last active, and how many events and flips of it stand."""

    conversation: str
    active_at: dt.datetime
    events: int
    flips: int


class ConversationPage(BaseModel):
    """Conversations, the latest active first; `next` is the `cursor` of the next page."""

    conversations: list[ConversationSummary]
    next: str | None


class TargetSummary(BaseModel):
    """A target, and how many holders have which stance."""

    target: str
    proposition: str
    status: TargetStatus
    holders: dict[Stance, int]


class ConversationDetail(ConversationSummary):
    """A conversation with its targets."""

    targets: list[TargetSummary]


class TargetList(BaseModel):
    """The targets of a conversation."""

    conversation: str
    targets: list[TargetSummary]


class HolderStance(BaseModel):
    """A holder's stance toward a target: the fold's, and the one that a person's word pins over it."""

    conversation: str
    holder: str
    target: str
    stance: Stance
    turn: str | None
    confidence: float | None
    flips: int
    pinned: Stance | None


class HolderPage(BaseModel):
    """Stances by conversation, holder and target; `next` is the `cursor` of the next page."""

    holders: list[HolderStance]
    next: str | None


class Step(BaseModel):
    """One step of a trajectory: an event that was told, be it retracted since."""

    position: int
    sequence: int
    time: dt.datetime
    turn: str | None
    type: str
    before: Stance
    after: Stance
    event: str
    retracted_by: str | None


class Trajectory(BaseModel):
    """What was told of a holder and a target; `next` is the `cursor` of the next page."""

    conversation: str
    holder: str
    target: str
    steps: list[Step]
    next: str | None
