"""What every Reader must do, run on each: in process, and over HTTP against a real server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import msgspec
import pytest

from models.execution import RequestsRejected
from models.language.rule import RuleEngine
from models.local import LocalReader
from models.reader import (
    CannotPropose,
    Engine,
    ExplainRequest,
    ProposeRequest,
    Reader,
    ReaderRejected,
    ReaderUnavailable,
)
from models.worker.client import ClientConfig, WorkerReader
from models.worker.lanes import BatchLimits
from models.worker.server import WorkerConfig
from tests.models.worker.fakes import (
    FakeEngine,
    eventually,
    explain_request,
    explanation,
    observation,
    observe_request,
    requests,
    worker,
)
from tracker.context import WindowTurn
from tracker.proposals import Proposal
from tracker.records import MAX_PROPOSITION_BYTES
from tracker.stances import Expressed, Stance

Opened = Callable[..., AbstractAsyncContextManager[Reader]]


@asynccontextmanager
async def local(engine: Engine, patience: float) -> AsyncIterator[Reader]:
    reader = LocalReader(engine, timeout=patience)
    try:
        yield reader
    finally:
        await reader.close()


@asynccontextmanager
async def remote(engine: Engine, patience: float) -> AsyncIterator[Reader]:
    batch = BatchLimits(requests=8, tokens=200, timeout=patience)
    async with worker(lambda: engine, WorkerConfig(batch=batch, grace=0.5)) as url:
        reader = WorkerReader(url, ClientConfig(timeout=patience, chunk_requests=20))
        try:
            yield reader
        finally:
            await reader.close()


@pytest.fixture(params=[local, remote])
def opened(request: pytest.FixtureRequest) -> Opened:
    return lambda engine, patience=5.0: request.param(engine, patience)


async def test_observations_come_one_a_request_and_in_order(opened: Opened) -> None:
    asked = [
        observe_request(
            f"m-{index}", "x" * (index % 50), revision=index, state=state, target=f"t-{index % 3}"
        )
        for index, state in enumerate(list(Stance) * 25)
    ]
    async with opened(FakeEngine()) as reader:
        assert await reader.observe(asked) == [observation(request) for request in asked]


async def test_explanations_come_one_a_request_and_in_order(opened: Opened) -> None:
    asked = [explain_request(f"m-{index}") for index in range(30)]
    async with opened(FakeEngine()) as reader:
        assert await reader.explain(asked) == [explanation(request) for request in asked]


async def test_nothing_is_answered_with_nothing_and_without_the_engine(opened: Opened) -> None:
    engine = FakeEngine()
    async with opened(engine) as reader:
        assert await reader.observe([]) == []
        assert await reader.explain([]) == []
    assert engine.batches == []


async def test_many_callers_each_get_their_own(opened: Opened) -> None:
    async with opened(FakeEngine()) as reader:
        asked = [[observe_request(f"m-{caller}-{at}") for at in range(caller % 4)] for caller in range(25)]
        answers = await asyncio.gather(*(reader.observe(part) for part in asked))
    assert answers == [[observation(request) for request in part] for part in asked]


async def test_a_slow_engine_is_unavailable(opened: Opened) -> None:
    engine = FakeEngine()
    async with opened(engine, 0.2) as reader:
        with pytest.raises(ReaderUnavailable):
            await reader.observe(requests("block"))
        engine.open()


async def test_what_cannot_be_read_is_rejected_by_place_and_the_rest_may_be_asked(
    opened: Opened,
) -> None:
    async with opened(FakeEngine()) as reader:
        asked = requests(*["+1"] * 22, "bad", "+1")
        with pytest.raises(RequestsRejected, match="cannot be read") as raised:
            await reader.observe(asked)
        assert isinstance(raised.value, ReaderRejected)
        assert raised.value.indexes == (22,)
        assert len(await reader.observe([*asked[:22], asked[23]])) == 23


async def test_an_engine_that_breaks_is_unavailable_and_never_rejects(opened: Opened) -> None:
    async with opened(FakeEngine()) as reader:
        with pytest.raises(ReaderUnavailable):
            await reader.observe(requests("boom"))
        assert await reader.observe(requests("+1"))


async def test_an_engine_that_is_away_is_unavailable_and_says_until_when(opened: Opened) -> None:
    async with opened(FakeEngine(), 1.0) as reader:
        with pytest.raises(ReaderUnavailable) as raised:
            await reader.observe(requests("gone"))
        assert raised.value.retry_after == 7.0


async def test_a_cancelled_call_leaves_the_reader_usable_and_gives_nobody_its_answer(opened: Opened) -> None:
    engine = FakeEngine()
    async with opened(engine) as reader:
        cancelled = asyncio.ensure_future(reader.observe([observe_request("m-cancelled", "block")]))
        await eventually(engine.blocked.is_set)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        engine.open()
        asked = requests("+1", "-1")
        assert await reader.observe(asked) == [observation(request) for request in asked]


async def test_a_callers_own_timeout_is_not_swallowed(opened: Opened) -> None:
    engine = FakeEngine()
    async with opened(engine) as reader:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await reader.observe(requests("block"))
        engine.open()


async def test_rule_reads_the_same_wherever_it_runs(opened: Opened) -> None:
    async with opened(RuleEngine()) as reader:
        asked = requests("+1 yes", "-1 no", "+0", "hm", "")
        observations = await reader.observe(asked)
        assert observations == RuleEngine().observe(asked)
        assert [seen.expressed.ranked()[0][0] for seen in observations] == [
            Expressed.SUPPORT,
            Expressed.OPPOSE,
            Expressed.NEUTRAL,
            Expressed.NONE,
            Expressed.NONE,
        ]
        flips = [ExplainRequest(asked[1], observations[1], Stance.OPPOSE)]
        assert await reader.explain(flips) == RuleEngine().explain(flips)


async def test_closing_twice_is_closing_once(opened: Opened) -> None:
    async with opened(FakeEngine()) as reader:
        await reader.close()
        await reader.close()
        with pytest.raises(ReaderUnavailable):
            await reader.observe(requests("+1"))


class Finding(FakeEngine):
    """Proposes what the newest turn says; reacts to it as when it reads."""

    def propose(self, requests: Sequence[ProposeRequest]) -> list[Proposal]:
        self._read([request.shown for request in requests])
        return [proposal(request) for request in requests]


def proposal(request: ProposeRequest) -> Proposal:
    last = request.turns[-1]
    return Proposal(
        request.conversation, last.turn, last.text or None, bool(request.proposition and last.text)
    )


def propose_request(turn: str, text: str = "whether", proposition: str = "") -> ProposeRequest:
    return ProposeRequest(
        "room", (WindowTurn("before", "tom", "hm"), WindowTurn(turn, "maya", text)), proposition
    )


async def test_proposals_come_one_a_request_and_in_order(opened: Opened) -> None:
    asked = [propose_request(f"m-{at}", "x" * (at % 9), "whether" * (at % 2)) for at in range(30)]
    async with opened(Finding()) as reader:
        assert await reader.proposes()
        assert await reader.propose(asked) == [proposal(request) for request in asked]
        assert await reader.propose([]) == []


async def test_an_engine_that_finds_no_targets_says_so(opened: Opened) -> None:
    async with opened(FakeEngine()) as reader:
        assert not await reader.proposes()
        with pytest.raises(CannotPropose):
            await reader.propose([propose_request("m-1")])
        assert await reader.observe(requests("+1"))


async def test_what_no_record_could_carry_proposes_nothing(opened: Opened) -> None:
    unfit = ["  ", "\ud800", "x" * (MAX_PROPOSITION_BYTES + 1)]

    class Babbling(Finding):
        def propose(self, requests: Sequence[ProposeRequest]) -> list[Proposal]:
            return [
                msgspec.structs.replace(proposal(request), proposition=unfit[at], replaces=True)
                for at, request in enumerate(requests)
            ]

    async with opened(Babbling()) as reader:
        found = await reader.propose([propose_request(f"m-{at}") for at in range(3)])
    assert found == [Proposal("room", f"m-{at}") for at in range(3)]


async def test_proposals_that_an_engine_mixes_up_are_asked_for_one_by_one(opened: Opened) -> None:
    class Mixed(Finding):
        def propose(self, requests: Sequence[ProposeRequest]) -> list[Proposal]:
            return super().propose(requests)[::-1]

    asked = [propose_request("m-1"), propose_request("m-2")]
    async with opened(Mixed()) as reader:
        assert await reader.propose(asked) == [proposal(request) for request in asked]


@pytest.mark.parametrize(
    ("text", "raised"), [("bad", ReaderRejected), ("boom", ReaderUnavailable), ("gone", ReaderUnavailable)]
)
async def test_what_a_proposal_fails_with_means_what_it_means_of_a_reading(
    opened: Opened, text: str, raised: type[Exception]
) -> None:
    async with opened(Finding(), 1.0) as reader:
        with pytest.raises(raised):
            await reader.propose([propose_request("m-1", text)])
        assert await reader.propose([propose_request("m-2")])
