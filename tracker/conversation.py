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
from tracker.observations import Explanation, Mark, Observation, primary
from tracker.pins import Pins
from tracker.policy import Policy
from tracker.proposals import Inquiry, inquiry
from tracker.records import CreateTurn, DeclareTarget
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
    awaited: tuple[str, ...] = ()  # ids of found target records that have not come back on the log
    pins: Pins = ()


class Conversation(msgspec.Struct, frozen=True):
    """A conversation as far as a batch needs it: `holders` has only the holders asked for."""

    tenant: str
    run: str
    name: str
    header: Header = Header()
    window: Window = ()
    holders: Mapping[str, HolderStates] = {}


class Rules(msgspec.Struct, frozen=True):
    """What an operator decides: policies, clock, whether persisted events are sent and targets are found."""

    policy: Policy = Policy()  # the default reader's; its exemptions hold for every language
    clock: Clock = Clock()
    persisted: bool = False
    policies: Mapping[str, Policy] = {}  # by primary subtag, of the languages that have a reader of their own
    finds: bool = False  # whether the Cartographer is asked for targets

    def judging(self, observation: Observation) -> Policy:
        """The policy fitted to the reader that made the observation: thresholds of another's mean nothing.

        Where the mark says so, the default read in place of the language's own.
        """
        if Mark.FALLBACK in observation.marks:
            return self.policy
        return self.policies.get(primary(observation.model.language), self.policy)


class Admitted(msgspec.Struct, frozen=True):
    """A record that may be applied, and the targets its turn is to be read for."""

    record: CreateTurn | DeclareTarget
    sent_at: dt.datetime  # as it counts
    marks: tuple[Mark, ...] = ()
    turn: WindowTurn | None = None  # of a create
    targets: Targets = ()  # none where nothing is to be read
    declared: Targets | None = None  # of a target record
    inquiry: Inquiry | None = None  # what the Cartographer is to be asked at this turn


class Folded(msgspec.Struct, frozen=True):
    """One target's step: the state before and after, and why."""

    target: Target
    before: StanceState
    after: StanceState
    transition: Transition
    observation: Observation
    explanation: Explanation | None = None


def admitted(
    conversation: Conversation, record: CreateTurn | DeclareTarget, receipt: dt.datetime | None, rules: Rules
) -> Admitted:
    """What applying `record` needs; a late turn is read at its place, by a refold. Raises Refused."""
    sent_at, marks = counted(record.sent_at, receipt, rules.clock)
    if isinstance(record, DeclareTarget):
        found = record.id in conversation.header.awaited
        after = targeting.declared(conversation.header.targets, record, found=found)
        return Admitted(record, sent_at, marks, declared=after)
    newest = conversation.header.newest
    late = newest is not None and sent_at < newest
    marks += (Mark.LATE,) if late else ()
    marks += (
        (Mark.REPLY_MISSING,) if record.reply_to and not find(conversation.window, record.reply_to) else ()
    )
    silent = late or rules.policy.exempts(record.holder, record.holder_kind)
    read = () if silent else targeting.active(conversation.header.targets)
    asked = _inquiry(conversation) if rules.finds else None
    return Admitted(record, sent_at, marks, remembered(record), read, inquiry=asked)


def _inquiry(conversation: Conversation) -> Inquiry | None:
    header = conversation.header
    return inquiry(header.targets, bool(header.awaited), header.version, conversation.window)


def state_before(conversation: Conversation, holder: str, target: str) -> StanceState:
    """A holder's state toward a target, before the record at hand."""
    states = conversation.holders.get(holder, {})
    return targeting.state_of(states, conversation.header.targets, target)


def folded(
    conversation: Conversation, admission: Admitted, observations: Sequence[Observation], rules: Rules
) -> tuple[Folded, ...]:
    """The step of every target read, from one observation each, in the order of the targets.

    Raises WrongObservation.
    """
    record = admission.record
    if not isinstance(record, CreateTurn):
        return ()
    asked = (record.turn, record.revision, record.holder)
    return tuple(
        _fold(conversation, target, answered((*asked, target.id), observation), rules)
        for target, observation in zip(admission.targets, observations, strict=True)
    )


Subject = tuple[str, int, str, str]
_SUBJECT = ("turn", "revision", "holder", "target")


def answered(asked: Subject, observation: Observation) -> Observation:
    """The observation, if it is of what was asked: a mixed-up answer would move somebody else's stance.

    Raises WrongObservation.
    """
    got = subject(observation)
    # The names of what differs alone: this reaches logs, which hold nobody's name.
    wrong = [name for name, one, other in zip(_SUBJECT, asked, got, strict=True) if one != other]
    if wrong:
        raise WrongObservation(f"an observation of another {', '.join(wrong)} than was asked for")
    return observation


def subject(observation: Observation) -> Subject:
    """What an observation is of: turn, revision, holder and target."""
    return observation.turn, observation.revision, observation.holder, observation.target


def _fold(conversation: Conversation, target: Target, observation: Observation, rules: Rules) -> Folded:
    before = state_before(conversation, observation.holder, target.id)
    after, transition = step(before, observation, rules.judging(observation))
    return Folded(target, before, after, transition, observation)


def explained(conversation: Conversation, fold: Folded, explanation: Explanation, rules: Rules) -> Folded:
    """A flip with its explanation; a refined observation is folded once, from the state before the turn.

    Raises WrongObservation.
    """
    if explanation.refined is not None:
        refined = answered(subject(fold.observation), explanation.refined)
        fold = _fold(conversation, fold.target, refined, rules)
    if fold.transition.kind is not TransitionKind.FLIP:
        return fold
    return msgspec.structs.replace(fold, explanation=explanation)
