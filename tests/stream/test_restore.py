"""What a store has lost comes back from journal and turns, as it was, without the model."""

import copy
import datetime as dt
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from models.reader import Reader
from stream import restore, topics
from stream.chain import Item, Refusal
from stream.delivery import deliver
from stream.embedded import EmbeddedBroker
from stream.outbox import JOURNAL
from stream.processor import Bound, Processed, Processor
from stream.restore import JournalUnavailable, Restorer, Unrestorable
from stream.sender import Sender, SenderUnavailable
from stream.settings import Settings
from stream.store.memory import MemoryStore
from stream.store.port import ConversationKey, Message, Need
from tests.stream.fakes import START, CountingReader, MemorySender, target, turn
from tracker import keys, records
from tracker.conversation import Rules
from tracker.observations import Mark
from tracker.records import DeleteTurn, EditTurn, Reason, Record, Refused

ROOMS = [ConversationKey("default", room) for room in "ab"]
ABOUT: dict[str, Any] = {"conversation": "a", "sent_at": START + dt.timedelta(minutes=5)}
COURSE: list[Record] = [
    target(),
    target("b"),
    *(turn(str(n), text, seconds=10 * n) for n, text in enumerate(["+1", "x", "-1", "+1", "+0"])),
    turn("late", "-1", seconds=15),
    turn("1", "-1", room="b"),
    EditTurn(**ABOUT, turn="0", text="-1"),
    EditTurn(**ABOUT, turn="2", text="+1", revision=0, id="edit-2"),  # no newer than what it replaces
    DeleteTurn(**ABOUT, turn="3"),
    turn("2", "+1", room="b", seconds=3),
]


class Stand:
    """A run whose records stand in a real turns topic and went through a processor and a sender."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.store = settings, MemoryStore(settings.run)
        self.sender, self.items = Sender(settings), list[Item]()

    async def produce(self, given: Sequence[Record]) -> None:
        async with AIOKafkaProducer(bootstrap_servers=self.settings.bootstrap_servers) as producer:
            for record in given:
                key = keys.conversation_key(record.tenant, record.conversation)
                name = topics.topic(self.settings, "turns")
                sent = await producer.send_and_wait(name, records.encode(record), key=key)
                source = f"{name}/{sent.partition}/{sent.offset}"
                self.items.append(Item(len(self.items), record, source))

    async def apply(self, items: Sequence[Item]) -> None:
        result = await self.processing(self.store)(CountingReader()).process(items)
        assert not result.refusals
        await deliver(result.outboxes, self.store, self.sender)

    async def losing_after(self, kept: int) -> MemoryStore:
        """Apply the course, each record by itself; a store that has lost all but its first records."""
        await self.produce(COURSE)
        await self.apply(self.items[:kept])
        survivor = copy.deepcopy(self.store)
        for item in self.items[kept:]:
            await self.apply([item])
        return survivor

    def processing(self, store: MemoryStore) -> Any:
        def made(reader: Reader) -> Processor:
            return Processor(store, reader, Rules(), bound=Bound(waves=2))  # some are left for another time

        return made

    async def restore(
        self, store: MemoryStore, sender: MemorySender | None = None, *, held: bool = True
    ) -> tuple[MemorySender, CountingReader, list[int]]:
        sender, reader = sender or MemorySender(), CountingReader()
        restorer = Restorer(self.settings, store, reader, sender, self.processing(store))
        whole: list[int] = []
        async for partition, stuck in restorer.restore([0], lambda _: held):
            if stuck is not None:
                raise stuck
            whole.append(partition)
        return sender, reader, whole


class FailingSender(MemorySender):
    """Sends so often, and then is away."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    async def send(self, messages: Sequence[Message]) -> None:
        self.down, self.times = int(self.times == 0), self.times - 1
        await super().send(messages)


@pytest.fixture
async def stand(broker: str, topic_prefix: str) -> AsyncIterator[Stand]:
    settings = Settings(
        broker=f"kafka://{broker}", topic_prefix=topic_prefix, partitions=1, run="r", broker_idempotence=False
    )
    await topics.ensure(settings)
    made = Stand(settings)
    yield made
    await made.sender.close()


