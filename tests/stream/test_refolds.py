import datetime as dt
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from models.reader import ExplainRequest, ObserveRequest
from stream import isolation, waves
from stream.chain import Item
from stream.outbox import FLIPS, JOURNAL, STANCES, STATES
from stream.processor import Bound, Processed, Processor
from stream.store.codec import gone_fields
from stream.store.memory import MemoryStore
from stream.store.port import ConversationKey, Need, Store
from stream.store.redis import RedisStore
from tests.stream.fakes import START, CountingReader, FlakyStore, chains, items, target, turn
from tests.stream.store.dump import dump
from tracker import keys
from tracker.conversation import Rules
from tracker.observations import Explanation, Observation
from tracker.records import DeleteTurn, EditTurn, EraseHolder, OverrideStance, Reason, Record
from tracker.stances import Stance

A, B = ConversationKey("default", "a"), ConversationKey("default", "b")
TARGET = keys.target_id("default", "a", "whether x")
TALK = [target(), turn("1"), turn("2", "-1", seconds=2)]


def edit(name: str, text: str, room: str = "a") -> EditTurn:
    return EditTurn(conversation=room, turn=name, text=text, sent_at=START, revision=1)


def delete(name: str, room: str = "a") -> DeleteTurn:
    return DeleteTurn(conversation=room, turn=name, sent_at=START)


def made(store: Store, reader: Any = None, **rest: Any) -> Processor:
    return Processor(store, reader or CountingReader(), Rules(), **rest)


def sent(result: Processed, topic: str, key: ConversationKey = A) -> list[Any]:
    return [
        message.value and msgspec.json.decode(message.value)
        for _, messages in sorted(result.outboxes[key].items())
        for message in messages
        if message.topic == topic
    ]


def told(result: Processed, topic: str = STANCES) -> list[tuple[str, str, str]]:
    return [
        (event["type"].rpartition(".")[2], event["data"]["from"], event["data"]["to"])
        for event in sent(result, topic)
    ]


async def after(store: Store, given: Sequence[Record]) -> None:
    """A conversation with these records applied and all of it delivered."""
    result = await made(store).process(items(given))
    assert (result.refusals, result.unfinished) == ([], [])
    await store.delivered({key: tuple(outbox) for key, outbox in result.outboxes.items()})


async def stance(store: Store, holder: str = "ann") -> str:
    [loaded] = await store.load([Need(A, frozenset({holder}))])
    state = loaded.conversation.holders.get(holder, {}).get(TARGET)
    return state.stance if state else Stance.UNKNOWN


async def test_no_ledger_is_loaded_where_no_record_takes_it() -> None:
    store = FlakyStore()
    await after(store, TALK)
    assert store.ledgers_loaded == []


async def test_turns_that_no_correction_waited_for_have_nothing_taken_out_of_the_store() -> None:
    [chain] = await chains(MemoryStore("live"), TALK)
    while not chain.finished:
        await waves.run([chain], CountingReader(), Rules())
    assert gone_fields(chain.commit(None)) == []


async def test_a_ledger_is_loaded_once_for_all_the_corrections_of_a_batch() -> None:
    store = FlakyStore()
    await after(store, [*TALK, target("b")])
    store.loads.clear()
    given = [edit("1", "+0"), turn("3", seconds=3), delete("3"), turn("late", "-1", seconds=1)]
    result = await made(store).process(items([*given, turn("1", room="b")]))
    assert (result.refusals, result.unfinished) == ([], [])
    assert store.ledgers_loaded == [["a"]]
    assert store.loads == [["a", "b"]]
    assert await stance(store) == "oppose"


async def test_the_states_of_holders_whom_the_batch_does_not_name_are_loaded_with_it() -> None:
    store = FlakyStore()
    await after(store, [*TALK, turn("3", "-1", holder="bob", seconds=3)])
    store.loads.clear()
    result = await made(store).process(items([edit("3", "+1"), delete("2")]))
    assert store.loads == [["a"], ["a"]]
    assert told(result) == [
        ("retracted", "unknown", "oppose"), ("established", "unknown", "support"),
        ("retracted", "support", "oppose"),
    ]  # fmt: skip
    assert (await stance(store, "bob"), await stance(store)) == ("support", "support")


