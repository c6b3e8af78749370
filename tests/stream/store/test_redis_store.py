"""What only Redis can do to a store: stop, stall, refuse, lose replies, and answer the wrong caller."""

import asyncio
import hashlib
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest
from redis.asyncio import Redis

from stream.embedded import EmbeddedRedis, find_redis_servers
from stream.store.port import ConversationKey, StoreReplaced, StoreUnavailable
from stream.store.redis import RedisStore
from tests.stream.store.builders import OPPOSE, ROOM, SUPPORT, TARGET, commit, entry, messages, need
from tests.stream.store.dump import dump
from tests.stream.store.proxy import Proxy
from tracker import keys

ROOMS = [ConversationKey("default", f"room-{n}") for n in range(4)]


@pytest.fixture(scope="module", params=find_redis_servers(), ids=lambda path: path.parent.parent.name)
def own_redis(request: pytest.FixtureRequest) -> Iterator[EmbeddedRedis]:
    """A server that a test may stop and misconfigure."""
    with EmbeddedRedis(binary=request.param) as server:
        yield server


@pytest.fixture
async def admin(own_redis: EmbeddedRedis) -> AsyncIterator[Redis]:
    async with Redis.from_url(own_redis.url, protocol=2, socket_timeout=5.0) as client:
        await client.flushall()
        yield client


@pytest.fixture
async def store(own_redis: EmbeddedRedis, admin: Redis) -> AsyncIterator[RedisStore]:
    store = RedisStore(own_redis.url, "live", timeout=1.0)
    yield store
    await store.close()


@pytest.fixture
async def proxy(own_redis: EmbeddedRedis, admin: Redis) -> AsyncIterator[Proxy]:
    async with Proxy(own_redis.port).running() as proxy:
        yield proxy


@pytest.fixture
async def far_store(proxy: Proxy) -> AsyncIterator[RedisStore]:
    """A store behind the proxy, with one connection."""
    store = RedisStore(proxy.url, "live", timeout=1.0, concurrency=1)
    yield store
    await store.close()


async def version_of(store: RedisStore, key: ConversationKey = ROOM) -> int:
    [loaded] = await store.load([need(key=key)])
    return loaded.conversation.header.version


async def test_nothing_of_a_waiting_correction_is_left_when_its_turn_has_come(
    store: RedisStore, own_redis: EmbeddedRedis
) -> None:
    waiting = msgspec.structs.replace(entry(1, "edit", op="edit"), turn="m-2", waits=True)
    assert await store.commit([commit(0, [waiting])]) == [True]
    assert "w/m-2" in str(await dump(own_redis.url, "live"))
    assert await store.commit([msgspec.structs.replace(commit(1), arrived=("m-2",))]) == [True]
    assert "w/m-2" not in str(await dump(own_redis.url, "live"))


async def test_a_cancelled_call_leaves_no_reply_to_the_next(proxy: Proxy, far_store: RedisStore) -> None:
    for number, key in enumerate(ROOMS):
        holders = {f"u-{number}": {TARGET.id: SUPPORT}}
        await far_store.commit(
            [commit(0, [entry(1), *map(entry, range(2, number + 2))], key=key, holders=holders)]
        )
    proxy.delay = 0.01
    for after in (0.0, 0.001, 0.005, 0.01, 0.012, 0.015, 0.02) * 3:
        calls = [asyncio.ensure_future(far_store.load([need("u-0", key=ROOMS[0])])) for _ in range(2)]
        await asyncio.sleep(after)
        for call in calls:
            call.cancel()
        for number, key in enumerate(ROOMS[1:], 1):
            [loaded] = await far_store.load([need(f"u-{number}", key=key)])
            assert loaded.conversation.name == key.name
            assert loaded.conversation.header.version == number + 1
            assert list(loaded.conversation.holders) == [f"u-{number}"]
        await asyncio.gather(*calls, return_exceptions=True)


