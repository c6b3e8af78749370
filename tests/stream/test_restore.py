"""What a store has lost comes back from journal and turns, as it was, without the model."""

import copy
import datetime as dt
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from models.reader import Reader
from stream import restore, topics
from stream.chain import Item
from stream.delivery import deliver
from stream.outbox import JOURNAL
from stream.processor import Bound, Processor
from stream.restore import JournalUnavailable, Restorer, Unrestorable
from stream.sender import Sender
from stream.settings import Settings
from stream.store.memory import MemoryStore
from stream.store.port import ConversationKey, Message, Need
from tests.stream.fakes import START, CountingReader, MemorySender, target, turn
from tracker import keys, records
from tracker.conversation import Rules
from tracker.records import DeleteTurn, EditTurn, Record

ROOMS = [ConversationKey("default", room) for room in "ab"]
ABOUT: dict[str, Any] = {"conversation": "a", "sent_at": START + dt.timedelta(minutes=5)}
COURSE: list[Record] = [
    target(),
    target("b"),
    *(turn(str(n), text, seconds=10 * n) for n, text in enumerate(["+1", "x", "-1", "+1", "+0"])),
    turn("late", "-1", seconds=15),
    turn("1", "-1", room="b"),
    EditTurn(**ABOUT, turn="0", text="-1"),
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

    def processing(self, store: MemoryStore) -> Any:
        def made(reader: Reader) -> Processor:
            return Processor(store, reader, Rules(), bound=Bound(waves=2))  # some are left for another time

        return made

    async def restore(self, store: MemoryStore) -> tuple[MemorySender, CountingReader]:
        sender, reader = MemorySender(), CountingReader()
        await Restorer(self.settings, store, reader, sender, self.processing(store)).restore([0])
        return sender, reader


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
    await stand.produce(COURSE)
    await stand.apply(stand.items[:kept])
    survivor = copy.deepcopy(stand.store)
    for item in stand.items[kept:]:
        await stand.apply([item])
    sender, reader = await stand.restore(survivor)
    assert await contents(survivor) == await contents(stand.store)
    assert len(sender.of(JOURNAL)) == len(COURSE) - kept
    assert reader.observed == reader.explained == []


async def test_what_is_sent_again_is_what_was_sent(stand: Stand) -> None:
    await stand.produce(COURSE)
    sent = MemorySender()
    for item in stand.items:
        result = await stand.processing(stand.store)(CountingReader()).process([item])
        messages = [one for outbox in result.outboxes.values() for of_it in outbox.values() for one in of_it]
        await sent.send(messages)
        await deliver(result.outboxes, stand.store, stand.sender)
    again, _ = await stand.restore(MemoryStore("r"))
    for name in (JOURNAL, "stances", "flips"):
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
    sender, _ = await stand.restore(MemoryStore("r"))
    assert len(sender.of(JOURNAL)) == 2


async def test_an_empty_journal_has_lost_nothing(stand: Stand) -> None:
    sender, _ = await stand.restore(MemoryStore("r"))
    assert sender.sent == []


async def test_without_a_broker_the_journal_is_away() -> None:
    settings = Settings(broker="kafka://127.0.0.1:1", run="r")
    store = MemoryStore("r")
    with pytest.raises(JournalUnavailable):
        await Stand(settings).restore(store)