async def test_retractions_of_flips_go_to_the_flips_topic_and_nothing_else_does() -> None:
    store = MemoryStore("live")
    await after(store, TALK)
    result = await made(store).process(items([edit("1", "hm")]))
    assert told(result) == [
        ("retracted", "unknown", "support"), ("retracted", "support", "oppose"),
        ("established", "unknown", "oppose"),
    ]  # fmt: skip
    assert told(result, FLIPS) == [("retracted", "support", "oppose")]
    assert sent(result, FLIPS)[0] in sent(result, STANCES)


async def test_a_state_that_is_no_more_leaves_a_tombstone() -> None:
    store = MemoryStore("live")
    await after(store, TALK[:2])
    result = await made(store).process(items([delete("1")]))
    outbox = [message for messages in result.outboxes[A].values() for message in messages]
    row = keys.holder_key("default", "a", "ann", TARGET)
    assert [message.value for message in outbox if message.topic == STATES and message.key == row] == [None]
    [journal] = sent(result, JOURNAL)
    assert (journal["forgotten"], journal["gone"]) == ([["ann", TARGET]], [2])
    [loaded] = await store.load([Need(A, frozenset({"ann"}))])
    assert loaded.conversation.holders == {}


async def test_an_edit_waits_in_the_store_for_its_turn() -> None:
    store = FlakyStore()
    await after(store, [target(), edit("1", "-1 indeed")])
    asked = Need(A, turns=frozenset({"1"}))
    assert [kept.awaited for kept in await store.load([asked])] == [{"1"}]
    result = await made(store).process(items([turn("1")]))
    assert told(result) == [("established", "unknown", "oppose")]
    assert store.ledgers_loaded == [["a"], ["a"]]
    assert [kept.awaited for kept in await store.load([asked])] == [frozenset()]
    await made(store).process(items([turn("2", "-1")]))
    assert len(store.ledgers_loaded) == 2


async def test_a_turn_that_comes_in_the_batch_of_its_early_deletion_is_deleted_at_once() -> None:
    store, reader = FlakyStore(), CountingReader()
    result = await made(store, reader).process(items([target(), delete("1"), turn("1"), turn("2")]))
    assert (reader.turns, told(result)) == (["2"], [("established", "unknown", "support")])


async def test_refolds_of_many_conversations_are_read_side_by_side() -> None:
    store, reader = FlakyStore(), CountingReader()
    rooms = ("a", "b", "c")
    await after(store, [record for room in rooms for record in (target(room), turn("1", room=room))])
    await made(store, reader).process(items([edit("1", "-1", room) for room in rooms]))
    assert reader.observed == [["1", "1", "1"]]


async def test_only_a_turn_read_under_another_state_is_read_again() -> None:
    store, reader = FlakyStore(), CountingReader()
    await after(store, [*TALK, turn("3", "hm", seconds=3), turn("4", "-1", seconds=4)])
    await made(store, reader).process(items([turn("late", "-1", seconds=1)]))
    assert (reader.turns, reader.explained) == (["late", "2"], [["late"]])


async def test_a_conversation_in_the_waves_is_committed_though_a_refold_finds_the_reader_away() -> None:
    store = FlakyStore()
    await after(store, [*TALK, target("b")])
    reader = CountingReader(away=lambda seen: len(seen.observed) > 1)
    result = await made(store, reader).process(items([edit("1", "-1"), turn("1", room="b"), delete("2")]))
    assert (result.outage is not None, result.unfinished) == (True, [0, 2])
    [a, b] = await store.load([Need(A), Need(B)])
    assert (a.conversation.header.version, b.conversation.header.version) == (3, 2)
    again = await made(store).process(items([edit("1", "-1"), turn("1", room="b"), delete("2")]))
    assert (again.refusals, again.unfinished, await stance(store)) == ([], [], "oppose")


