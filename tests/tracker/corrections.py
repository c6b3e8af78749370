"""Hypothesis strategies of logs with corrections, and what of a log survives them."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st

from tests.tracker.strategies import HOLDERS, PROPOSITIONS, ROOM, at, create, declare, target_of
from tracker.records import (
    ClearTurns,
    CreateTurn,
    DeleteTurn,
    EditTurn,
    EraseHolder,
    OverrideStance,
    Record,
    record_id,
    revision_of,
)
from tracker.stances import Stance

TEXTS = ("+1", "-1", "+0", "hm", "never", "yes and no")
TAKEN = ("edit", "delete", "clear", "erase", "override")
ALL = (*TAKEN, "pin")
TURNS = 9  # all of them stay in the window


def edit(turn: str, text: str, seconds: float = 0.0, **rest: Any) -> EditTurn:
    return EditTurn(conversation=ROOM, sent_at=at(seconds), turn=turn, text=text, **rest)


def delete(turn: str, seconds: float = 0.0, **rest: Any) -> DeleteTurn:
    return DeleteTurn(conversation=ROOM, sent_at=at(seconds), turn=turn, **rest)


def clear(holder: str | None = None, ident: str = "clear", seconds: float = 0.0) -> ClearTurns:
    return ClearTurns(conversation=ROOM, sent_at=at(seconds), id=ident, holder=holder)


def erase(holder: str, ident: str = "erase", seconds: float = 0.0) -> EraseHolder:
    return EraseHolder(conversation=ROOM, sent_at=at(seconds), id=ident, holder=holder)


def override(to: Stance | None, ident: str = "word", seconds: float = 0.0, **rest: Any) -> OverrideStance:
    about: dict[str, Any] = {"by": "mod", "reason": "because"} | rest
    return OverrideStance(conversation=ROOM, sent_at=at(seconds), id=ident, to=to, **about)


def pin(to: Stance | None, ident: str = "pin", seconds: float = 0.0, **rest: Any) -> OverrideStance:
    about: dict[str, Any] = {"holder": "ann", "target": target_of(PROPOSITIONS[0]).id} | rest
    return override(to, ident, seconds, **about)


_turns = st.integers(0, TURNS - 1).map("m-{}".format)
_words = st.none() | st.sampled_from(Stance)
_holders = st.sampled_from(HOLDERS)


@st.composite
def _record(draw: st.DrawFn, kind: str, number: int, fresh: int) -> Record:
    seconds, ident = 10.0 * number, f"r-{number}"
    match kind:
        case "edit":
            revision = draw(st.none() | st.integers(0, 2))
            return edit(draw(_turns), draw(st.sampled_from(TEXTS)), seconds, id=ident, revision=revision)
        case "delete":
            return delete(draw(_turns), seconds, id=ident)
        case "clear":
            return clear(draw(st.none() | _holders), ident, seconds)
        case "erase":
            return erase(draw(_holders), ident, seconds)
        case "override":
            return override(draw(_words), ident, seconds, turn=draw(_turns))
        case "pin":
            target, expires = draw(st.sampled_from(PROPOSITIONS[:2])), draw(st.none() | st.integers(0, 60))
            until = None if expires is None else at(seconds + expires)
            rest = {"target": target_of(target).id, "expires_at": until}
            return pin(draw(_words), ident, seconds, holder=draw(_holders), **rest)
    late = draw(st.sampled_from([0, 0, 15, 25, 1000]))
    return create(f"m-{fresh}", draw(st.sampled_from(TEXTS)), seconds - late, draw(_holders))


@st.composite
def logs(draw: st.DrawFn, *kinds: str, replacing: bool = False) -> list[Record]:
    """A log of two targets (the second may come late, in the place of the first), turns and corrections."""
    drawn = draw(st.lists(st.sampled_from(["create", "create", *kinds]), max_size=20))
    second = declare(PROPOSITIONS[1], replaces=target_of(PROPOSITIONS[0]).id if replacing else None)
    when = draw(st.integers(0, len(drawn))) if replacing else 0
    found: list[Record] = [declare(PROPOSITIONS[0])]
    fresh = 0
    for number, kind in enumerate(drawn):
        if number == when:
            found.append(second)
        if kind != "create" or fresh < TURNS:
            found.append(draw(_record(kind, number, fresh)))
            fresh += kind == "create"
    return found if when < len(drawn) else [*found, second]


def survivors(records: Iterable[Record]) -> tuple[list[CreateTurn], dict[str, Stance]]:
    """The turns that are left, as they read now, in the order of sent_at; and people's words on them."""
    turns: dict[str, CreateTurn] = {}
    known, deleted, words = set(), set(), {}
    early: dict[str, list[EditTurn]] = {}
    for record in records:
        match record:
            case CreateTurn(turn=turn):
                known.add(turn)
                if turn not in deleted:
                    turns[turn] = record
                for waiting in sorted(early.get(turn, ()), key=revision_of):
                    _edit(turns, waiting)
            case EditTurn(turn=turn) if turn not in known:
                early.setdefault(turn, []).append(record)
            case EditTurn():
                _edit(turns, record)
            case DeleteTurn(turn=turn):
                deleted.add(turn)
                turns.pop(turn, None)
            case ClearTurns(holder=holder) | EraseHolder(holder=holder):
                turns = {name: one for name, one in turns.items() if holder not in {None, one.holder}}
            case OverrideStance(turn=str(turn)):
                words[turn] = record.to
    left = {name: word for name, word in words.items() if word is not None and name in turns}
    return sorted(turns.values(), key=lambda one: one.sent_at), left  # stable: by arrival then


def _edit(turns: dict[str, CreateTurn], record: EditTurn) -> None:
    before = turns.get(record.turn)
    if before is not None and revision_of(record) >= before.revision:
        revision = revision_of(record)
        turns[record.turn] = msgspec.structs.replace(
            before, id=record_id(before), text=record.text, revision=revision
        )


def declared(records: Sequence[Record]) -> list[Record]:
    return [record for record in records if record.id is not None and record.id.startswith("declare")]
