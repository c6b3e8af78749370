"""What a rebuild commits is bounded, and what it leaves half-done another rebuild completes."""

import contextlib
import datetime as dt
from collections.abc import Iterator, Sequence
from unittest import mock

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream import putting, steps
from stream.entries import Place, decoded
from stream.putting import Putting, Report, Room
from stream.scratch import Scratch, scratch
from stream.singly import Failing
from stream.steps import Steps
from stream.store.memory import MemoryStore
from stream.store.port import Commit, ConversationKey, Need, StoreUnavailable
from tests.tracker.corrections import ALL, edit, logs
from tests.tracker.living import Live
from tests.tracker.strategies import ROOM, create, debate
from tracker import keys, records
from tracker.conversation import Header
from tracker.ledger import HeaderRow
from tracker.rebuild import Kept

OWNER, KEY = ConversationKey("default", ROOM), keys.conversation_key("default", ROOM)
TURNS = "volteface.turns"


class Ending(MemoryStore):
    """A store that is gone after so many commits, and keeps them."""

    def __init__(self, kept: "MemoryStore | None" = None) -> None:
        super().__init__("live")
        self._kept = {} if kept is None else kept._kept
        self.left, self.commits = 1_000_000, list[Commit]()

    async def commit(self, commits: Sequence[Commit]) -> list[bool]:
        answers = list[bool]()
        for one in commits:
            self.left -= 1
            await self.ping()
            self.commits.append(one)
            answers += await super().commit([one])
        return answers

    async def ping(self) -> None:
        if self.left < 0:
            raise StoreUnavailable("gone")

    def content(self) -> dict[str, object]:
        found = self._kept[OWNER]
        holders = {name: states for name, states in found.holders.items() if states}
        ledger = {name: one if name.startswith("r/") else one.id for name, one in found.ledger.items()}
        return {"header": found.header, "window": found.window, "holders": holders, "ledger": ledger}


def fill(found: Scratch, live: Live, lost: frozenset[int] = frozenset()) -> None:
    """What the topics hold: the journal without these arrivals."""
    for arrival, one in enumerate(live.journal, 1):
        place = Place(0, arrival)
        found.want([place])
        found.found([(place, (KEY, records.encode(live.record(arrival))))])
        raw = msgspec.json.encode(msgspec.structs.replace(one, source=f"{TURNS}/0/{arrival}"))
        if arrival not in lost:
            found.journal([(decoded(raw), raw)])
    rows = live.rows()
    about = {"tenant": "default", "run": "live", "conversation": ROOM}
    found.row(KEY, msgspec.json.encode(HeaderRow(**about, header=rows.header or Header())))
    for row in rows.states:
        found.row(keys.holder_key("default", ROOM, row.holder, row.target), msgspec.json.encode(row))
    for pair in rows.ended:
        found.row(keys.holder_key("default", ROOM, *pair), None)


async def lagging(kept: Kept) -> Ending:
    """A store that holds an earlier version."""
    store, was = Ending(), kept.conversation
    if kept.version:
        entries = [*kept.ledger.values()]
        known = {"header": was.header, "window": was.window, "holders": was.holders, "entries": entries}
        assert await store.commit([Commit(key=OWNER, expected=0, outbox={}, **known)]) == [True]
        store.commits.clear()
    return store


async def rebuild(store: Ending, found: Scratch, step: int, reach: dt.timedelta | None = None) -> Report:
    """As the rebuild does with one conversation."""
    made, upto = Steps(found, TURNS, reach), found.newest(KEY)
    [loaded] = await store.load([Need(OWNER)])
    holders = made.touched(KEY, Kept(loaded.conversation), upto)
    [loaded] = await store.load([Need(OWNER, holders)])
    [ledger] = await store.ledgers([OWNER])
    version = loaded.conversation.header.version
    kept = Kept(loaded.conversation, {at: one for at, one in ledger.items() if at <= version})
    put = Putting(store, lambda room: contextlib.nullcontext(), dry=False)
    with mock.patch.object(steps, "STEP", step):
        await put.put(Room(KEY, kept, upto, unfinished=False), made.commits(KEY, kept, upto))
        await put.flush()
    return put.report


@pytest.fixture
def found() -> Iterator[Scratch]:
    with scratch() as made:
        yield made


