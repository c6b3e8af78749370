"""On a Redis Cluster: a conversation's keys lie on one node, and who names a node is told what to do."""

from collections.abc import Iterator

import pytest
from redis.crc import key_slot

from stream.doctor import redis as doctor
from stream.settings import Settings
from stream.store.port import ConversationKey, StoreUnavailable
from stream.store.redis import RedisStore
from tests.stream.store.builders import SUPPORT, commit, entry, need
from tests.stream.store.cluster import ClusterNode, clustered, owner
from tests.stream.store.test_store_contract import ODD_NAMES

CONVERSATIONS = [
    ConversationKey(tenant, name) for tenant in ("default", "a/{b}", "ü }{") for name in ODD_NAMES
]


@pytest.fixture(scope="module")
def nodes() -> Iterator[list[ClusterNode]]:
    with clustered() as running:
        yield running


def slots(store: RedisStore, conversation: ConversationKey) -> set[int]:
    return {key_slot(key.encode()) for key in store._keys(conversation)}


def test_the_conversations_are_on_every_node(nodes: list[ClusterNode]) -> None:
    store = RedisStore(nodes[0].url, "live")
    owners = [owner(nodes, min(slots(store, each))) for each in CONVERSATIONS]
    assert {*owners} == {*nodes}


@pytest.mark.parametrize("run", ["live", "{replay}"])
async def test_every_command_of_a_conversation_runs_on_the_node_that_has_it(
    nodes: list[ClusterNode], run: str
) -> None:
    stores = {node.url: RedisStore(node.url, run, prefix="volteface") for node in nodes}
    for conversation in CONVERSATIONS:
        [slot] = slots(stores[nodes[0].url], conversation)
        store = stores[owner(nodes, slot).url]
        holders = {conversation.name: {conversation.name: SUPPORT}}
        sent = commit(0, [entry(1, "r")], key=conversation, holders=holders)
        assert await store.commit([sent]) == [True]
        assert await store.commit([commit(1, [entry(2, "s")], key=conversation)]) == [True]
        [loaded] = await store.load([need(conversation.name, key=conversation, records=["r"], turns=["m-1"])])
        assert (loaded.conversation.header.version, loaded.applied, len(loaded.outbox)) == (2, {"r"}, 2)
        assert [len(ledger) for ledger in await store.ledgers([conversation])] == [2]
        await store.delivered({conversation: [1, 2]})
        [loaded] = await store.load([need(key=conversation)])
        assert loaded.outbox == {}
    for store in stores.values():
        await store.close()


async def test_who_names_a_node_is_told_what_to_name(nodes: list[ClusterNode]) -> None:
    store = RedisStore(nodes[0].url, "live")
    elsewhere = next(each for each in CONVERSATIONS if owner(nodes, min(slots(store, each))) is not nodes[0])
    for call in (
        store.load([need(key=elsewhere)]),
        store.commit([commit(0, key=elsewhere)]),
        store.ledgers([elsewhere]),
        store.delivered({elsewhere: [1]}),
    ):
        with pytest.raises(StoreUnavailable, match=r"MovedError: .*VOLTEFACE_REDIS .*redis\+sentinel://"):
            await call
    await store.close()


async def test_doctor_warns_of_a_node(nodes: list[ClusterNode]) -> None:
    found = {check.name: check for node in nodes for check in await doctor.examine(Settings(redis=node.url))}
    assert (found["redis"].status, found["redis role"].status) == ("ok", "warning")
    assert "redis+sentinel://" in found["redis role"].remedy
