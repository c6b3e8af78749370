"""Found targets: when the Cartographer is asked, and the `target` records that its answer makes. Pure.

It is asked after a conversation's first turns until a target is found, and then now and again whether the
debate has left it; never while one that it found is still on its way through the log. What an operator
declared it neither replaces nor retires.
"""

import datetime as dt

import msgspec

from tracker import keys
from tracker.context import WINDOW_TURNS, Window
from tracker.records import CreateTurn, DeclareTarget, TargetStatus, record_id
from tracker.targets import MAX_KNOWN, Target, Targets, active

FIRST_TURNS = (4, 8, WINDOW_TURNS)  # of a conversation: enough to hold a position, and no bill without end
DRIFT_RECORDS = WINDOW_TURNS  # applied records between two questions: by then all that is shown is new


class Proposal(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the Cartographer says of the turns up to this one; no proposition: nothing to declare."""

    conversation: str
    turn: str
    proposition: str | None = None
    replaces: bool = False  # it is the target that was asked about, in other words: its states carry over


class Inquiry(msgspec.Struct, frozen=True):
    """That the Cartographer is to be asked: whether the debate has left `target`, or what it is about."""

    target: Target | None = None


def inquiry(targets: Targets, on_the_way: bool, version: int, window: Window) -> Inquiry | None:
    """Whether the turn that is about to be applied is one to ask at; `window` is what stands before it."""
    if on_the_way:
        return None
    found = next((target for target in active(targets) if target.found), None)
    if found is not None:
        return Inquiry(found) if (version + 1) % DRIFT_RECORDS == 0 else None
    if active(targets) or any(target.found for target in targets):
        return None
    # A window grows until it is full, so each of these lengths comes once.
    return Inquiry() if len(window) + 1 in FIRST_TURNS else None


def records(
    targets: Targets, asked: Inquiry, turn: CreateTurn, sent_at: dt.datetime, proposal: Proposal
) -> tuple[DeclareTarget, ...]:
    """The `target` records of a proposal; the same turn gives them the same ids. () where nothing changes."""
    if not proposal.proposition or not _free(targets, turn, proposal.proposition):
        return ()
    new = DeclareTarget(
        conversation=turn.conversation,
        tenant=turn.tenant,
        sent_at=sent_at,
        id=keys.found_id(record_id(turn), "declare"),
        proposition=proposal.proposition,
    )
    if asked.target is None:
        return (new,)
    known = keys.target_id(turn.tenant, turn.conversation, new.proposition) in {each.id for each in targets}
    if proposal.replaces and not known:  # one that has states of its own takes over nobody's
        return (msgspec.structs.replace(new, replaces=asked.target.id),)
    left = msgspec.structs.replace(
        new,
        id=keys.found_id(record_id(turn), "retire"),
        proposition=asked.target.proposition,
        status=TargetStatus.RETIRED,
    )
    return left, new


def _free(targets: Targets, turn: CreateTurn, proposition: str) -> bool:
    """Whether it may be declared: it is new and there is room, or it was found here before and is retired."""
    ident = keys.target_id(turn.tenant, turn.conversation, proposition)
    known = next((target for target in targets if target.id == ident), None)
    if known is None:
        return len(targets) < MAX_KNOWN
    return known.found and known.status is TargetStatus.RETIRED
