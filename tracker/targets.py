"""Targets: the debate propositions of a conversation, and whose states they carry over."""

from collections.abc import Mapping

import msgspec

from tracker import keys
from tracker.machine import UNKNOWN, StanceState
from tracker.records import DeclareTarget, Reason, Refused, TargetStatus

MAX_ACTIVE = 3
MAX_KNOWN = 64  # retired ones included: all of them stand in every header and journal entry


class Target(msgspec.Struct, frozen=True, omit_defaults=True):
    """One proposition, by the id that events and states use."""

    id: str
    proposition: str
    status: TargetStatus = TargetStatus.ACTIVE
    replaces: str | None = None
    found: bool = False  # by the Cartographer, which may give it up again


Targets = tuple[Target, ...]
HolderStates = Mapping[str, StanceState]  # one holder's states, by target id


def active(targets: Targets) -> Targets:
    """The targets that turns are read for."""
    return tuple(target for target in targets if target.status is TargetStatus.ACTIVE)


def first(tenant: str, conversation: str, propositions: tuple[str, ...]) -> Targets:
    """The targets that a room's settings give a conversation with its first record."""
    once = dict.fromkeys(propositions)  # a room may say the same twice; two targets of one id may not be
    found = (Target(keys.target_id(tenant, conversation, text), text) for text in once)
    return tuple(found)[:MAX_ACTIVE]


def declared(targets: Targets, record: DeclareTarget, *, found: bool = False) -> Targets:
    """The targets after a `target` record; `found`: it is the Cartographer's. Raises Refused."""
    ident = keys.target_id(record.tenant, record.conversation, record.proposition)
    known = {target.id: target for target in targets}
    if record.status is TargetStatus.RETIRED:
        _require(known, ident, "proposition")
        known[ident] = _retired(known[ident], found)
        return tuple(known.values())
    if record.replaces is not None:
        _require(known, record.replaces, "replaces")
        known[record.replaces] = _retired(known[record.replaces], found)
    known[ident] = _activated(known.get(ident), ident, record, found)
    after = tuple(known.values())
    _require_room(after)
    return after


def _require_room(targets: Targets) -> None:
    got, remedy = "", ""
    if len(active(targets)) > MAX_ACTIVE:
        got, remedy = "a fourth active target", "retire or replace one of the three"
    elif len(targets) > MAX_KNOWN:
        got, remedy = f"more than {MAX_KNOWN} targets in all", "a conversation of its own for another debate"
    if got:
        raise Refused(Reason.TOO_MANY_TARGETS, "proposition", got, remedy)


def _retired(target: Target, found: bool) -> Target:
    """What an operator has declared, be it after it was found, is not the Cartographer's to retire."""
    kept = found and not target.found
    return target if kept else msgspec.structs.replace(target, status=TargetStatus.RETIRED)


def _activated(known: Target | None, ident: str, record: DeclareTarget, found: bool) -> Target:
    if known is None:
        return Target(ident, record.proposition, replaces=record.replaces, found=found)
    if record.replaces not in {None, known.replaces}:  # nothing would be carried over: say so
        raise Refused(
            Reason.INVALID_VALUE,
            "replaces",
            "a target declared before, with states of its own",
            "declare it again without replaces, and retire the other",
        )
    return msgspec.structs.replace(known, status=TargetStatus.ACTIVE, found=found and known.found)


def _require(known: Mapping[str, Target], ident: str, field: str) -> None:
    if ident not in known:
        raise Refused(Reason.UNKNOWN_TARGET, field, "a target never declared here", "declare it first")


def state_of(states: HolderStates, targets: Targets, ident: str) -> StanceState:
    """A holder's state for a target: its own, else that of the target it replaces, else unknown."""
    replaces = {target.id: target.replaces for target in targets}
    wanted: str | None = ident
    while wanted is not None:
        if wanted in states:
            return states[wanted]
        wanted = replaces.get(wanted)
    return UNKNOWN


def moved(states: HolderStates, targets: Targets, ident: str, state: StanceState) -> dict[str, StanceState]:
    """A holder's states with one changed.

    A target that replaced the changed one keeps what it inherited: it is copied before the change.
    """
    after = dict(states)
    for target in targets:
        if target.replaces == ident and target.id not in after:
            after[target.id] = state_of(states, targets, ident)
    after[ident] = state
    return after
