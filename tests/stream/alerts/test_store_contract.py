"""What every alert store promises: one suite, run on the twin in memory and on every Redis found."""

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from stream.alerts.memory import MemoryAlertStore
from stream.alerts.port import AlertStore, Kept
from stream.alerts.redis import KEPT_SECONDS, RedisAlertStore
from stream.embedded.process import free_port
from stream.store.port import ConversationKey, StoreUnavailable
from tests.tracker.alert_builders import Room, fold, minutes
from tracker import keys as names
from tracker.alert_rules import BurstRule, FlipBackRule, FlipRule
from tracker.alerts import State

ROOM, OTHER = ConversationKey("default", "a/b"), ConversationKey("acme", "{x}: комната ☕\n")
RULES = (
    FlipRule(name="flip"),
    BurstRule(name="burst", count=2, within=minutes(5)),
    FlipBackRule(name="back", turns=3),
)


def state(flips: int = 3) -> State:
    room = Room()
    events = [room.flip(f"ü-{number}", by=["zoe"]) for number in range(flips)]
    return fold([*events, room.persisted("ü-0")], RULES)[0]


class Contract:
    """The suite; a subclass brings the store."""

    async def test_nothing_is_kept_at_first(self, store: AlertStore) -> None:
        assert await store.load([ROOM, OTHER]) == [Kept(), Kept()]
        assert await store.load([]) == []
        assert await store.save({})
        assert await store.positions(["t/0"]) == {}

    async def test_what_is_kept_is_loaded(self, store: AlertStore) -> None:
        assert await store.save({ROOM: Kept(state()), OTHER: Kept(state(1))})
        assert await store.load([OTHER, ROOM]) == [Kept(state(1), 1), Kept(state(), 1)]
        assert await store.save({ROOM: Kept(State(), 1)})
        assert await store.load([ROOM]) == [Kept(State(), 2)]

    async def test_a_state_that_moved_is_left_as_it_is(self, store: AlertStore) -> None:
        assert await store.save({ROOM: Kept(state(1))})
        assert not await store.save({ROOM: Kept(state(2)), OTHER: Kept(state(2))})
        assert await store.load([ROOM, OTHER]) == [Kept(state(1), 1), Kept(state(2), 1)]
        assert not await store.save({ROOM: Kept(state(2), 2)})

    async def test_places_are_kept_by_partition(self, store: AlertStore) -> None:
        await store.place({"t/0": 5, "t/1": 0})
        await store.place({"t/0": 3})
        await store.place({})
        assert await store.positions(["t/1", "t/2", "t/0"]) == {"t/0": 3, "t/1": 0}


class TestMemory(Contract):
    @pytest.fixture
    def store(self) -> MemoryAlertStore:
        return MemoryAlertStore()


class TestRedis(Contract):
    @pytest.fixture
    async def store(self, redis_url: str, prefix: str) -> AsyncIterator[RedisAlertStore]:
        store = RedisAlertStore(redis_url, "live", prefix=prefix, timeout=5.0)
        yield store
        await store.close()

    @pytest.fixture
    async def client(self, redis_url: str) -> AsyncIterator[Redis]:
        client = Redis.from_url(redis_url)
        yield client
        await client.aclose()

    async def test_keys_are_the_runs_and_states_expire(
        self, store: RedisAlertStore, client: Redis, prefix: str
    ) -> None:
        await store.save({ROOM: Kept(state())})
        await store.place({"t/0": 5})
        of_room = names.redis_key(prefix, "live", "default", "a/b", "alerts")
        found = {key.decode() async for key in client.scan_iter(match=f"{prefix}:live:*")}
        assert found == {of_room, f"{prefix}:live:alerts:t/0"}
        assert 0 < await client.ttl(of_room) <= KEPT_SECONDS

    async def test_another_run_has_its_own(self, store: RedisAlertStore, redis_url: str, prefix: str) -> None:
        await store.save({ROOM: Kept(state())})
        other = RedisAlertStore(redis_url, "again", prefix=prefix)
        assert await other.load([ROOM]) == [Kept()]
        await other.close()

    async def test_the_script_is_taught_again(self, store: RedisAlertStore, client: Redis) -> None:
        assert await store.save({ROOM: Kept(state(1))})
        await client.script_flush()
        assert await store.save({ROOM: Kept(state(2), 1), OTHER: Kept(state(2))})
        await client.script_flush()
        assert not await store.save({ROOM: Kept(state(1), 1)})

    async def test_what_is_nothing_of_ours_is_an_outage(
        self, store: RedisAlertStore, client: Redis, prefix: str
    ) -> None:
        await client.set(names.redis_key(prefix, "live", "default", "a/b", "alerts"), "1 ?")
        with pytest.raises(StoreUnavailable, match="an alert state that is none"):
            await store.load([ROOM])

    async def test_nobody_there_is_an_outage(self) -> None:
        store = RedisAlertStore(f"redis://127.0.0.1:{free_port()}", "live")
        with pytest.raises(StoreUnavailable):
            await store.load([ROOM])
        await store.close()
