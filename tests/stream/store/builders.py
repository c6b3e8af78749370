"""Commits as an agent makes them, small."""

import datetime as dt
from collections.abc import Mapping, Sequence

from stream.store.port import Commit, ConversationKey, Message, Need
from tracker.context import Window, WindowTurn
from tracker.conversation import Header
from tracker.ledger import LedgerEntry
from tracker.machine import StanceState
from tracker.observations import Model, Observation, Probabilities
from tracker.stances import Emotion, Sentiment, Stance
from tracker.targets import HolderStates, Target

START = dt.datetime(2026, 11, 29, 20, 0, tzinfo=dt.UTC)
ROOM = ConversationKey("default", "room-7")
TARGET = Target("t-5b0c9a7d1e22", "The debate concerning whether tea beats coffee", found=True)
SUPPORT = StanceState(Stance.SUPPORT, "m-1", 0.87, 0)
OPPOSE = StanceState(Stance.OPPOSE, "m-2", 1.0, 1)
# Empty lists and floats without a fraction: what a detour over Lua's JSON would spoil.
WINDOW: Window = (WindowTurn("m-1", "u-1", "tea", media=()), WindowTurn("m-2", "u-2", "né {}:/\n☕"))


def observation(turn: str = "m-1", holder: str = "u-1") -> Observation:
    return Observation(
        turn=turn,
        revision=0,
        target=TARGET.id,
        holder=holder,
        expressed=Probabilities(support=1.0),
        emotion=Emotion.JOY,
        sentiment=Sentiment.POSITIVE,
        relevance=1.0,
        read_under=Stance.UNKNOWN,
        model=Model("rule", "1", "rule", "und"),
        marks=(),
    )


def entry(arrival: int, record: str | None = None, *, op: str = "create", minute: int = 0) -> LedgerEntry:
    return LedgerEntry(
        id=record or f"create/m-{arrival}/0",
        op=op,
        arrival=arrival,
        sent_at=START + dt.timedelta(minutes=minute),
        turn=f"m-{arrival}" if op == "create" else None,
        holder="u-1",
        observations=(observation(f"m-{arrival}"),) if op == "create" else (),
    )


def messages(arrival: int) -> tuple[Message, ...]:
    return (
        Message("journal", b"default/room-7", b"\x00\xff[] 1.0 %d" % arrival),
        Message("states", b"k", None),
        Message("turns", b"default/room-7", b'{"op":"target","id":"found-%d"}' % arrival),
    )


def commit(
    expected: int,
    entries: Sequence[LedgerEntry] | None = None,
    *,
    key: ConversationKey = ROOM,
    holders: Mapping[str, HolderStates] | None = None,
    window: Window = WINDOW,
    trim_before: dt.datetime | None = None,
) -> Commit:
    entries = [entry(expected + 1)] if entries is None else entries
    last = expected + len(entries)
    return Commit(
        key=key,
        expected=expected,
        header=Header(
            version=last, sequence=last, newest=START, targets=(TARGET,), awaited=(f"found-{last}",)
        ),
        window=window,
        holders={"u-1": {TARGET.id: SUPPORT}} if holders is None else holders,
        entries=entries,
        outbox={each.arrival: messages(each.arrival) for each in entries},
        trim_before=trim_before,
    )


def need(
    *holders: str, key: ConversationKey = ROOM, records: Sequence[str] = (), turns: Sequence[str] = ()
) -> Need:
    return Need(key, frozenset(holders), frozenset(records), frozenset(turns))