async def contents(store: MemoryStore) -> object:
    """All that a store holds of the rooms."""
    needs = [Need(key, frozenset({"ann"})) for key in ROOMS]
    return await store.load(needs), await store.ledgers(ROOMS)


@pytest.mark.parametrize("kept", [0, 1, 4, 8, 11, len(COURSE)])
async def test_what_was_lost_comes_back_as_it_was(
    stand: Stand, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore, "STRETCH", 2)
    survivor = await stand.losing_after(kept)
    sender, reader, whole = await stand.restore(survivor)
    assert whole == [0]
    assert await contents(survivor) == await contents(stand.store)
    assert sender.of(JOURNAL) == []
    assert reader.observed == reader.explained == []


async def test_a_restoring_that_broke_off_is_gone_on_with(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore, "STRETCH", 2)
    survivor = await stand.losing_after(2)
    with pytest.raises(SenderUnavailable):
        await stand.restore(survivor, FailingSender(3))
    assert await contents(survivor) != await contents(stand.store)
    await stand.restore(survivor)
    assert await contents(survivor) == await contents(stand.store)


async def test_a_partition_that_went_is_left_to_another(stand: Stand) -> None:
    survivor = await stand.losing_after(2)
    sender, _, whole = await stand.restore(survivor, held=False)
    assert (whole, sender.sent) == ([], [])


