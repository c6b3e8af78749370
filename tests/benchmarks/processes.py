"""Agents and a worker as servers that end with this process, however it ends; and what memory they take."""

import os
import sys
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from signal import Signals
from typing import ClassVar

import msgspec

from stream.embedded.server import Server
from stream.settings import Settings
from tests.end_to_end.harness import environment

PROBE_SECONDS = 2.0
MB = 1024 * 1024


class Role(Server):
    """A role of ours, as a process: ready where it says so itself."""

    patience: ClassVar[float] = 180.0  # models load, and a group waits for members that are gone
    grace: ClassVar[float] = 30.0
    ready: ClassVar[str]

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings

    @property
    def address(self) -> str:
        """Where it answers over HTTP."""
        return f"http://127.0.0.1:{self.port}"

    def signal(self, sign: Signals) -> None:
        """Halt it, or let it go on."""
        os.kill(self.pid, sign)

    def said(self) -> str:
        """The end of what it said."""
        return self._process.log_tail() if self._process else ""

    def _answers(self, folder: Path, port: int) -> bool:
        # Raises OSError where the status is another than 200, too.
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{self.ready}", timeout=PROBE_SECONDS):
            return True

    def _command(self, settings: Settings, *arguments: str) -> Sequence[str]:
        """The role's command line: the watchdog passes little of our environment on, so `env` brings it."""
        given = environment(settings).items()
        ours = [f"{name}={value}" for name, value in given if name.startswith("VOLTEFACE_")]
        return ["env", *ours, sys.executable, "-m", "stream.cli.main", *arguments]


class WorkerRole(Role):
    """`volteface worker`."""

    title: ClassVar[str] = "volteface worker"
    ready: ClassVar[str] = "/readyz"

    def _prepare(self, folder: Path, port: int) -> Sequence[str]:
        return self._command(self._settings, "worker", "--port", str(port))


class AgentRole(Role):
    """`volteface agent`, with its probes."""

    title: ClassVar[str] = "volteface agent"
    ready: ClassVar[str] = "/ready"

    def _prepare(self, folder: Path, port: int) -> Sequence[str]:
        probed = msgspec.structs.replace(self._settings, probes=f"127.0.0.1:{port}")
        return self._command(probed, "agent")


def resident(pids: Mapping[str, int]) -> dict[str, float]:
    """MB that each process keeps in memory now, with all processes that it has started."""
    children = _children()
    return {name: sum(map(_resident, _family(pid, children))) / MB for name, pid in pids.items()}


def _family(pid: int, children: Mapping[int, Sequence[int]]) -> Iterable[int]:
    yield pid
    for child in children.get(pid, ()):
        yield from _family(child, children)


def _children() -> Mapping[int, Sequence[int]]:
    found: defaultdict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").glob("[0-9]*"):
        if fields := _read(folder / "stat").rpartition(")")[2].split():  # proc(5): state, then parent
            found[int(fields[1])].append(int(folder.name))
    return found


def _resident(pid: int) -> int:
    """Bytes; 0 where the process is gone (proc(5), statm: size and resident, in pages)."""
    fields = _read(Path(f"/proc/{pid}/statm")).split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if fields else 0


def _read(file: Path) -> str:
    """A file of proc's; "" where its process has ended meanwhile."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
