"""The two servers: a real one (llama.cpp with the embedded model), and one that plays faults on demand."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from models.language.weights import SMOLLM2
from models.language.wheels import cache_folder, member
from models.remote.client import RemoteClient, RemoteConfig
from tests.models.remote.faulty_server import FaultyServer
from tests.models.remote.llama_server import KEY, MODEL

ROOT = Path(__file__).parents[3]
STOPS_WITHIN = 20.0

Open = Callable[..., RemoteClient]


@pytest.fixture(scope="session")
def llama_url() -> Iterator[str]:
    """A running llama.cpp that serves the embedded model, shared by the run."""
    with member(SMOLLM2.wheel, cache_folder()) as weights:
        command = [sys.executable, "-m", "tests.models.remote.llama_server", str(weights)]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as server:
            try:
                yield _address(server) + "/v1"
            finally:
                server.kill()
                server.communicate(timeout=STOPS_WITHIN)


def _address(server: subprocess.Popen[str]) -> str:
    """The address it prints once it serves; a server that ends before ends its output."""
    assert server.stdout is not None
    for line in server.stdout:
        if line.startswith("listening "):
            return line.split()[1]
    raise AssertionError(f"llama.cpp ended with {server.wait(STOPS_WITHIN)}")


@pytest.fixture
def opened() -> Iterator[Open]:
    """Makes clients, and closes them behind the test."""
    clients: list[RemoteClient] = []

    def made(url: str, **given: Any) -> RemoteClient:
        clients.append(RemoteClient(RemoteConfig(**({"url": url, "model": "m", "backoff": 0.01} | given))))
        return clients[-1]

    yield made
    for client in clients:
        client.close()


@pytest.fixture
def llama(llama_url: str, opened: Open) -> RemoteClient:
    # Patient: on a loaded machine its one thread is slow, and no fault.
    return opened(llama_url, model=MODEL, key=KEY, parallel=2, seconds=250.0, batch_seconds=500.0)


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer() as started:
        yield started
