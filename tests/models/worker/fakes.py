"""Engines whose behaviour a turn's text decides, and what starts a worker around them."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import aiohttp

from models.guard import Guard
from models.reader import Engine, ExplainRequest, ObserveRequest, ReaderRejected, ReaderUnavailable
from models.worker.server import WorkerConfig, serve
from tracker.context import WindowTurn
from tracker.observations import Evidence, Explanation, Model, Observation, Probabilities, Trigger
from tracker.stances import Emotion, Sentiment, Stance, TriggerKind

PATIENCE = 60.0  # never waited for but by what fails: a loaded machine is slow


def observe_request(turn: str, text: str = "+1", **changes: object) -> ObserveRequest:
    fields = {"revision": 0, "target": "t-1", "proposition": "whether", "state": Stance.UNKNOWN} | changes
    return ObserveRequest(conversation="room", turn=WindowTurn(turn, "maya", text), **fields)


def requests(*texts: str) -> list[ObserveRequest]:
    return [observe_request(f"m-{index}", text) for index, text in enumerate(texts)]


def observation(request: ObserveRequest) -> Observation:
    return Observation(
        turn=request.turn.turn,
        revision=request.revision,
        target=request.target,
        holder=request.turn.holder,
        expressed=Probabilities(support=1.0),
        emotion=Emotion.JOY,
        sentiment=Sentiment.POSITIVE,
        relevance=0.5,
        read_under=request.state,
        model=Model("fake", "1", "rule", "en"),
    )


def explain_request(turn: str, text: str = "+1") -> ExplainRequest:
    observed = observe_request(turn, text)
    return ExplainRequest(observed, observation(observed), Stance.SUPPORT)


def explanation(request: ExplainRequest) -> Explanation:
    turn = request.observed.turn
    return Explanation(
        turn=turn.turn,
        target=request.observed.target,
        trigger=Trigger(TriggerKind.PERSONAL_EXPERIENCE, (turn.turn,), (turn.holder,), 0.5),
        evidence=(Evidence(turn.turn, "text"),),
        rationale="moved",
    )


class FakeEngine:
    """`bad`: ReaderRejected; `boom`: RuntimeError; `gone`: ReaderUnavailable; `block`: waits for `open()`."""

    model = Model("fake", "1", "rule", "en")

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.threads: set[int] = set()
        self.blocked = threading.Event()
        self._released = threading.Event()

    def open(self) -> None:
        self._released.set()

    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        self._read(requests)
        return [observation(request) for request in requests]

    def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        self._read([request.observed for request in requests])
        return [explanation(request) for request in requests]

    def tokens(self, request: ObserveRequest) -> int:
        return len(request.turn.text)

    def _read(self, requests: Sequence[ObserveRequest]) -> None:
        self.threads.add(threading.get_ident())
        self.batches.append([request.turn.turn for request in requests])
        for request in requests:
            self._react(request.turn.text)

    def _react(self, text: str) -> None:
        match text.split(maxsplit=1)[0] if text else "":
            case "bad":
                raise ReaderRejected("cannot be read")
            case "boom":
                raise RuntimeError("broken")
            case "gone":
                raise ReaderUnavailable("away", retry_after=7.0)
            case "block":
                self.blocked.set()
                assert self._released.wait(PATIENCE)
            case "until":  # until that file exists
                print("reading", flush=True)
                waiting = threading.Event()
                while not Path(text.split()[1]).exists():
                    waiting.wait(0.01)


@asynccontextmanager
async def listening(factory: Callable[[], Engine], config: WorkerConfig | None = None) -> AsyncIterator[str]:
    """A worker in this process whose engine may still load; its address."""
    stop, port = asyncio.Event(), asyncio.get_running_loop().create_future()
    serving = asyncio.ensure_future(
        serve(factory, config or WorkerConfig(), stop=stop, on_listening=port.set_result)
    )
    try:
        yield f"http://127.0.0.1:{await asyncio.wait_for(port, PATIENCE)}"
    finally:
        stop.set()
        await asyncio.wait_for(serving, PATIENCE)


@asynccontextmanager
async def worker(factory: Callable[[], Engine], config: WorkerConfig | None = None) -> AsyncIterator[str]:
    """A worker in this process that is ready; its address."""
    async with listening(factory, config) as url:
        async with aiohttp.ClientSession() as http:
            await until_ready(http, url)
        yield url


async def until_ready(http: aiohttp.ClientSession, url: str, *, ready: bool = True) -> None:
    """Until a worker says that it is, or is not."""
    async with asyncio.timeout(PATIENCE):
        while True:
            async with http.get(f"{url}/readyz") as response:
                if (response.status == 200) is ready:
                    return


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def cooled(guard: Guard) -> None:
    """As if the circuit had been open for its time."""
    guard.breaker = replace(guard.breaker, until=0.0)


async def eventually(condition: Callable[[], bool]) -> None:
    """Until the condition holds."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in other threads too
            await asyncio.sleep(0.002)