LONG = debate(
    *(create(f"m-{number}", "+1", number, f"h-{number % 17}") for number in range(40)),
    edit("m-3", "-1", 50),
    *(create(f"n-{number}", "-1", 60 + number, f"h-{number}") for number in range(9)),
)


@pytest.mark.parametrize("lost", [frozenset(), frozenset({1}), frozenset({1, 2, 3, 20, 47})], ids=len)
async def test_each_commit_is_bounded_whatever_the_conversation(found: Scratch, lost: frozenset[int]) -> None:
    fill(found, Live(LONG), lost)
    at_once, parted = Ending(), Ending()
    assert await rebuild(at_once, found, 5000) == Report(rebuilt=1)
    assert await rebuild(parted, found, 5) == Report(rebuilt=1)
    assert parted.content() == at_once.content()
    assert len(at_once.commits) == 1
    for one in parted.commits:
        assert len(one.entries) <= 5
        assert len(one.holders) + len(one.forgotten) <= (5 if lost else 17)


@pytest.mark.parametrize("again", [5, 3, 7])
async def test_what_was_ended_leaves_the_old_version_and_is_completed(found: Scratch, again: int) -> None:
    fill(found, Live(LONG), frozenset({1, 20}))
    whole = Ending()
    await rebuild(whole, found, 5)
    for done in range(len(whole.commits)):
        store = Ending()
        store.left = done
        with pytest.raises(StoreUnavailable):
            await rebuild(store, found, 5)
        [kept] = await store.load([Need(OWNER, frozenset(f"h-{number}" for number in range(17)))])
        assert (kept.conversation.header, kept.conversation.window) == (Header(), ())
        [ledger] = await store.ledgers([OWNER])
        assert 51 not in ledger  # so that the agents' restorer misses something, and finds the gap before it
        store = Ending(store)
        assert await rebuild(store, found, again) == Report(rebuilt=1)
        assert store.content() == whole.content()


@given(logs(*ALL, replacing=True) | logs(*ALL), st.data())
async def test_whatever_was_ended_anywhere_is_completed(
    given: list[records.Record], data: st.DataObject
) -> None:
    live = Live(given)
    numbers = st.integers(1, live.newest)
    kept = live.kept[data.draw(st.integers(0, live.newest - 1))]
    lost = data.draw(st.frozensets(numbers, max_size=4))
    with scratch() as found:
        fill(found, live, lost)
        whole, store = await lagging(kept), await lagging(kept)
        await rebuild(whole, found, 5000)
        for _ in range(data.draw(st.integers(0, 3))):
            store = Ending(store)
            store.left = data.draw(st.integers(0, 8))
            with contextlib.suppress(StoreUnavailable):
                await rebuild(store, found, data.draw(st.integers(1, 6)))
        store = Ending(store)
        await rebuild(store, found, data.draw(st.integers(1, 6)))
        assert store.content() == whole.content()


async def test_a_conversation_that_is_moved_meanwhile_is_left(found: Scratch) -> None:
    fill(found, Live(LONG), frozenset({1}))

    class Moved(Ending):
        async def commit(self, commits: Sequence[Commit]) -> list[bool]:
            if len(self.commits) == 2:
                moved = msgspec.structs.replace(commits[0], header=Header(version=1), entries=[])
                await super().commit([moved])
            return await super().commit(commits)

    store = Moved()
    assert await rebuild(store, found, 5) == Report(left=1)
    assert len(store.commits) == 4
    [kept] = await store.load([Need(OWNER)])
    assert kept.conversation.header.version == 1


async def test_what_is_refused_though_nobody_moved_it_is_no_conversation_that_is_left(found: Scratch) -> None:
    live, store = Live(LONG), Ending()
    fill(found, live)
    beyond = Commit(
        key=OWNER, expected=0, header=Header(), window=(), holders={}, outbox={},
        entries=[live.kept[-1].ledger[7]],
    )  # fmt: skip
    assert await store.commit([beyond]) == [True]
    with pytest.raises(Failing, match="records beyond its version"):
        await rebuild(store, found, 5000)


async def test_many_conversations_go_in_one_round_trip(
    found: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(putting, "FLUSH_COMMITS", 2)
    calls = list[int]()

    class Counting(Ending):
        async def commit(self, commits: Sequence[Commit]) -> list[bool]:
            calls.append(len(commits))
            return await super().commit(commits)

    fill(found, Live(LONG))
    assert await rebuild(Counting(), found, 10) == Report(rebuilt=1)
    assert calls == [2, 2, 2]