async def test_a_late_turn_that_cannot_be_read_is_refused_and_holds_nobody_up() -> None:
    store, reader = FlakyStore(), CountingReader(rejects=frozenset({"late"}))
    await after(store, TALK)
    given = [turn("late", "+0", seconds=1), turn("3", seconds=3), edit("1", "+0")]
    result = await made(store, reader).process(items(given))
    assert [(refusal.index, refusal.refused.reason) for refusal in result.refusals] == [(0, Reason.FAILED)]
    assert "cannot read ['late']" in result.refusals[0].refused.got
    assert (result.unfinished, await stance(store)) == ([], "support")


async def test_another_turn_that_cannot_be_read_again_is_folded_as_it_was() -> None:
    store, reader = FlakyStore(), CountingReader(rejects=frozenset({"2"}))
    await after(store, TALK)
    result = await made(store, reader).process(items([edit("1", "+0")]))
    assert [event["data"]["marks"] for event in sent(result, STANCES)[2:]] == [[], ["stale"]]


async def test_a_turn_that_breaks_the_engine_is_refused_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "PAUSE_SECONDS", 0.0)
    store, reader = FlakyStore(), CountingReader(breaks=frozenset({"late"}))
    await after(store, TALK)
    result = await made(store, reader, attempts=2).process(items([turn("late", seconds=1), edit("1", "-1")]))
    assert [refusal.index for refusal in result.refusals] == [0]
    assert await stance(store) == "oppose"


async def test_a_flip_that_cannot_be_explained_is_told_without_a_trigger() -> None:
    store, reader = FlakyStore(), CountingReader(explains_not=frozenset({"late"}))
    await after(store, [*TALK, turn("3", "hm", seconds=3)])
    result = await made(store, reader).process(items([turn("late", "-1", seconds=1)]))
    flips = [event for event in sent(result, STANCES) if event["type"].endswith("flipped")]
    assert ["trigger" in event["data"] for event in flips] == [False]


async def test_mixed_up_answers_are_an_outage_and_move_nothing() -> None:
    class Mixed(CountingReader):
        async def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
            right = await super().observe(requests)
            return [msgspec.structs.replace(one, holder="somebody else") for one in right]

    store = FlakyStore()
    await after(store, TALK)
    result = await made(store, Mixed()).process(items([edit("1", "-1")]))
    assert (result.outage is not None, result.unfinished, await stance(store)) == (True, [0], "oppose")


async def test_the_reader_sees_what_the_window_held_before_the_turn() -> None:
    seen: list[ObserveRequest | ExplainRequest] = []

    class Looking(CountingReader):
        async def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
            seen.extend(requests)
            return await super().observe(requests)

        async def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
            seen.extend(requests)
            return await super().explain(requests)

    store = FlakyStore()
    await after(store, [*TALK, turn("3", "hm", seconds=3)])
    await made(store, Looking()).process(items([edit("2", "+0 well")]))
    observed, explained = seen[:2]
    assert isinstance(observed, ObserveRequest)
    assert isinstance(explained, ExplainRequest)
    assert (observed.turn.text, observed.state, observed.revision) == ("+0 well", "support", 1)
    assert [one.turn for one in observed.window] == ["1"]
    assert (explained.observed, explained.after) == (observed, "neutral")


@pytest.mark.parametrize("bound", [Bound(waves=1), Bound(seconds=0.0)], ids=["waves", "seconds"])
async def test_a_bounded_batch_of_refolds_comes_on_and_to_the_same(bound: Bound) -> None:
    store = FlakyStore()
    await after(store, TALK)
    given = items([edit("1", "-1"), turn("late", "+0", seconds=1), delete("2"), turn("3", seconds=3)])
    left, rounds = given, 0
    while left:
        result = await made(store, bound=bound).process(left)
        assert len(result.unfinished) < len(left)
        left = [item for item in left if item.index in set(result.unfinished)]
        rounds += 1
    assert (rounds > 1, await stance(store)) == (True, "support")


