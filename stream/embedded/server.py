"""What every server of ours has in common: a free port, a wait until it really answers, and an end."""

import atexit
import contextlib
import re
import shutil
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from stream.embedded.process import ServiceUnavailable, Supervised, free_port
from stream.embedded.watchdog import LOG_NAME

_ATTEMPTS = 5
_POLL = 0.01
_TAKEN = re.compile(r"address (already )?in use", re.IGNORECASE)


class PortTaken(ServiceUnavailable):
    """Another program listens on the port."""


class Server(ABC):
    """A server program on 127.0.0.1; start() and stop(), or a `with` block."""

    title: ClassVar[str]
    patience: ClassVar[float] = 20.0  # seconds until it must answer
    grace: ClassVar[float] = 10.0  # seconds it has to stop by itself

    def __init__(self, port: int | None = None) -> None:
        self._wanted = port
        self._port = 0
        self._folder: Path | None = None
        self._process: Supervised | None = None

    @property
    def port(self) -> int:
        """The port it listens on."""
        if not self._port:
            raise ServiceUnavailable(f"{self.title} is not started")
        return self._port

    @property
    def pid(self) -> int:
        """The server's own process id."""
        if self._process is None:
            raise ServiceUnavailable(f"{self.title} is not started")
        return self._process.pid

    def running(self) -> bool:
        """Whether the server runs."""
        return self._process is not None and self._process.running()

    def start(self) -> Self:
        """Starts the server and returns when it answers."""
        if self._folder is not None:
            raise RuntimeError(f"{self.title} is started already")
        atexit.register(self.stop)
        try:
            self._folder = Path(tempfile.mkdtemp(prefix="volteface-"))
            self._launch_somewhere(self._folder)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Ends the server and removes its folder; harmless where it does not run."""
        atexit.unregister(self.stop)
        folder, self._folder = self._folder, None
        try:
            self.halt()
        finally:
            self._port = 0
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)

    def halt(self, *, kill: bool = False) -> None:
        """Ends the server (with `kill` as a power cut would) and keeps its port and folder for resume()."""
        process, self._process = self._process, None
        if process is not None:
            process.end(kill=kill)

    def resume(self) -> None:
        """Starts a halted server on its old port, with what it kept on disk."""
        if self._folder is None or self._process is not None:
            raise RuntimeError(f"{self.title} is not halted")
        self._launch(self._folder, self.port)

    def restart(self, *, kill: bool = False) -> None:
        """Halts and resumes."""
        self.halt(kill=kill)
        self.resume()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @abstractmethod
    def _prepare(self, folder: Path, port: int) -> Sequence[str]:
        """Writes what the server reads and returns its command line."""

    @abstractmethod
    def _answers(self, folder: Path, port: int) -> bool:
        """Whether this very server, and not another on its port, answers; OSError means not yet."""

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Sequence[int]]:
        """Open files whose locks the watchdog inherits, and so holds until the server is gone."""
        yield ()

    def _launch_somewhere(self, folder: Path) -> None:
        if self._wanted is not None:
            self._launch(folder, self._wanted)
            return
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._launch(folder, free_port())
                return
            except PortTaken:
                if attempt == _ATTEMPTS:
                    raise

    def _launch(self, folder: Path, port: int) -> None:
        (folder / LOG_NAME).unlink(missing_ok=True)
        command = self._prepare(folder, port)
        with self._locked() as locks:
            self._process = Supervised(command, folder, grace=self.grace, locks=locks)
        self._port = port
        try:
            self._wait(self._process, folder, port)
        except BaseException:
            self.halt(kill=True)
            raise

    def _wait(self, process: Supervised, folder: Path, port: int) -> None:
        deadline = time.monotonic() + self.patience
        while process.running():
            with contextlib.suppress(OSError):
                if self._answers(folder, port):
                    return
            if time.monotonic() > deadline:
                raise ServiceUnavailable(
                    f"{self.title} did not answer on 127.0.0.1:{port} within {self.patience:g} s; "
                    f"the end of its log:\n{process.log_tail()}"
                )
            time.sleep(_POLL)
        log = process.log_tail()
        if _TAKEN.search(log):
            raise PortTaken(f"{self.title} cannot listen on 127.0.0.1:{port}, another program does:\n{log}")
        raise ServiceUnavailable(f"{self.title} ended before it answered; the end of its log:\n{log}")
