"""What every store promises: one suite, run on the memory store and on every Redis found."""

import asyncio
import datetime as dt
from collections.abc import AsyncIterator
from uuid import uuid4

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream.store import memory as memory_module
from stream.store import redis as redis_module
from stream.store.codec import TRIM_LIMIT
from stream.store.memory import MemoryStore
from stream.store.port import Commit, ConversationKey, Store
from stream.store.redis import RedisStore
from tests.stream.store.builders import (
    OPPOSE,
    ROOM,
    START,
    SUPPORT,
    TARGET,
    WINDOW,
    commit,
    entry,
    messages,
    need,
)
from tracker.conversation import Conversation, Header

ODD_NAMES = ["{room}", "a:b/c", "a%2Fb", "комната ☕", "line\nbreak\r\n", " ", "*?[x]", "\x00"]


class Contract:
    """The suite; a subclass brings the store."""

    async def test_is_a_store(self, store: Store) -> None:
        assert isinstance(store, Store)

    async def test_a_fresh_conversation_is_at_version_0(self, store: Store) -> None:
        [loaded] = await store.load([need("u-1", records=["r"], turns=["m-1"])])
        assert loaded.conversation == Conversation("default", "live", "room-7")
        assert (loaded.applied, loaded.created, dict(loaded.outbox)) == (frozenset(), frozenset(), {})

    async def test_nothing_is_asked_and_nothing_committed(self, store: Store) -> None:
        assert await store.load([]) == []
        assert await store.commit([]) == []
        await store.delivered({})
        await store.delivered({ROOM: []})

    async def test_what_was_committed_is_loaded(self, store: Store) -> None:
        sent = commit(0)
        assert await store.commit([sent]) == [True]
        [loaded] = await store.load([need("u-1", records=[sent.entries[0].id], turns=["m-1"])])
        found = loaded.conversation
        assert found == Conversation(
            "default", "live", "room-7", sent.header, WINDOW, {"u-1": {TARGET.id: SUPPORT}}
        )
        assert loaded.applied == {sent.entries[0].id}
        assert loaded.created == {"m-1"}
        assert loaded.outbox == {1: messages(1)}

    async def test_empty_lists_and_floats_survive(self, store: Store) -> None:
        holders = {"u-1": {TARGET.id: msgspec.structs.replace(SUPPORT, confidence=1.0)}, "u-2": {}}
        await store.commit([commit(0, holders=holders, window=())])
        [loaded] = await store.load([need("u-1", "u-2")])
        assert loaded.conversation.window == ()
        assert loaded.conversation.holders == holders
        confidence = loaded.conversation.holders["u-1"][TARGET.id].confidence
        assert isinstance(confidence, float)

    async def test_a_commit_from_another_version_is_not_taken(self, store: Store) -> None:
        await store.commit([commit(0)])
        late = commit(0, [entry(1, "another")], holders={"u-1": {TARGET.id: OPPOSE}})
        assert await store.commit([late, commit(2)]) == [False, False]
        [loaded] = await store.load([need("u-1", records=["another"])])
        assert loaded.conversation.header.version == 1
        assert loaded.conversation.holders == {"u-1": {TARGET.id: SUPPORT}}
        assert not loaded.applied

    async def test_an_applied_record_is_not_applied_again(self, store: Store) -> None:
        await store.commit([commit(0, [entry(1, "r-1")])])
        assert await store.commit([commit(1, [entry(2, "r-2"), entry(3, "r-1")])]) == [False]
        [loaded] = await store.load([need(records=["r-1", "r-2"], turns=["m-1", "m-2"])])
        assert (loaded.applied, loaded.created) == ({"r-1"}, {"m-1"})
        assert loaded.conversation.header.version == 1

    async def test_a_repeated_commit_is_taken_once(self, store: Store) -> None:
        repeated = commit(0, [entry(1), entry(2)])
        assert await store.commit([repeated, repeated]) == [True, True]
        assert await store.commit([repeated]) == [True]
        [loaded] = await store.load([need()])
        assert loaded.conversation.header.version == 2
        assert loaded.outbox == repeated.outbox

    async def test_a_repeated_commit_fills_no_emptied_outbox(self, store: Store) -> None:
        await store.commit([commit(0)])
        await store.delivered({ROOM: [1]})
        assert await store.commit([commit(0)]) == [True]
        [loaded] = await store.load([need()])
        assert not loaded.outbox

    @pytest.mark.parametrize(
        "foreign",
        [
            commit(0, [entry(1, minute=1)]),
            commit(0, [entry(1, "create/m-1/1")]),
            msgspec.structs.replace(commit(0), outbox={1: messages(9)}),
            msgspec.structs.replace(commit(0), header=Header(version=1)),
        ],
        ids=["time", "record", "messages", "header"],
    )
    async def test_another_commit_of_the_same_version_is_not_taken(
        self, store: Store, foreign: Commit
    ) -> None:
        await store.commit([commit(0)])
        assert await store.commit([foreign]) == [False]

    async def test_a_repetition_is_told_from_its_successor(self, store: Store) -> None:
        assert await store.commit([commit(0), commit(1)]) == [True, True]
        assert await store.commit([commit(0)]) == [False]
        assert await store.commit([commit(1)]) == [True]

    async def test_the_outbox_stands_in_order_of_arrival_until_delivered(self, store: Store) -> None:
        await store.commit([commit(0, [entry(arrival) for arrival in range(1, 12)]), commit(11)])
        [loaded] = await store.load([need()])
        assert list(loaded.outbox) == list(range(1, 13))
        await store.delivered({ROOM: [1, 2, 12], ConversationKey("default", "none"): [1]})
        await store.delivered({ROOM: [1, 2, 12]})
        [loaded] = await store.load([need()])
        assert loaded.outbox == {arrival: messages(arrival) for arrival in range(3, 12)}

    async def test_only_the_holders_asked_for_are_loaded(self, store: Store) -> None:
        await store.commit([commit(0, holders={name: {TARGET.id: SUPPORT} for name in ("a", "b", "c")})])
        await store.commit([commit(1, holders={"b": {TARGET.id: OPPOSE}})])
        [some, none] = await store.load([need("b", "c", "nobody"), need()])
        assert some.conversation.holders == {"b": {TARGET.id: OPPOSE}, "c": {TARGET.id: SUPPORT}}
        assert none.conversation.holders == {}

    async def test_only_creates_create_turns(self, store: Store) -> None:
        declared = msgspec.structs.replace(entry(1, "t", op="target"), turn="m-1")
        await store.commit([commit(0, [declared])])
        [loaded] = await store.load([need(records=["t"], turns=["m-1"])])
        assert (loaded.applied, loaded.created) == ({"t"}, frozenset())

    async def test_a_ledger_comes_whole_in_order_of_arrival(self, store: Store) -> None:
        entries = [entry(n, minute=9 - n) for n in range(1, 5)]
        await store.commit([commit(0, entries[:3]), commit(3, entries[3:])])
        assert await store.ledgers([]) == []
        [ledger, none] = await store.ledgers([ROOM, ConversationKey("default", "none")])
        assert list(ledger.items()) == [(each.arrival, each) for each in entries]
        assert none == {}

    async def test_of_a_long_ledger_the_last_by_time_come(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in (memory_module, redis_module):
            monkeypatch.setattr(module, "LEDGER_LIMIT", 1499)  # not where a page of it ends
        waiting = msgspec.structs.replace(entry(1601, op="edit", minute=1600), turn="m-x", waits=True)
        entries = [*(entry(n, minute=n) for n in range(1, 1601)), waiting]
        await store.commit([commit(0, entries)])
        [ledger] = await store.ledgers([ROOM])
        assert list(ledger.values()) == entries[102:]

    async def test_changed_entries_replace_those_that_are_still_there(self, store: Store) -> None:
        await store.commit([commit(0, [entry(n, minute=n) for n in (1, 2, 3)])])
        changed = [msgspec.structs.replace(entry(n, minute=n), gone=True, observations=()) for n in (1, 3)]
        later = msgspec.structs.replace(
            commit(3, trim_before=START + dt.timedelta(minutes=2)), changed=tuple(changed)
        )
        assert await store.commit([later]) == [True]
        [ledger] = await store.ledgers([ROOM])
        assert ledger == {2: entry(2, minute=2), 3: changed[1], 4: entry(4)}
        [loaded] = await store.load([need(turns=["m-3"])])
        assert loaded.created == {"m-3"}

    async def test_states_of_which_none_is_left_are_no_more(self, store: Store) -> None:
        await store.commit([commit(0, holders={name: {TARGET.id: SUPPORT} for name in ("a", "b")})])
        gone = msgspec.structs.replace(commit(1, holders={}), forgotten=("a", "nobody"))
        assert await store.commit([gone]) == [True]
        [loaded] = await store.load([need("a", "b")])
        assert loaded.conversation.holders == {"b": {TARGET.id: SUPPORT}}

    async def test_a_turn_is_awaited_by_its_corrections_until_it_comes(self, store: Store) -> None:
        waiting = [
            msgspec.structs.replace(entry(n, f"edit {n}", op="edit"), turn="m-3", waits=True) for n in (1, 2)
        ]
        asked = need(turns=["m-3", "m-4"])
        await store.commit([commit(0, waiting)])
        [loaded] = await store.load([asked])
        assert (loaded.awaited, loaded.created) == ({"m-3"}, frozenset())
        await store.commit([msgspec.structs.replace(commit(2, [entry(3)]), arrived=("m-3",))])
        [loaded] = await store.load([asked])
        assert (loaded.awaited, loaded.created) == (frozenset(), {"m-3"})

    async def test_old_ledger_entries_are_trimmed(self, store: Store) -> None:
        await store.commit([commit(0, [entry(n, minute=n) for n in range(1, 5)])])
        before = START + dt.timedelta(minutes=3)
        await store.commit([commit(4, [entry(5, minute=0)], trim_before=before)])
        ids = [f"create/m-{n}/0" for n in range(1, 6)]
        [loaded] = await store.load([need(records=ids, turns=[f"m-{n}" for n in range(1, 6)])])
        assert loaded.applied == set(ids[2:])  # a commit's own entries outlive it whatever their age
        assert loaded.created == {"m-3", "m-4", "m-5"}
        assert loaded.conversation.header.version == 5

    async def test_a_commit_trims_a_bounded_number(self, store: Store) -> None:
        entries = [entry(n) for n in range(1, TRIM_LIMIT + 1)]  # two fields each
        await store.commit([commit(0, entries)])
        ids = [each.id for each in entries]
        for version, left in ((TRIM_LIMIT, TRIM_LIMIT), (TRIM_LIMIT + 1, 0)):
            later = commit(
                version, [entry(version + 1, minute=9)], trim_before=START + dt.timedelta(minutes=1)
            )
            assert await store.commit([later]) == [True]
            [loaded] = await store.load([need(records=ids, turns=[each.turn or "" for each in entries])])
            assert len(loaded.applied) + len(loaded.created) == left

    @pytest.mark.parametrize("name", ODD_NAMES)
    async def test_any_name_is_its_own(self, store: Store, name: str) -> None:
        key = ConversationKey(name, name)
        await store.commit([commit(0, [entry(1, name)], key=key, holders={name: {name: SUPPORT}})])
        [loaded, other] = await store.load(
            [need(name, key=key, records=[name]), need(key=ConversationKey(name, name + "x"))]
        )
        assert (loaded.conversation.tenant, loaded.conversation.name) == (name, name)
        assert loaded.conversation.holders == {name: {name: SUPPORT}}
        assert loaded.applied == {name}
        assert other.conversation.header.version == 0

    async def test_neighbours_do_not_mix(self, store: Store) -> None:
        near = [ConversationKey("a", "b/c"), ConversationKey("a/b", "c"), ConversationKey("a", "b%2Fc")]
        assert await store.commit([commit(0, key=near[0])]) == [True]
        assert [x.conversation.header.version for x in await store.load([need(key=k) for k in near])] == [
            1,
            0,
            0,
        ]

    async def test_of_two_racing_commits_exactly_one_wins(self, store: Store) -> None:
        for version in range(20):
            racing = [commit(version, [entry(version + 1, f"{version}/{n}")]) for n in range(4)]
            taken = await asyncio.gather(*(store.commit([each]) for each in racing))
            assert sorted(taken) == [[False], [False], [False], [True]]
            winner = racing[taken.index([True])].entries[0].id
            ids = [each.entries[0].id for each in racing]
            [loaded] = await store.load([need(records=ids)])
            assert loaded.applied == {winner}

    async def test_many_conversations_in_one_call(self, store: Store) -> None:
        keys = [ConversationKey("default", f"room-{n}") for n in range(120)]
        assert await store.commit([commit(0, key=key) for key in keys]) == [True] * 120
        assert await store.commit([commit(n % 2, key=key) for n, key in enumerate(keys[:4])]) == [True] * 4
        loaded = await store.load([need("u-1", key=key) for key in reversed(keys)])
        assert [each.conversation.name for each in loaded] == [key.name for key in reversed(keys)]
        assert {each.conversation.header.version for each in loaded[:-4]} == {1}

    async def test_a_rebuild_that_began_is_known_until_it_ends(self, store: Store) -> None:
        seen = [await store.marked()]
        for rebuilding in (True, True, False, False):
            await store.mark(rebuilding=rebuilding)
            seen.append(await store.marked())
        assert seen == [False, True, True, False, False]

    async def test_closing_twice_is_harmless(self, store: Store) -> None:
        await store.close()
        await store.close()
        assert (await store.load([need()]))[0].conversation.header.version == 0


class TestMemoryStore(Contract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore("live")


class TestRedisStore(Contract):
    @pytest.fixture
    async def store(self, redis_url: str, prefix: str) -> AsyncIterator[Store]:
        store = RedisStore(redis_url, "live", prefix=prefix)
        yield store
        await store.close()


_keys = st.sampled_from([ConversationKey("default", "a"), ConversationKey("default", "b")])
_records = st.lists(st.integers(1, 6), min_size=0, max_size=3, unique=True)
_states = st.builds(msgspec.structs.replace, st.sampled_from([SUPPORT, OPPOSE]), confidence=st.floats(0, 1))
_holders = st.dictionaries(
    st.text(max_size=3).filter(bool), st.dictionaries(st.text(max_size=2), _states, max_size=2), max_size=2
)
_commits = st.tuples(
    st.just("commit"),
    _keys,
    st.booleans(),  # whether it expects the version before
    _records,
    _holders,
    st.none() | st.integers(0, 6),
    st.sets(st.integers(1, 6)),  # entries it changes, if they are there
    st.booleans(),  # whether its records wait for their turns
)
_steps = st.lists(_commits | st.tuples(st.just("delivered"), _keys, st.sets(st.integers(1, 9))), max_size=12)


@settings(max_examples=60, deadline=None)
@given(steps=_steps)
async def test_the_twins_never_differ(redis_url: str, steps: list[tuple]) -> None:  # type: ignore[type-arg]
    redis, memory = RedisStore(redis_url, "live", prefix=f"test-{uuid4().hex}"), MemoryStore("live")
    names: set[str] = set()
    try:
        for step in steps:
            if step[0] == "delivered":
                await redis.delivered({step[1]: step[2]})
                await memory.delivered({step[1]: step[2]})
                continue
            _, key, stale, records, holders, trim, changes, waits = step
            names |= holders.keys()
            [known] = await memory.load([need(key=key)])
            version = max(0, known.conversation.header.version - stale)
            entries = [entry(version + n, f"r-{r}", minute=r) for n, r in enumerate(records, 1)]
            entries = [
                msgspec.structs.replace(each, op="edit", waits=True) if waits else each for each in entries
            ]
            before = None if trim is None else START + dt.timedelta(minutes=trim)
            changed = [entry(90 + r, f"r-{r}", minute=r) for r in sorted(changes)]
            sent = msgspec.structs.replace(
                commit(version, entries, key=key, holders=holders, trim_before=before),
                changed=[each for each in changed if each.id not in {own.id for own in entries}],
                forgotten=sorted(names - holders.keys())[:1],
                arrived=[] if waits else [each.turn for each in entries if each.turn is not None],
            )
            assert await redis.commit([sent]) == await memory.commit([sent])
            assert await redis.ledgers([key]) == await memory.ledgers([key])
            asked = need(
                *names, key=key, records=[f"r-{n}" for n in range(7)], turns=[f"m-{n}" for n in range(20)]
            )
            assert await redis.load([asked]) == await memory.load([asked])
    finally:
        await redis.close()
