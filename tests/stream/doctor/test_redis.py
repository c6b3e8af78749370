"""Redis looked at: real servers set wrongly, locked, silent and absent."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from stream.doctor import Check, redis
from stream.embedded import EmbeddedRedis
from tests.stream.doctor.helpers import by_name, settings


@pytest.fixture
def own() -> Iterator[tuple[str, "Redis"]]:
    with EmbeddedRedis() as server, Redis.from_url(server.url) as client:
        yield server.url, client


async def look(url: str) -> dict[str, Check]:
    return by_name(await redis.examine(settings(redis=url)))


async def test_our_own_redis_lacks_nothing_but_persistence(redis_url: str) -> None:
    found = await look(redis_url)
    complaints = {name: check.status for name, check in found.items() if check.status != "ok"}
    assert complaints == {"redis persistence": "warning"}
    assert "no limit set" in found["redis memory"].found


async def test_what_is_set_wrongly_is_told(own: tuple[str, "Redis"]) -> None:
    url, client = own
    client.config_set("maxmemory", "100mb")
    client.config_set("maxmemory-policy", "allkeys-lru")
    client.replicaof("127.0.0.1", "1")
    found = await look(url)
    assert {name: check.status for name, check in found.items()} == {
        "redis": "ok",
        "redis version": "ok",
        "redis role": "failed",
        "redis eviction": "failed",
        "redis persistence": "warning",
        "redis memory": "ok",
    }
    assert found["redis eviction"].found == "allkeys-lru: a full Redis would forget stances"


async def test_a_redis_with_a_data_folder_lacks_nothing(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path) as server:
        assert {check.status for check in (await look(server.url)).values()} == {"ok"}


async def test_a_password_that_is_missing_or_wrong(own: tuple[str, "Redis"]) -> None:
    url, client = own
    client.config_set("requirepass", "right")
    for given in (url, url.replace("//", "//:wrong@")):
        found = await look(given)
        assert (found["redis"].status, "VOLTEFACE_REDIS" in found["redis"].remedy) == ("failed", True)
        assert "wrong@" not in str(found)


async def test_a_user_without_info(own: tuple[str, "Redis"]) -> None:
    url, client = own
    client.acl_setuser("small", enabled=True, passwords=["+pw"], keys=["*"], commands=["+get"])
    found = await look(url.replace("//", "//small:pw@"))
    assert (found["redis"].status, "+info" in found["redis"].remedy) == ("failed", True)


async def test_nobody_there() -> None:
    found = await look("redis://127.0.0.1:1/0")
    assert (list(found), found["redis"].status) == (["redis"], "failed")
    sentinel = await look("redis+sentinel://127.0.0.1:1/main")
    assert (list(sentinel), sentinel["redis"].status) == (["redis"], "failed")


async def test_a_silent_port_ends_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        found = await look(f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
        assert found["redis"].status == "failed"
        assert time.monotonic() - began < redis.CALL_SECONDS + 2


@pytest.mark.parametrize(
    ("version", "status"),
    [("6.2.0", "ok"), ("7.4.1", "ok"), ("10.0", "ok"), ("6.0.16", "failed"), ("5.0", "failed")],
)
def test_versions(version: str, status: str) -> None:
    assert redis.version({"redis_version": version}).status == status


def test_a_node_of_a_cluster_is_a_warning() -> None:
    assert redis.role({"role": "master", "cluster_enabled": 1}).status == "warning"


def test_an_append_only_file_that_cannot_be_written_fails() -> None:
    assert redis.persistence({"aof_enabled": 1, "aof_last_write_status": "err"}).status == "failed"


@pytest.mark.parametrize(("used", "status"), [(89, "ok"), (95, "warning")])
def test_nearly_full(used: int, status: str) -> None:
    info = {"used_memory": used << 20, "used_memory_human": f"{used}.00M", "maxmemory": 100 << 20}
    check = redis.memory(info)
    assert (check.status, check.found) == (status, f"{used}.00M of 100 MiB used")