async def test_a_cancelled_commit_is_taken_once(proxy: Proxy, far_store: RedisStore) -> None:
    proxy.delay = 0.05
    for version in range(5):
        call = asyncio.ensure_future(far_store.commit([commit(version)]))
        await asyncio.sleep(0.02 * version)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        assert await far_store.commit([commit(version)]) == [True]
        assert await version_of(far_store) == version + 1


async def test_replies_of_somebody_else_are_not_believed(store: RedisStore, admin: Redis) -> None:
    await store.commit([commit(0, key=ROOMS[0]), commit(0, key=ROOMS[1])])
    here, there = (keys.redis_key("volteface", "live", key.tenant, key.name, "header") for key in ROOMS[:2])
    await admin.copy(there, here, replace=True)
    with pytest.raises(StoreUnavailable, match="another conversation"):
        await store.load([need(key=ROOMS[0])])
    assert await version_of(store, ROOMS[1]) == 1


async def test_a_lost_reply_costs_nothing(proxy: Proxy, far_store: RedisStore) -> None:
    assert await far_store.commit([commit(0)]) == [True]
    proxy.cut = 1
    assert await far_store.commit([commit(1), commit(0, key=ROOMS[1])]) == [True, True]
    proxy.cut = 1
    assert await version_of(far_store) == 2


async def test_a_commit_whose_replies_are_all_lost_is_found_taken(
    proxy: Proxy, far_store: RedisStore, store: RedisStore
) -> None:
    await far_store.commit([commit(0)])
    proxy.cut = 2
    with pytest.raises(StoreUnavailable):
        await far_store.commit([commit(1)])
    assert await far_store.commit([commit(1)]) == [True]
    proxy.cut = 2
    with pytest.raises(StoreUnavailable):
        await far_store.commit([commit(2)])
    await store.commit([commit(3)])
    assert await far_store.commit([commit(2)]) == [False]


async def test_a_silent_server_is_given_up_in_time(own_redis: EmbeddedRedis, store: RedisStore) -> None:
    await store.commit([commit(0)])
    os.kill(own_redis.pid, signal.SIGSTOP)
    try:
        for call in (store.load([need()]), store.commit([commit(1)]), store.delivered({ROOM: [1]})):
            began = time.monotonic()
            with pytest.raises(StoreUnavailable):
                await call
            assert time.monotonic() - began < 1.2
    finally:
        os.kill(own_redis.pid, signal.SIGCONT)
    assert await store.commit([commit(1)]) == [True]  # it ran when the server woke up, or runs now
    assert await version_of(store) == 2


