"""Redis with TLS alone and a user of few rights: the store's whole contract, and what is refused."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from importlib import resources
from pathlib import Path

import msgspec
import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from stream import replaying, runs
from stream.doctor import redis as doctor
from stream.doctor.checks import Check
from stream.settings import Settings
from stream.store.connection import connect, disconnect
from stream.store.port import Store, StoreUnavailable
from stream.store.redis import RedisStore
from tests.end_to_end.harness import LEFT_OPEN, agent_process, producing, target
from tests.secured import documented
from tests.secured.authority import Authority, Certificate
from tests.secured.commands import discreet
from tests.secured.conftest import tls_redis
from tests.secured.redis_server import USER, WATCHER, SecuredRedis
from tests.stream.store.builders import ROOM, commit, need
from tests.stream.store.test_store_contract import Contract

FEW = "few"  # a user whose rights a test takes away


class TestSecuredStore(Contract):
    @pytest.fixture
    async def store(
        self, secured_redis: SecuredRedis, authority: Authority, prefix: str
    ) -> AsyncIterator[Store]:
        store = RedisStore(secured_redis.url, "live", prefix=prefix, cafile=authority.cafile)
        yield store
        await store.close()


def settings_of(url: str, cafile: Path | None) -> Settings:
    return Settings(redis=url, redis_cafile=cafile, topic_prefix="test-redis", run="trial")


@pytest.fixture
def run(secured_redis: SecuredRedis, authority: Authority) -> Settings:
    """A run for the user that README makes."""
    return settings_of(secured_redis.url, authority.cafile)


async def complaint(settings: Settings, call: str = "load") -> str:
    """What the store says of a call."""
    store = RedisStore(
        settings.redis, settings.run, prefix=settings.topic_prefix, cafile=settings.redis_cafile
    )
    calls = {
        "load": lambda: store.load([need()]),
        "commit": lambda: store.commit([commit(0)]),
        "ledgers": lambda: store.ledgers([ROOM]),
    }
    try:
        async with asyncio.timeout(15):
            with pytest.raises(StoreUnavailable) as refusal:
                await calls[call]()
    finally:
        await store.close()
    return discreet(str(refusal.value))


async def looked_at(settings: Settings) -> Check:
    check = (await doctor.examine(settings))[0]
    discreet(f"{check.found} {check.remedy}")
    return check


WRONG = {
    "password": ("rediss://volteface:hush-wrong@", "AUTHORITY", "set user and password in VOLTEFACE_REDIS"),
    "user": ("rediss://eve:hush-wrong@", "AUTHORITY", "set user and password in VOLTEFACE_REDIS"),
    "nobody": ("rediss://", "AUTHORITY", "set user and password in VOLTEFACE_REDIS"),
    "no authority": ("rediss://", None, "set VOLTEFACE_REDIS_CAFILE"),
    "other authority": ("rediss://", "OTHER", "set VOLTEFACE_REDIS_CAFILE"),
    "missing file": ("rediss://", "NOWHERE", "set VOLTEFACE_REDIS_CAFILE"),
    "plain to TLS": ("redis://volteface:hush-wrong@", None, "set VOLTEFACE_REDIS to rediss://"),
}


@pytest.mark.parametrize("what", WRONG)
async def test_store_and_doctor_name_the_setting(
    secured_redis: SecuredRedis, authority: Authority, tmp_path: Path, what: str
) -> None:
    address, signer, remedy = WRONG[what]
    cafiles = {
        None: None,
        "AUTHORITY": authority.cafile,
        "OTHER": Authority(tmp_path).cafile,
        "NOWHERE": tmp_path / "none.pem",
    }
    wrong = settings_of(f"{address}127.0.0.1:{secured_redis.port}/0", cafiles[signer])
    assert remedy in await complaint(wrong)
    check = await looked_at(wrong)
    assert (check.status, remedy in check.remedy) == ("failed", True), check


async def test_tls_to_what_speaks_none_ends_in_time(authority: Authority) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # a plain Redis waits for the end of a line
        wrong = settings_of(f"rediss://127.0.0.1:{silent.getsockname()[1]}/0", authority.cafile)
        assert "write redis:// if it speaks no TLS" in (await looked_at(wrong)).remedy


@pytest.fixture
async def watcher(secured_redis: SecuredRedis, authority: Authority) -> AsyncIterator[Redis]:
    """One who may do all, and who gives and takes the rights of another."""
    client = connect(secured_redis.as_user(WATCHER), timeout=5.0, pool=1, cafile=authority.cafile)
    yield client
    await client.execute_command("ACL", "DELUSER", FEW)
    await disconnect(client)


@pytest.mark.parametrize(
    ("command", "call"),
    [("hmget", "load"), ("hset", "commit"), ("zadd", "commit"), ("eval", "ledgers"), ("evalsha", "commit")],
)
async def test_a_right_that_is_missing_is_named(
    secured_redis: SecuredRedis, run: Settings, watcher: Redis, command: str, call: str
) -> None:
    rule = documented.rule("hush").split()
    await watcher.execute_command("ACL", "SETUSER", FEW, *rule, f"-{command}")
    few = msgspec.structs.replace(run, redis=secured_redis.as_user(FEW, "hush"))
    said = await complaint(few, call)
    assert "README's section on secured servers" in said
    check = await looked_at(few)
    assert (check.status, f"+{command}" in check.remedy) == ("failed", True), check


async def test_keys_that_are_not_allowed_are_told(
    secured_redis: SecuredRedis, run: Settings, watcher: Redis
) -> None:
    await watcher.execute_command(
        "ACL", "SETUSER", FEW, *documented.rule("hush").split(), "resetkeys", "~other:*"
    )
    few = msgspec.structs.replace(run, redis=secured_redis.as_user(FEW, "hush"))
    assert "one of the keys" in await complaint(few)
    check = await looked_at(few)
    assert (check.status, "~test-redis:*" in check.remedy) == ("failed", True), check


async def test_the_rest_of_the_rule_is_for_the_replay_and_for_dropping_a_run(
    run: Settings, watcher: Redis
) -> None:
    client = connect(run.redis, timeout=5.0, pool=1, cafile=run.redis_cafile)
    progress = replaying.Progress(client, run.topic_prefix, "dropped", "file")
    await progress.reached(7)
    assert await progress.lines() == 7
    assert await runs._unlink_all(client, f"{run.topic_prefix}:dropped:*") == 1
    with pytest.raises(RedisError, match="no permissions"):
        await client.flushall()
    await disconnect(client)


def test_the_rule_allows_what_is_asked_for_and_no_more() -> None:
    scripts = [
        resources.files("stream.store").joinpath(name).read_text(encoding="utf-8")
        for name in ("commit.lua", "ledger.lua")
    ]
    called = {name.lower() for script in scripts for name in re.findall(r"redis\.call\('(\w+)'", script)}
    assert called <= set(doctor.NEEDED)
    assert documented.commands() == {*doctor.NEEDED, "info", "eval", "select", "scan", "unlink"}


async def test_a_clients_certificate_stands_in_the_address(
    authority: Authority, client_certificate: Certificate, prefix: str
) -> None:
    with tls_redis(SecuredRedis(authority, mutual=True)) as server:
        assert "set VOLTEFACE_REDIS" in await complaint(settings_of(server.url, authority.cafile))
        files = f"ssl_certfile={client_certificate.certfile}&ssl_keyfile={client_certificate.keyfile}"
        store = RedisStore(f"{server.url}?{files}", "live", prefix=prefix, cafile=authority.cafile)
        assert await store.commit([commit(0)]) == [True]
        await store.close()


@pytest.mark.filterwarnings(LEFT_OPEN)
async def test_an_agent_says_what_it_waits_for(
    settings: Settings, secured_redis: SecuredRedis, tmp_path: Path
) -> None:
    wrong = msgspec.structs.replace(settings, redis=secured_redis.as_user(USER, "hush-wrong"))
    async with producing(settings) as producer:
        await producer.records([target("room")])
        log = tmp_path / "log"
        with agent_process(wrong, log):
            async with asyncio.timeout(60):
                while "agent.paused" not in (said := await asyncio.to_thread(log.read_text)):  # noqa: ASYNC110 - a file must be read
                    await asyncio.sleep(0.05)
        assert "set user and password in VOLTEFACE_REDIS" in discreet(said)