async def test_what_is_refused_now_is_a_dead_letter(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    survivor = await stand.losing_after(2)

    async def refusing(self: Processor, items: Sequence[Item]) -> Processed:
        refused = Refused(Reason.TOO_LATE, "sent_at", "time 9 days before receipt", "use replay")
        return Processed(refusals=[Refusal(item.index, refused) for item in items])

    monkeypatch.setattr(Processor, "process", refusing)
    sender, _, whole = await stand.restore(survivor)
    assert whole == [0]
    assert [headers["volteface.reason"] for _, headers in sender.letters] == [b"too_late"] * (len(COURSE) - 2)


async def test_live_records_keep_the_time_they_counted_at(
    tansu_broker: EmbeddedBroker, topic_prefix: str
) -> None:
    """Of a topic without append times, the agent's own clock clamped them, and stands in no message."""
    settings = Settings(
        broker=tansu_broker.url, topic_prefix=topic_prefix, partitions=1, broker_idempotence=False
    )
    await topics.ensure(settings)
    stand = Stand(settings)
    await stand.produce([target(), turn("1", seconds=600)])
    stand.items = [Item(one.index, one.record, one.source, START) for one in stand.items]
    await stand.apply(stand.items)
    [loaded] = await stand.store.load([Need(ROOMS[0])])
    assert loaded.conversation.header.newest == START
    survivor = MemoryStore("live")
    await stand.restore(survivor)
    [entries] = await stand.store.ledgers(ROOMS[:1])
    [restored] = await survivor.ledgers(ROOMS[:1])
    assert Mark.CLAMPED in entries[2].marks
    assert Mark.CLAMPED in restored[2].marks
    await stand.sender.close()


async def test_what_is_sent_again_is_what_was_sent(stand: Stand) -> None:
    await stand.produce(COURSE)
    sent = MemorySender()
    for item in stand.items:
        result = await stand.processing(stand.store)(CountingReader()).process([item])
        messages = [one for outbox in result.outboxes.values() for of_it in outbox.values() for one in of_it]
        await sent.send(messages)
        await deliver(result.outboxes, stand.store, stand.sender)
    again, *_ = await stand.restore(MemoryStore("r"))
    assert again.of(JOURNAL) == []
    for name in ("stances", "flips"):
        assert sent.of(name), name
        assert of_rooms(again, name) == of_rooms(sent, name), name


def of_rooms(sender: MemorySender, name: str) -> list[list[bytes | None]]:
    """What was sent to a topic, in order, room by room."""
    found = [message for message in sender.sent if message.topic == name]
    rooms = (keys.conversation_key(key.tenant, key.name) for key in ROOMS)
    return [[message.value for message in found if message.key == room] for room in rooms]


async def test_a_record_that_no_topic_holds_any_more_is_not_passed_over(stand: Stand) -> None:
    await stand.produce(COURSE[:3])
    [first, *others] = stand.items
    for item in (Item(first.index, first.record, "another/0/0"), *others):
        await stand.apply([item])
    with pytest.raises(Unrestorable, match="1 applied records, which the turns topic no longer holds"):
        await stand.restore(MemoryStore("r"))


async def test_a_place_where_another_record_stands_now_is_none(stand: Stand) -> None:
    """A topic that was made anew counts its offsets from 0 again."""
    await stand.produce(COURSE[:3])
    for item in (stand.items[0], Item(1, turn("9"), stand.items[1].source)):
        await stand.apply([item])
    with pytest.raises(Unrestorable):
        await stand.restore(MemoryStore("r"))


async def test_too_much_is_said_to_be_a_rebuilds(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restore, "MOST_LOST", 3)
    await stand.produce(COURSE)
    for item in stand.items:
        await stand.apply([item])
    with pytest.raises(Unrestorable, match="volteface rebuild"):
        await stand.restore(MemoryStore("r"))


async def test_what_is_no_entry_of_ours_is_passed_over(stand: Stand) -> None:
    await stand.produce(COURSE[:2])
    await stand.apply(stand.items)
    await stand.sender.send([Message(JOURNAL, b"k", b"not ours"), Message(JOURNAL, b"k", None)])
    store = MemoryStore("r")
    await stand.restore(store)
    assert await contents(store) == await contents(stand.store)


@pytest.mark.parametrize("beyond", ["00", "00000"], ids=["near", "far"])
async def test_a_place_past_the_end_of_a_topic_that_was_made_anew_is_none(stand: Stand, beyond: str) -> None:
    await stand.produce(COURSE[:2])
    for item in (stand.items[0], Item(1, stand.items[1].record, stand.items[1].source + beyond)):
        await stand.apply([item])
    with pytest.raises(Unrestorable):
        await stand.restore(MemoryStore("r"))


async def test_an_entry_that_the_journal_never_got_is_not_passed_over(stand: Stand) -> None:
    """Too large for a topic, perhaps: what came after it would take its place."""
    await stand.produce(COURSE[:4])
    for item in stand.items:
        result = await stand.processing(stand.store)(CountingReader()).process([item])
        await deliver({} if item.index == 2 else result.outboxes, stand.store, stand.sender)
        for key, outbox in result.outboxes.items():
            await stand.store.delivered({key: tuple(outbox)})
    with pytest.raises(Unrestorable, match="1 of which the journal does not tell"):
        await stand.restore(MemoryStore("r"))


async def test_outboxes_that_still_hold_something_are_sent_and_emptied(stand: Stand) -> None:
    """That they were delivered is a write, too, and may be lost; their conversation may never speak again."""
    await stand.produce(COURSE[:4])
    for item in stand.items:
        result = await stand.processing(stand.store)(CountingReader()).process([item])
        for outbox in result.outboxes.values():
            await stand.sender.send([message for sent in outbox.values() for message in sent])
    [before] = await stand.store.load([Need(ROOMS[0])])
    assert before.outbox
    sender, *_ = await stand.restore(stand.store)
    assert len(sender.of(JOURNAL)) == len(COURSE[:4])
    assert [one.outbox for one in await stand.store.load([Need(key) for key in ROOMS])] == [{}, {}]


async def test_an_empty_journal_has_lost_nothing(stand: Stand) -> None:
    sender, _, whole = await stand.restore(MemoryStore("r"))
    assert sender.sent == []
    assert whole == [0]


async def test_without_a_broker_the_journal_is_away() -> None:
    settings = Settings(broker="kafka://127.0.0.1:1", run="r")
    store = MemoryStore("r")
    with pytest.raises(JournalUnavailable):
        await Stand(settings).restore(store)
