import datetime as dt
import itertools
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.reader import ProposeRequest
from stream.chain import Item
from stream.outbox import FLIPS, JOURNAL, STANCES, TURNS
from stream.processor import COMMIT_ATTEMPTS, Bound, CommitContended, Processed, Processor
from stream.store.memory import MemoryStore
from stream.store.port import ConversationKey, Need, StoreUnavailable
from tests.stream.fakes import START, CountingReader, FlakyStore, items, rule, target, turn
from tests.tracker.corrections import ALL, logs
from tests.tracker.strategies import dialogues
from tracker import keys
from tracker.conversation import Rules
from tracker.parsing import parse
from tracker.proposals import Proposal
from tracker.records import Reason, Record, Refused

A, B = ConversationKey("default", "a"), ConversationKey("default", "b")
TALK = [target(), turn("1"), turn("2", "-1"), turn("3", "+1"), turn("4", "+0")]


def made(store: MemoryStore, reader: Any = None, **rest: Any) -> Processor:
    return Processor(store, reader or rule(), Rules(), **rest)


def sent(result: Processed, topic: str) -> list[bytes | None]:
    return [
        message.value
        for outbox in result.outboxes.values()
        for _, messages in sorted(outbox.items())
        for message in messages
        if message.topic == topic
    ]


async def version(store: MemoryStore, key: ConversationKey = A) -> int:
    return (await store.load([Need(key)]))[0].conversation.header.version


async def test_a_batch_is_loaded_once_and_committed() -> None:
    store = FlakyStore()
    result = await made(store).process(items([*TALK, turn("9", room="b")]))
    assert store.loads == [["a", "b"]]
    assert (result.refusals, result.unfinished, result.outage) == ([], [], None)
    assert (await version(store), await version(store, B)) == (5, 1)
    assert [len(sent(result, topic)) for topic in (JOURNAL, STANCES, FLIPS)] == [6, 4, 3]


async def test_a_repeated_record_costs_no_model_call_and_sends_only_what_the_outbox_still_holds() -> None:
    store, reader = FlakyStore(), CountingReader()
    processor = made(store, reader)
    first = await processor.process(items(TALK))
    await store.delivered({A: [1, 2, 3]})
    calls = len(reader.observed), len(reader.explained)
    again = await processor.process(items(TALK))
    assert (len(reader.observed), len(reader.explained)) == calls
    assert again.outboxes == {A: {arrival: first.outboxes[A][arrival] for arrival in (4, 5)}}
    await store.delivered({A: [4, 5]})
    assert (await processor.process(items(TALK))).outboxes == {A: {}}
    assert await version(store) == 5


async def test_a_turn_id_that_another_record_created_is_refused() -> None:
    processor = made(store := FlakyStore())
    await processor.process(items(TALK))
    result = await processor.process(items([turn("1", id="another"), turn("5")]))
    assert [(refusal.index, refusal.refused.reason) for refusal in result.refusals] == [
        (0, Reason.REPEATED_TURN)
    ]
    assert await version(store) == 6


@pytest.mark.parametrize("bound", [Bound(waves=2), Bound(seconds=0.0, waves=100)], ids=["waves", "seconds"])
async def test_a_bound_leaves_the_rest_unfinished_in_order(bound: Bound) -> None:
    store = FlakyStore()
    talk = [
        record
        for pair in zip(TALK, [target("b")] + [turn("1", room="b")] * 4, strict=False)
        for record in pair
    ]
    processor, left, rounds = made(store, bound=bound), items(talk), 0
    while left:
        result = await processor.process(left)
        assert result.unfinished == sorted(result.unfinished)
        assert len(result.unfinished) < len(left), "a batch must come on"
        left = [item for item in left if item.index in set(result.unfinished)]
        rounds += 1
    assert rounds > 1
    assert (await version(store), await version(store, B)) == (5, 2)


async def test_what_was_done_before_an_outage_is_committed() -> None:
    store = FlakyStore()
    reader = CountingReader(away=lambda seen: len(seen.observed) > 1)
    result = await made(store, reader).process(items(TALK))
    assert result.outage is not None
    assert result.unfinished == [2, 3, 4]
    assert await version(store) == 2
    assert len(sent(result, JOURNAL)) == 2
    assert result.refusals == []


async def rival(store: MemoryStore) -> None:
    """Somebody else applies a record of conversation a."""
    number = await version(store)
    await made(store).process(items([turn(f"rival {number}", "hm")]))


