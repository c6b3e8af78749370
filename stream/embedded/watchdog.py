"""Runs one server program, keeps its log bounded, and ends it when its owner says so or is gone.

    python -I -S watchdog.py OWNER_PID GRACE_SECONDS FOLDER PROGRAM [ARGUMENT ...]

A script on the standard library alone. It is a process of its own because no handler outlives SIGKILL, and
because Linux' signal on the owner's death fires already when the *thread* that started the server ends. The
owner holds the other end of stdin: a word on it ends the server and leaves FOLDER to the owner; its bare end
means that the owner died, and then FOLDER goes too. The server's process id is the first line of stdout.
"""

import contextlib
import ctypes
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

LOG_NAME = "server.log"
STOP = b"stop"
KILL = b"kill"
_LOG_LIMIT = 1 << 20
_TICK = 0.2
_PR_SET_PDEATHSIG = 1


class BoundedLog:
    """A log file that starts anew at its limit and keeps one older part beside it."""

    def __init__(self, path: Path, limit: int = _LOG_LIMIT) -> None:
        self._path = path
        self._limit = limit
        self._file = path.open("ab", buffering=0)

    def write(self, chunk: bytes) -> None:
        """Appends a chunk, and turns the file over first where it would not fit."""
        if self._file.tell() + len(chunk) > self._limit:
            self._file.close()
            self._path.replace(self._path.with_suffix(".old"))
            self._file = self._path.open("ab", buffering=0)
        self._file.write(chunk)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


class Watchdog:
    """One server program and what decides its end."""

    def __init__(self, owner: int, grace: float, folder: Path, command: Sequence[str]) -> None:
        self._owner = owner
        self._grace = grace
        self._folder = folder
        self._deadline: float | None = None
        self._orphaned = False
        self._log = BoundedLog(folder / LOG_NAME)
        self._output, output = os.pipe()
        self._server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=_die_with_parent(),  # noqa: PLW1509 - no second thread here that could hold a lock
        )
        os.close(output)
        os.set_blocking(self._output, False)
        self._selector = selectors.DefaultSelector()

    def run(self) -> int:
        """Stays until the server is gone and returns its exit status."""
        self._selector.register(0, selectors.EVENT_READ, self._obey)
        self._selector.register(self._output, selectors.EVENT_READ, self._keep_output)
        print(self._server.pid, flush=True)  # noqa: T201 - the owner reads it
        while self._server.poll() is None:
            for key, _ in self._selector.select(timeout=_TICK):
                key.data()
            self._check()
        while self._pump():
            pass
        self._log.close()
        if self._orphaned:
            shutil.rmtree(self._folder, ignore_errors=True)
        return self._server.returncode

    def _check(self) -> None:
        # A process that the owner forked may hold stdin's other end open after the owner's death.
        if self._deadline is None and os.getppid() != self._owner:
            self._end(orphaned=True)
        if self._deadline is not None and time.monotonic() > self._deadline:
            self._server.kill()

    def _obey(self) -> None:
        self._selector.unregister(0)
        word = os.read(0, len(STOP))
        if word == KILL:
            self._server.kill()
        self._end(orphaned=not word)

    def _end(self, orphaned: bool) -> None:
        self._orphaned = orphaned
        self._deadline = time.monotonic() + self._grace
        self._server.terminate()

    def _keep_output(self) -> None:
        if self._pump():
            return
        self._selector.unregister(self._output)
        # The end of the output is mostly the end of the server: seen at once, not at the next tick.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._server.wait(_TICK)

    def _pump(self) -> bool:
        """Moves one piece of the server's output to the log; false where none is there."""
        try:
            chunk = os.read(self._output, 1 << 16)
        except BlockingIOError:
            return False
        # A full disk costs the log, not the server.
        with contextlib.suppress(OSError):
            self._log.write(chunk)
        return bool(chunk)


def _die_with_parent() -> Callable[[], None] | None:
    """For the case that the watchdog itself is killed: Linux then ends the server too."""
    if sys.platform != "linux":
        return None
    libc, watchdog = ctypes.CDLL(None, use_errno=True), os.getpid()

    def ask() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != watchdog:
            os._exit(1)

    return ask


def _outlive(number: int, frame: object) -> None:
    """Swallows a signal: unlike SIG_IGN, a handler is not inherited by the server."""


def main(arguments: Sequence[str]) -> int:
    """Runs the script."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _outlive)
    owner, grace, folder, *command = arguments
    return Watchdog(int(owner), float(grace), Path(folder), command).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
