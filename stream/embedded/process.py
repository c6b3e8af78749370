"""A server program as its owner holds it: under a watchdog, so that it never outlives this process."""

import contextlib
import os
import random
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from stream.embedded import watchdog

# Outside every system's range for outgoing connections: a port from there can be taken by any client between
# two starts, even by a client that meets itself while it waits for the server to come back.
_PORTS = range(15000, 32000)
# Tansu reads options from names as plain as KEY and CERT: the owner's must not reach it by chance.
_ENVIRONMENT = ("PATH", "HOME", "LANG", "TZ", "TMPDIR", "JAVA_HOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_LOG_TAIL = 2000
_MARGIN = 5.0


class ServiceUnavailable(RuntimeError):
    """A server program is missing, or did not start; the text says what to do."""


class Supervised:
    """A running server program; it ends when told to, and with this process."""

    def __init__(
        self, command: Sequence[str], folder: Path, *, grace: float = 10.0, locks: Sequence[int] = ()
    ) -> None:
        self._grace = grace
        self._log = folder / watchdog.LOG_NAME
        script = [sys.executable, "-I", "-S", watchdog.__file__, str(os.getpid()), str(grace), str(folder)]
        self._watchdog = subprocess.Popen(
            [*script, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C reaches the whole foreground group; the owner must stop first
            pass_fds=locks,
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
            bufsize=0,
        )
        assert self._watchdog.stdout is not None
        line = self._watchdog.stdout.readline()
        if not line:
            raise ServiceUnavailable(f"{command[0]} cannot be run: {self._last_words()}")
        self.pid = int(line)

    def running(self) -> bool:
        """Whether the server still runs."""
        return self._watchdog.poll() is None

    def log_tail(self) -> str:
        """The end of what the server wrote."""
        with contextlib.suppress(OSError):
            return self._log.read_text(errors="replace")[-_LOG_TAIL:].strip()
        return ""

    def end(self, *, kill: bool = False) -> None:
        """Ends the server (SIGTERM, after the grace SIGKILL; `kill`: at once) and waits until it is gone."""
        with contextlib.suppress(BrokenPipeError):
            self._order(watchdog.KILL if kill else watchdog.STOP)
        try:
            self._watchdog.wait(self._grace + _MARGIN)
        except subprocess.TimeoutExpired:
            self._watchdog.kill()
            self._watchdog.wait()
        finally:
            self._close()

    def _order(self, word: bytes) -> None:
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.write(word)

    def _last_words(self) -> str:
        assert self._watchdog.stderr is not None
        lines = self._watchdog.stderr.read().decode(errors="replace").split("\n")
        self._watchdog.wait()
        self._close()
        return "\n".join(lines[-2:]).strip()

    def _close(self) -> None:
        for pipe in (self._watchdog.stdin, self._watchdog.stdout, self._watchdog.stderr):
            if pipe is not None:
                pipe.close()


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on at this moment."""
    for port in random.sample(_PORTS, 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port
    raise ServiceUnavailable(f"no free port found between {_PORTS.start} and {_PORTS.stop}")


def program_on_path(name: str) -> Path | None:
    """The program that a shell would run."""
    found = shutil.which(name)
    return Path(found) if found else None


def program_in_wheel(package: str, name: str) -> Path | None:
    """The program in the `bin` folder of an installed package."""
    spec = find_spec(package)
    for folder in (spec and spec.submodule_search_locations) or ():
        program = Path(folder) / "bin" / name
        if os.access(program, os.X_OK):
            return program
    return None