async def test_a_moved_version_is_done_again_for_that_conversation_alone() -> None:
    store, reader = FlakyStore(), CountingReader()
    await made(store).process(items([target(), target("b")]))
    store.loads.clear()

    async def once(kept: MemoryStore) -> None:
        await rival(kept)
        store.loads.clear()

    store.rivals.append(once)
    bad = turn("1", room="b", id="refused once")
    result = await made(store, reader).process(
        items([turn("1"), turn("2", "-1"), turn("1", room="b"), bad, turn("2", room="b")])
    )
    assert store.loads == [["a"]]
    assert reader.turns == ["1", "1", "2", "2", "1", "2"]
    assert [refusal.index for refusal in result.refusals] == [3]
    assert (await version(store), await version(store, B)) == (4, 3)
    assert len(sent(result, JOURNAL)) == 4 + 3, "the rival's entry stands in the outbox, too"


async def test_an_outage_is_told_though_another_conversation_is_done_again_without_one() -> None:
    store = FlakyStore()
    await made(store).process(items([target(), target("b")]))
    store.rivals.append(rival)
    reader = CountingReader(away=lambda seen: len(seen.observed) == 2)
    result = await made(store, reader).process(items([turn("1"), turn("1", room="b"), turn("2", room="b")]))
    assert reader.turns == ["1", "1", "2", "1"]
    assert (result.outage is not None, result.unfinished) == (True, [2])


async def test_a_conversation_that_always_moves_is_given_up_for_now() -> None:
    store = FlakyStore()

    async def moving(kept: MemoryStore) -> None:
        store.rivals, kept_rivals = [], store.rivals
        await rival(kept)
        store.rivals = kept_rivals

    store.rivals = [moving] * 100
    with pytest.raises(CommitContended):
        await made(store).process(items([turn("1")]))
    assert len(store.rivals) == 100 - COMMIT_ATTEMPTS


async def test_a_store_that_is_away_is_no_refusal() -> None:
    store = FlakyStore()
    store.down = 1
    processor = made(store)
    with pytest.raises(StoreUnavailable):
        await processor.process(items(TALK))
    assert not (await processor.process(items(TALK))).refusals


async def test_a_room_gives_its_targets_with_the_first_record_and_never_again() -> None:
    asked: list[tuple[str, str]] = []

    def rooms(tenant: str, conversation: str) -> tuple[str, ...]:
        asked.append((tenant, conversation))
        return ("whether tea",)

    processor = made(FlakyStore(), rooms=rooms)
    result = await processor.process(items([turn("1"), turn("2", "-1")]))
    assert len(sent(result, FLIPS)) == 1
    await processor.process(items([turn("3")]))
    assert asked == [("default", "a")]


LIVE = [
    (turn("1"), START, []),
    (turn("2", seconds=-1.0), START, ["late"]),
    (turn("3", seconds=3600.0), START, ["clamped"]),
    (turn("4", reply_to="gone"), START, ["reply_missing"]),
    (turn("5", seconds=-5.0, reply_to="1"), START, ["late"]),
    (turn("6", seconds=-5.0, reply_to="gone"), START, ["late", "reply_missing"]),
]  # fmt: skip


async def test_marks() -> None:
    store = FlakyStore()
    given = [Item(index, record, receipt=receipt) for index, (record, receipt, _) in enumerate(LIVE)]
    result = await made(store, live=True).process(given)
    entries = [msg for msg in sent(result, JOURNAL) if msg]
    found = [msgspec.json.decode(entry)["entry"].get("marks", []) for entry in entries]
    assert found == [marks for _, _, marks in LIVE]


async def test_a_live_record_older_than_the_reach_is_too_late_and_a_replayed_one_is_not() -> None:
    late = START + dt.timedelta(days=8)
    result = await made(FlakyStore(), live=True).process([Item(0, turn("1"), receipt=late)])
    assert [refusal.refused.reason for refusal in result.refusals] == [Reason.TOO_LATE]
    assert not (await made(FlakyStore()).process(items([turn("1")]))).refusals


def cuts(records: Sequence[Record], places: set[int]) -> list[list[Item]]:
    borders = [0, *sorted(places), len(records)]
    return [
        [Item(index, record, f"t/0/{index}") for index, record in enumerate(records)][start:end]
        for start, end in itertools.pairwise(borders)
    ]


