"""The conversation aggregate: what is known of it, and how one record changes it. Pure.

A record goes `admitted` (what must be read, under which states) -> read by the reader -> `folded` (states
and transitions) -> explained where it flipped -> `settled` (the new conversation, its events, its ledger
entry and journal entry).
"""

import datetime as dt
from collections.abc import Mapping, Sequence

import msgspec

from tracker import targets as targeting
from tracker.clock import Clock, counted
from tracker.context import Window, WindowTurn, find, remembered
from tracker.machine import StanceState, step
from tracker.observations import Explanation, Mark, Observation
from tracker.policy import Policy
from tracker.records import CreateTurn, DeclareTarget, Reason, Record, Refused, op_of
from tracker.stances import Transition, TransitionKind
from tracker.targets import HolderStates, Target, Targets


class WrongObservation(ValueError):
    """An observation is of another turn, holder or target than was asked for; nothing is folded."""


class Header(msgspec.Struct, frozen=True, omit_defaults=True):
    """What every commit of a conversation replaces. `version` counts applied records: the last arrival."""

    version: int = 0
    sequence: int = 0  # of the last event that was not persisted
    flip_sequence: int = 0  # of the last event in the flips topic
    newest: dt.datetime | None = None  # sent_at of the newest applied turn
    targets: Targets = ()


class Conversation(msgspec.Struct, frozen=True):
    """A conversation as far as a batch needs it: `holders` has only the holders asked for."""

    tenant: str
    run: str
    name: str
    header: Header = Header()
    window: Window = ()
    holders: Mapping[str, HolderStates] = {}


class Rules(msgspec.Struct, frozen=True):
    """What an operator decides: the policy, the clock, and whether persisted events are sent."""

    policy: Policy = Policy()
    clock: Clock = Clock()
    persisted: bool = False


class Admitted(msgspec.Struct, frozen=True):
    """A record that may be applied, and the targets its turn is to be read for."""

    record: Record
    sent_at: dt.datetime  # as it counts
    marks: tuple[Mark, ...] = ()
    turn: WindowTurn | None = None  # of a create
    targets: Targets = ()  # none where nothing is to be read
    declared: Targets | None = None  # of a target record


class Folded(msgspec.Struct, frozen=True):
    """One target's step: the state before and after, and why."""

    target: Target
    before: StanceState
    after: StanceState
    transition: Transition
    observation: Observation
    explanation: Explanation | None = None


def admitted(
    conversation: Conversation, record: Record, receipt: dt.datetime | None, rules: Rules
) -> Admitted:
    """What applying `record` needs. Raises Refused."""
    if isinstance(record, DeclareTarget):
        sent_at, marks = counted(record.sent_at, receipt, rules.clock)
        after = targeting.declared(conversation.header.targets, record)
        return Admitted(record, sent_at, marks, declared=after)
    if not isinstance(record, CreateTurn):
        raise Refused(
            Reason.NOT_YET, "op", f"operation {op_of(record)}", "this version applies create and target only"
        )
    sent_at, marks = counted(record.sent_at, receipt, rules.clock)
    newest = conversation.header.newest
    late = newest is not None and sent_at < newest
    marks += (Mark.LATE,) if late else ()
    marks += (
        (Mark.REPLY_MISSING,) if record.reply_to and not find(conversation.window, record.reply_to) else ()
    )
    silent = late or rules.policy.exempts(record.holder, record.holder_kind)
    read = () if silent else targeting.active(conversation.header.targets)
    return Admitted(record, sent_at, marks, remembered(record), read)


def state_before(conversation: Conversation, holder: str, target: str) -> StanceState:
    """A holder's state toward a target, before the record at hand."""
    states = conversation.holders.get(holder, {})
    return targeting.state_of(states, conversation.header.targets, target)


def folded(
    conversation: Conversation, admission: Admitted, observations: Sequence[Observation], policy: Policy
) -> tuple[Folded, ...]:
    """The step of every target read, from one observation each, in the order of the targets.

    Raises WrongObservation.
    """
    record = admission.record
    if not isinstance(record, CreateTurn):
        return ()
    asked = (record.turn, record.revision, record.holder)
    return tuple(
        _fold(conversation, target, _answer((*asked, target.id), observation), policy)
        for target, observation in zip(admission.targets, observations, strict=True)
    )


_SUBJECT = ("turn", "revision", "holder", "target")


def _answer(asked: tuple[str, int, str, str], observation: Observation) -> Observation:
    """The observation, if it is of what was asked: a mixed-up answer would move somebody else's stance."""
    got = _subject(observation)
    # The names of what differs alone: this reaches logs, which hold nobody's name.
    wrong = [name for name, one, other in zip(_SUBJECT, asked, got, strict=True) if one != other]
    if wrong:
        raise WrongObservation(f"an observation of another {', '.join(wrong)} than was asked for")
    return observation


def _subject(observation: Observation) -> tuple[str, int, str, str]:
    return observation.turn, observation.revision, observation.holder, observation.target


def _fold(conversation: Conversation, target: Target, observation: Observation, policy: Policy) -> Folded:
    before = state_before(conversation, observation.holder, target.id)
    after, transition = step(before, observation, policy)
    return Folded(target, before, after, transition, observation)


def explained(conversation: Conversation, fold: Folded, explanation: Explanation, policy: Policy) -> Folded:
    """A flip with its explanation; a refined observation is folded once, from the state before the turn.

    Raises WrongObservation.
    """
    if explanation.refined is not None:
        refined = _answer(_subject(fold.observation), explanation.refined)
        fold = _fold(conversation, fold.target, refined, policy)
    if fold.transition.kind is not TransitionKind.FLIP:
        return fold
    return msgspec.structs.replace(fold, explanation=explanation)
