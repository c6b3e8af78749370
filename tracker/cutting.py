"""What an explanation tells without turns that are gone, or without a person who is to be forgotten."""

from collections.abc import Collection, Mapping

import msgspec

from tracker.ledger import Ledger, LedgerEntry
from tracker.observations import Explanation


def cuts(ledger: Ledger, gone: Collection[LedgerEntry], person: str | None = None) -> dict[int, LedgerEntry]:
    """The entries whose explanations tell of turns that are gone, or of that person, without it."""
    holders = {one.turn: one.holder for one in ledger.values() if one.turn and one.op == "create"}
    turns = frozenset(one.turn for one in gone if one.turn is not None)
    found = {}
    for arrival, entry in ledger.items():
        told = tuple(cut(one, turns, holders, person) for one in entry.explanations)
        if told != entry.explanations:
            found[arrival] = msgspec.structs.replace(entry, explanations=told)
    return found


def cut(
    explanation: Explanation,
    gone: Collection[str],
    holders: Mapping[str, str | None],
    person: str | None = None,
) -> Explanation:
    """The explanation without those turns and that person; itself where it tells of neither.

    `holders` says whose a turn is. A rationale may quote what is gone: it goes with it.
    """
    trigger = explanation.trigger
    turns = tuple(turn for turn in trigger.turns if turn not in gone)
    left = {holders.get(turn) for turn in turns}
    lost = {holders.get(turn) for turn in trigger.turns if turn in gone} - left | {person}
    told = tuple(holder for holder in trigger.holders if holder not in lost)
    evidence = tuple(one for one in explanation.evidence if one.turn not in gone)
    named = person is not None and person in explanation.rationale
    if (turns, told, evidence) == (trigger.turns, trigger.holders, explanation.evidence) and not named:
        return explanation
    less = msgspec.structs.replace(trigger, turns=turns, holders=told)
    return msgspec.structs.replace(explanation, trigger=less, evidence=evidence, rationale="")