async def played(batches: list[list[Item]], bound: Bound) -> tuple[object, ...]:
    """All that a way of cutting comes to: what was sent, what was refused, what is stored."""
    store = MemoryStore("live")
    processor, messages, refused = made(store, bound=bound), [], []
    for batch in batches:
        left = batch
        while left:
            result = await processor.process(left)
            refused += [(refusal.index, str(refusal.refused)) for refusal in result.refusals]
            messages += [
                message for outbox in result.outboxes.values() for each in outbox.values() for message in each
            ]
            await store.delivered({key: tuple(outbox) for key, outbox in result.outboxes.items()})
            left = [item for item in left if item.index in set(result.unfinished)]
    holders = frozenset(getattr(item.record, "holder", "") or "" for batch in batches for item in batch)
    keys = sorted(
        {ConversationKey("default", item.record.conversation) for batch in batches for item in batch}
    )
    kept = [(await store.load([Need(key, holders)]), await store.ledgers([key])) for key in keys]
    # The header's row stands once a commit, so only the last of each key counts, as in a compacted topic.
    states = {message.key: message for message in messages if message.topic == "states"}
    return [message for message in messages if message.topic != "states"], states, sorted(refused), kept


@settings(max_examples=60, deadline=None)
@given(
    records=dialogues() | logs(*ALL),
    places=st.sets(st.integers(1, 30), max_size=6),
    waves=st.sampled_from([1, 3, 64]),
)
async def test_cutting_into_batches_anywhere_changes_nothing(
    records: list[Record], places: set[int], waves: int
) -> None:
    places = {place for place in places if place < len(records)}
    whole = await played(cuts(records, set()), Bound())
    assert await played(cuts(records, places), Bound(waves=waves)) == whole


async def test_order_is_kept_inside_a_conversation_however_the_reader_fails() -> None:
    store = FlakyStore()
    reader = CountingReader(rejects=frozenset({"2"}), away=lambda seen: len(seen.observed) % 3 == 0)
    processor, left, refusals = made(store, reader), items(TALK), list[Refused]()
    while left:
        result = await processor.process(left)
        refusals += [refusal.refused for refusal in result.refusals]
        left = [item for item in left if item.index in set(result.unfinished)]
    assert [refused.reason for refused in refusals] == [Reason.FAILED]
    [loaded] = await store.load([Need(A)])
    assert [seen.turn for seen in loaded.conversation.window] == ["1", "3", "4"]
    assert sorted(loaded.outbox) == [1, 2, 3, 4]


class Rewording(CountingReader):
    """Proposes other words whenever it is asked."""

    async def propose(self, requests: Sequence[ProposeRequest]) -> list[Proposal]:
        self.propositions = [f"whether {len(self.asked)}"]
        return await super().propose(requests)


@settings(max_examples=60, deadline=None)
@given(
    places=st.sets(st.integers(1, 5), max_size=4),
    comings=st.lists(st.booleans(), min_size=1, max_size=6),
    rivals=st.integers(0, 2),
)
async def test_a_redelivered_turn_gives_the_same_target_record(
    places: set[int], comings: list[bool], rivals: int
) -> None:
    """However often its batch comes again, is done again or is cut, before and after what it sent arrived."""
    store, reader = FlakyStore(), Rewording()
    processor = Processor(store, reader, Rules(finds=True))
    talk = [turn(str(number), "hm") for number in range(1, 7)]
    for _ in range(rivals):
        store.rivals.append(
            lambda kept: made(kept).process(items([turn(f"rival {len(store.rivals)}", "hm")]))
        )
    found: list[bytes | None] = []
    for delivered in comings:
        for batch in cuts(talk, places):
            result = await processor.process(batch)
            found += sent(result, TURNS)
            if delivered:
                await store.delivered({key: tuple(outbox) for key, outbox in result.outboxes.items()})
    assert len(set(found)) == 1
    [record] = {parse(value) for value in found}
    assert record.id in {keys.found_id(f"create/{number}/0", "declare") for number in range(1, 7)}
    before = await version(store)
    assert not (await processor.process(items([record, record]))).refusals
    assert await version(store) == before + 1


async def test_turns_behind_a_found_target_are_read_for_it_and_those_before_are_not() -> None:
    store, reader = FlakyStore(), CountingReader(propositions=["whether tea"])
    processor = Processor(store, reader, Rules(finds=True))
    result = await processor.process(items([turn(str(number)) for number in range(1, 6)]))
    [value] = sent(result, TURNS)
    await processor.process(items([parse(value), turn("6", "-1", holder="bob")]))
    assert reader.turns == ["6"]
    [kept] = await store.load([Need(A, frozenset({"ann", "bob"}))])
    assert [state.stance for states in kept.conversation.holders.values() for state in states.values()] == [
        "oppose"
    ]
