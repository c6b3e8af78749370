"""A real PostgreSQL for tests: its own data folder on a free port, gone when it stops or its owner dies."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

from stream.embedded.process import ServiceUnavailable
from stream.embedded.server import Server

USER = "postgres"  # PostgreSQL refuses to run as root: then this user of the system's runs it
_INSTALLED = Path("/usr/lib/postgresql")
_PATIENCE = 60.0
# Data need not outlive the machine, only the server: what is committed is written, and not yet on the disk.
_OPTIONS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "100",
    "shared_buffers": "32MB",
}


class PostgresServer(Server):
    """One PostgreSQL; restart() keeps its data, stop() does not."""

    title: ClassVar[str] = "PostgreSQL"
    patience: ClassVar[float] = 60.0
    grace: ClassVar[float] = 3.0  # it waits for its clients to go; whoever is left then is cut off

    def fresh(self) -> str:
        """The address of a new, empty database."""
        name = f"test_{uuid4().hex[:12]}"
        self.say(f"CREATE DATABASE {name}")
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{name}"

    def say(self, statement: str, database: str = "postgres") -> str:
        """What psql prints for a statement."""
        reach = ["-h", "127.0.0.1", "-p", str(self.port), "-U", USER, "-d", database]
        return _run([str(_program("psql")), *reach, "-XAtq", "-c", statement])

    def _prepare(self, folder: Path, port: int) -> Sequence[str]:
        data = folder / "data"
        if not data.exists():
            folder.chmod(0o711)
            data.mkdir()
            if os.geteuid() == 0:
                shutil.chown(data, USER, USER)
            _run([*_as_user(), str(_program("initdb")), "-D", str(data), "-U", USER, "-A", "trust", "-N",
                  "-E", "UTF8", "--locale=C"], cwd=data)  # fmt: skip
        (data / "postmaster.pid").unlink(missing_ok=True)
        options = [word for name, value in _OPTIONS.items() for word in ("-c", f"{name}={value}")]
        return [*_as_user(), str(_program("postgres")), "-D", str(data), "-p", str(port), *options]

    def _answers(self, folder: Path, port: int) -> bool:
        lines = (folder / "data" / "postmaster.pid").read_text().split("\n")
        return len(lines) > 7 and lines[3] == str(port) and lines[7].strip() == "ready"


def available() -> str | None:
    """Why no PostgreSQL can be started here, or None."""
    if _program("postgres") is None or _program("initdb") is None:
        return f"no `initdb` on PATH or in {_INSTALLED}/*/bin (`apt install postgresql`)"
    if os.geteuid() == 0:
        try:
            pwd.getpwnam(USER)
        except KeyError:
            return f"PostgreSQL does not run as root, and there is no user {USER}"
        if shutil.which("setpriv") is None:
            return "PostgreSQL does not run as root, and there is no `setpriv` (`apt install util-linux`)"
    return None


def _program(name: str) -> Path | None:
    """The program of the newest installed version; Debian has them outside of PATH."""
    versions = sorted(_INSTALLED.glob("*/bin"), key=lambda folder: int(folder.parent.name), reverse=True)
    found = [folder / name for folder in versions if (folder / name).is_file()]
    on_path = shutil.which(name)
    return found[0] if found else Path(on_path) if on_path else None


def _as_user() -> list[str]:
    """What begins a command line; it becomes the program itself, and dies with the watchdog."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--pdeathsig=KILL", "--"]


def _run(command: Sequence[str], cwd: Path | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False, cwd=cwd)
    if done.returncode:
        raise ServiceUnavailable(f"{command[-1]} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout.strip()
