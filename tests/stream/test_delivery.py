from stream.delivery import deliver
from stream.store.memory import MemoryStore
from stream.store.port import ConversationKey, Need
from tests.stream.fakes import MemorySender
from tests.stream.store.builders import ROOM, commit, messages, need


async def test_what_is_delivered_leaves_the_outbox() -> None:
    store, sender = MemoryStore("live"), MemorySender()
    await store.commit([commit(0)])
    [loaded] = await store.load([need()])
    await deliver({ROOM: loaded.outbox}, store, sender)
    assert sender.sent == list(messages(1))
    [emptied] = await store.load([need()])
    assert emptied.outbox == {}


async def test_empty_outboxes_cost_no_call() -> None:
    other = ConversationKey("default", "none")
    store, sender = MemoryStore("live"), MemorySender()
    sender.down = 1
    await deliver({other: {}}, store, sender)
    [loaded] = await store.load([Need(other)])
    assert loaded.outbox == {}