async def test_waiting_calls_are_given_up_in_time(own_redis: EmbeddedRedis, store: RedisStore) -> None:
    await version_of(store)
    os.kill(own_redis.pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        failures = await asyncio.gather(*(store.load([need()]) for _ in range(100)), return_exceptions=True)
        assert time.monotonic() - began < 5.0, "together, not one after the other"
        assert {type(failure) for failure in failures} == {StoreUnavailable}
    finally:
        os.kill(own_redis.pid, signal.SIGCONT)
    assert await version_of(store) == 0


async def test_a_server_that_went_and_came_back(own_redis: EmbeddedRedis, store: RedisStore) -> None:
    await store.commit([commit(0)])
    own_redis.halt(kill=True)
    try:
        with pytest.raises(StoreUnavailable):
            await store.load([need()])
        with pytest.raises(StoreUnavailable):
            await store.commit([commit(1)])
    finally:
        own_redis.resume()
    for _ in range(2):
        with pytest.raises(StoreReplaced):
            await store.load([need()])
    store.accept()
    assert await version_of(store) == 0  # this server keeps nothing
    assert await store.commit([commit(0)]) == [True]


async def test_a_commit_never_reaches_a_server_that_may_lack_the_one_before(
    own_redis: EmbeddedRedis, store: RedisStore
) -> None:
    await store.commit([commit(0)])
    own_redis.restart(kill=True)
    with pytest.raises(StoreReplaced):
        await store.commit([commit(1)])
    store.accept()
    assert await version_of(store) == 0


async def test_a_user_without_info_is_served_all_the_same(own_redis: EmbeddedRedis, admin: Redis) -> None:
    await admin.execute_command("ACL", "SETUSER", "plain", "on", ">secret", "~*", "+@all", "-info")
    store = RedisStore(own_redis.url.replace("//", "//plain:secret@"), "live", timeout=1.0)
    try:
        assert await store.commit([commit(0)]) == [True]
    finally:
        await store.close()
        await admin.execute_command("ACL", "DELUSER", "plain")


@pytest.mark.parametrize("lacking", ["set", "hset", "hdel", "zadd", "zrem"])
async def test_a_right_that_a_user_lacks_leaves_no_half_commit(
    own_redis: EmbeddedRedis, admin: Redis, lacking: str
) -> None:
    """Half of one would count as applied, and its version as not: it would be refused for ever."""
    await admin.execute_command("ACL", "SETUSER", "few", "on", ">secret", "~*", "+@all", f"-{lacking}")
    store = RedisStore(own_redis.url.replace("//", "//few:secret@"), "live", timeout=1.0)
    late = commit(0, trim_before=entry(0, minute=99).sent_at)
    try:
        with pytest.raises(StoreUnavailable):
            await store.commit([late])
        [loaded] = await store.load([need(records=[entry(1).id])])
        assert (loaded.conversation.header.version, loaded.applied) == (0, frozenset())
        assert loaded.conversation.window == ()
        await admin.execute_command("ACL", "SETUSER", "few", f"+{lacking}")
        assert await store.commit([late]) == [True]
        assert await version_of(store) == 1
    finally:
        await store.close()
        await admin.execute_command("ACL", "DELUSER", "few")


@pytest.mark.parametrize("part", ["states", "ledger", "reach", "outbox"])
async def test_a_key_of_another_type_leaves_no_half_commit(
    store: RedisStore, admin: Redis, part: str
) -> None:
    name = keys.redis_key("volteface", "live", ROOM.tenant, ROOM.name, part)
    await admin.set(name, "somebody else's")
    with pytest.raises(StoreUnavailable, match="WRONGTYPE"):
        await store.commit([commit(0)])
    assert await admin.keys() == [name.encode()]
    await admin.delete(name)
    assert await store.commit([commit(0)]) == [True]


async def test_a_demoted_primary_refuses_and_the_connection_is_left(store: RedisStore, admin: Redis) -> None:
    await store.commit([commit(0)])
    await admin.execute_command("REPLICAOF", "127.0.0.1", "1")
    before = await _accepted(admin)
    try:
        with pytest.raises(StoreUnavailable, match="read only"):
            await store.commit([commit(1), commit(0, key=ROOMS[1])])
        with pytest.raises(StoreUnavailable, match="read only"):
            await store.delivered({ROOM: [1]})
    finally:
        await admin.execute_command("REPLICAOF", "NO", "ONE")
    with pytest.raises(StoreReplaced):  # promoted again, it may lack what another primary took meanwhile
        await store.commit([commit(1)])
    store.accept()
    assert await store.commit([commit(1)]) == [True]
    assert await _accepted(admin) >= before + 2
    assert await version_of(store) == 2


async def _accepted(admin: Redis) -> int:
    return int((await admin.info("stats"))["total_connections_received"])


async def test_a_full_memory_refuses_a_commit_whole(store: RedisStore, admin: Redis) -> None:
    await store.commit([commit(0)])
    await admin.config_set("maxmemory", "100kb")
    try:
        with pytest.raises(StoreUnavailable, match=r"OOM|maxmemory"):
            await store.commit([commit(1, trim_before=entry(1, minute=99).sent_at)])
        await store.delivered({ROOM: [1]})  # frees memory, and so is allowed
    finally:
        await admin.config_set("maxmemory", "0")
    [loaded] = await store.load([need("u-1", records=[entry(1).id, entry(2).id])])
    assert loaded.conversation.header.version == 1
    assert loaded.applied == {entry(1).id}
    assert await store.commit([commit(1)]) == [True]


async def test_a_script_that_the_server_forgot(store: RedisStore, admin: Redis) -> None:
    for version in range(3):
        await admin.script_flush()
        both = [commit(version), commit(version, key=ROOMS[1]), commit(9, key=ROOMS[2])]
        assert await store.commit(both) == [True, True, False]


async def test_the_server_is_asked_once_a_call(proxy: Proxy, far_store: RedisStore) -> None:
    await far_store.commit([commit(0, key=key) for key in ROOMS])
    proxy.delay = 0.1
    began = time.monotonic()
    await far_store.load([need("u-1", key=key, records=["r"], turns=["m-1"]) for key in ROOMS])
    await far_store.commit([commit(1, key=key) for key in ROOMS])
    await far_store.delivered({key: [1, 2] for key in ROOMS})
    assert 0.3 <= time.monotonic() - began < 0.5


async def test_more_calls_than_connections(own_redis: EmbeddedRedis, proxy: Proxy) -> None:
    store = RedisStore(proxy.url, "live", timeout=5.0, concurrency=2)
    try:
        rooms = [ConversationKey("default", f"crowd-{n}") for n in range(100)]
        taken = await asyncio.gather(*(store.commit([commit(0, key=key)]) for key in rooms))
        assert taken == [[True]] * 100
        assert proxy.connections <= 2
    finally:
        await store.close()


def test_a_store_lives_in_the_loop_that_calls_it(own_redis: EmbeddedRedis) -> None:
    store = RedisStore(own_redis.url, "live")

    async def once() -> int:
        try:
            return await version_of(store, ConversationKey("default", "loops"))
        finally:
            await store.close()

    assert [asyncio.run(once()), asyncio.run(once())] == [0, 0]


async def test_runs_and_prefixes_do_not_meet(store: RedisStore, own_redis: EmbeddedRedis) -> None:
    await store.commit([commit(0)])
    for run, prefix in (("shadow", "volteface"), ("live", "other")):
        other = RedisStore(own_redis.url, run, prefix=prefix)
        assert await version_of(other) == 0
        await other.close()


async def test_no_key_expires_and_all_share_a_hash_tag(store: RedisStore, admin: Redis) -> None:
    await store.commit([commit(0)])
    names = [name async for name in admin.scan_iter()]
    assert sorted(names) == [
        b"volteface:live:{default/room-7}:" + part
        for part in (b"header", b"ledger", b"outbox", b"reach", b"states", b"window")
    ]
    assert {await admin.ttl(name) for name in names} == {-1}


async def test_equal_ends_are_equal_bytes(store: RedisStore, own_redis: EmbeddedRedis) -> None:
    """Cut into other commits, with other orders of holders and a delivery between: the same end."""
    entries = [entry(n) for n in range(1, 4)]
    both = {"a": {"x": SUPPORT, "y": OPPOSE}, "b": {"x": SUPPORT}}
    await store.commit([commit(0, entries, holders=both)])
    await store.delivered({ROOM: [1, 2, 3]})
    other = RedisStore(own_redis.url, "other")
    turned = {"b": {"x": SUPPORT}, "a": {"y": OPPOSE, "x": SUPPORT}}
    await other.commit([commit(0, entries[:1], holders={"a": {"y": OPPOSE}})])
    await other.delivered({ROOM: [1]})
    await other.commit([commit(1, entries[1:], holders=turned)])
    await other.delivered({ROOM: [3, 2]})
    await other.close()
    ends = [await dump(own_redis.url, run) for run in ("live", "other")]
    unnamed = [
        {name.replace(b"other", b"live"): _renamed(value) for name, value in end.items()} for end in ends
    ]
    assert unnamed[0] == unnamed[1]
    assert len(unnamed[0]) == 5  # an empty outbox is no key


def _renamed(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {name: content.replace(b'"other"', b'"live"') for name, content in value.items()}


def test_the_script_is_packaged_beside_its_module() -> None:
    script = Path(__file__).parents[3] / "stream" / "store" / "commit.lua"
    from stream.store import redis

    assert hashlib.sha1(script.read_bytes()).hexdigest() == redis._DIGEST
    assert messages(1)  # what the builders send is opaque bytes, not JSON