async def test_a_refold_under_which_the_conversation_moved_is_done_again_from_a_new_ledger() -> None:
    store = FlakyStore()
    await after(store, TALK)

    async def rival(kept: MemoryStore) -> None:
        await made(kept).process(items([delete("2")]))

    store.rivals.append(rival)
    result = await made(store).process(items([edit("1", "-1")]))
    assert store.ledgers_loaded == [["a"], ["a"], ["a"]]
    assert await stance(store) == "oppose"
    assert [event["data"]["turn"] for event in sent(result, STANCES)] == ["2", "1", "1"]


async def test_a_correction_that_is_too_late_is_refused_by_name() -> None:
    late = Item(0, delete("1"), receipt=START + dt.timedelta(days=8))
    result = await made(FlakyStore(), live=True).process([late])
    assert [refusal.refused.reason for refusal in result.refusals] == [Reason.TOO_LATE]


def override(to: Stance | None, ident: str, seconds: float, **rest: Any) -> OverrideStance:
    about = {"by": "mod", "reason": "asked", "sent_at": turn("", seconds=seconds).sent_at} | rest
    return OverrideStance(conversation="a", id=ident, to=to, **about)


COURSE: list[Record] = [
    *TALK,
    turn("b1", "+1", holder="bo", seconds=3),
    turn("3", "+1", seconds=4, reply_to="b1"),
    turn("late", "+0", seconds=1),
    edit("unseen", "+0"),
    turn("unseen", "-1", seconds=5),
    override(Stance.NEUTRAL, "o-1", 6, turn="2"),
    override(Stance.OPPOSE, "o-2", 7, holder="ann", target=TARGET, expires_at=turn("", seconds=9).sent_at),
    turn("4", "-1", seconds=8),
    turn("b2", "-1", holder="bo", seconds=9),
    delete("1"),
    EraseHolder(conversation="a", id="forget", holder="bo", sent_at=turn("", seconds=10).sent_at),
]


async def run(store: Store, sizes: int) -> list[Any]:
    """All that the course sends, applied so many records at a time, each batch twice."""
    found: list[Any] = []
    given = [Item(index, record, f"t/0/{index}") for index, record in enumerate(COURSE)]
    for start in range(0, len(given), sizes):
        batch = given[start : start + sizes]
        result = await made(store).process(batch)
        assert (result.refusals, result.unfinished) == ([], [])
        assert (await made(store).process(batch)).outboxes == result.outboxes
        messages = (message for _, sent in sorted(result.outboxes[A].items()) for message in sent)
        found += [message for message in messages if message.key != keys.conversation_key("default", "a")
                  or message.topic != STATES]  # fmt: skip
        await store.delivered({A: tuple(result.outboxes[A])})
    return found


@pytest.mark.parametrize("sizes", [1, 4, 100])
async def test_redis_keeps_what_memory_keeps_and_no_name_of_an_erased_person(
    redis_url: str, prefix: str, sizes: int
) -> None:
    memory, redis = MemoryStore("live"), RedisStore(redis_url, "live", prefix=prefix)
    try:
        whole = await run(memory, 100)
        assert await run(redis, sizes) == whole
        for store in (memory, redis):
            assert await store.ledgers([A]) == await memory.ledgers([A])
            asked = Need(A, frozenset({"ann", "bo"}), turns=frozenset({"unseen", "1"}))
            assert await store.load([asked]) == await memory.load([asked])
    finally:
        await redis.close()
    assert "'bo'" not in str(await dump(redis_url, "live", prefix))
    assert '"bo"' not in str(await dump(redis_url, "live", prefix))
    types = [
        msgspec.json.decode(one.value)["type"].rpartition(".")[2] for one in whole if one.topic == STANCES
    ]
    assert set(types) == {"established", "flipped", "retracted", "overridden", "restored", "forgotten"}
