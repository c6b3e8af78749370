import pytest

from models.reader import ExplainRequest, ObserveRequest, ProposeRequest, ReaderUnavailable
from stream.answering import Answering
from tests.stream.fakes import CountingReader
from tracker.context import WindowTurn
from tracker.stances import Stance

TURN = WindowTurn("1", "ann", "+1")
REQUEST = ObserveRequest("a", TURN, 0, "t", "whether x", Stance.UNKNOWN)


async def test_every_answer_is_passed_on_and_told() -> None:
    told: list[int] = []
    inner = CountingReader(propositions=["whether x"])
    reader = Answering(inner, lambda: told.append(1))
    [observation] = await reader.observe([REQUEST])
    assert observation.turn == "1"
    [explanation] = await reader.explain([ExplainRequest(REQUEST, observation, Stance.SUPPORT)])
    assert explanation.turn == "1"
    [proposal] = await reader.propose([ProposeRequest("a", (TURN,))])
    assert proposal.proposition == "whether x"
    assert await reader.proposes()
    assert len(told) == 3


async def test_a_failure_is_none() -> None:
    told: list[int] = []
    reader = Answering(CountingReader(away=lambda _: True), lambda: told.append(1))
    with pytest.raises(ReaderUnavailable):
        await reader.observe([REQUEST])
    assert told == []
