"""Volteface's commands as processes, and that what they say keeps the passwords to itself."""

import asyncio
import subprocess
import sys

from stream.settings import Settings
from tests.end_to_end.harness import ROOT, environment
from tests.secured import kafka_server, redis_server

SECRETS = (kafka_server.PASSWORD, redis_server.PASSWORD, "hush")
# Each without what the others import, which takes most of a start.
DEAD_LETTERS = "from stream.cli.dead_letters import app; app()"
RUNS = "from stream.cli.runs import app; app()"
REBUILD = "import typer; from stream.cli.rebuild import rebuild; typer.run(rebuild)"
DOCTOR = "import typer; from stream.cli.doctor import doctor; typer.run(doctor)"
AGENT = "import typer; from stream.cli.agent import agent; typer.run(agent)"


async def ran(settings: Settings, script: str, *arguments: str) -> tuple[int, str]:
    """Status and all that a command says; it ends in time, without a trace and without a password."""
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", script, *arguments], cwd=ROOT, env=environment(settings),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    return done.returncode, discreet(done.stdout)


def discreet(said: str) -> str:
    """What was said. Fails where it holds a trace, or part of a password."""
    assert [secret for secret in (*SECRETS, "Traceback") if secret in said] == [], said
    return said
