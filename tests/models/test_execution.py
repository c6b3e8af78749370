from collections.abc import Sequence

import msgspec
import pytest

from models import execution
from models.execution import (
    MAX_NAMED,
    MAX_RATIONALE_BYTES,
    EngineFailed,
    Failed,
    Outcome,
    Rejected,
    RequestsRejected,
    WrongAnswer,
    execute,
    unwrap,
)
from models.reader import Engine, ObserveRequest, ReaderUnavailable
from tests.models.worker.fakes import FakeEngine, explain_request, explanation, observation, requests
from tracker.observations import Evidence, Observation, Trigger
from tracker.records import MAX_NAME_BYTES
from tracker.stances import TriggerKind


def run(engine: Engine, asked: Sequence[ObserveRequest]) -> list[Outcome[Observation]]:
    return execute(lambda part: execution.observe(engine, part), asked)


def test_a_bad_request_never_fails_its_neighbours() -> None:
    asked = requests("+1", "bad", "-1")
    first, second, third = run(FakeEngine(), asked)
    assert [first, third] == [observation(asked[0]), observation(asked[2])]
    assert second == Rejected("cannot be read")


def test_one_that_breaks_the_engine_never_fails_its_neighbours() -> None:
    asked = requests("boom", "+1", "bad", "boom", "+1")
    outcomes = run(FakeEngine(), asked)
    assert [type(outcome).__name__ for outcome in outcomes] == [
        "Failed",
        "Observation",
        "Rejected",
        "Failed",
        "Observation",
    ]


def test_a_value_error_is_a_failure_and_no_verdict_on_the_request() -> None:
    class Sick(FakeEngine):
        def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
            raise ValueError("probabilities lie in 0..1, got nan")

    assert [type(outcome) for outcome in run(Sick(), requests("+1", "+1"))] == [Failed, Failed]


def test_an_ill_engine_is_not_tried_for_every_request() -> None:
    engine = FakeEngine()
    outcomes = run(engine, requests(*["boom"] * 20))
    assert all(isinstance(outcome, Failed) for outcome in outcomes)
    assert len(engine.batches) == 3


def test_an_engine_that_is_away_is_asked_once() -> None:
    engine = FakeEngine()
    outcomes = run(engine, requests("+1", "gone"))
    assert len(engine.batches) == 1
    with pytest.raises(ReaderUnavailable, match="away") as raised:
        unwrap(outcomes)
    assert raised.value.retry_after == 7.0
    assert not isinstance(raised.value, EngineFailed)


def test_unwrap_names_the_rejected_before_the_failed() -> None:
    with pytest.raises(RequestsRejected, match="2 of 4") as raised:
        unwrap([Failed(RuntimeError()), Rejected("a"), 1, Rejected("b")])
    assert raised.value.indexes == (1, 3)
    with pytest.raises(EngineFailed, match="RuntimeError") as failed:
        unwrap([1, Failed(RuntimeError("text of a turn"))])
    assert "text" not in str(failed.value)
    assert unwrap([1, 2]) == [1, 2]


@pytest.mark.parametrize(
    "change",
    [{"turn": "x"}, {"revision": 9}, {"target": "x"}, {"holder": "x"}, {"read_under": "oppose"}],
    ids=lambda change: next(iter(change)),
)
def test_an_observation_of_anything_else_is_a_wrong_answer(change: dict[str, object]) -> None:
    asked = requests("+1", "+1")
    answers = [observation(request) for request in asked]
    assert execution.check_observations(asked, answers) == answers
    answers[1] = msgspec.structs.replace(answers[1], **change)
    with pytest.raises(WrongAnswer, match="answer 1"):
        execution.check_observations(asked, answers)


def test_order_and_count_belong_to_the_answer() -> None:
    asked = requests("+1", "+1")
    answers = [observation(request) for request in asked]
    for wrong in (answers[::-1], answers[:1], [*answers, answers[0]]):
        with pytest.raises(WrongAnswer):
            execution.check_observations(asked, wrong)


def test_an_explanation_and_its_refined_observation_are_of_the_request() -> None:
    asked = [explain_request("m-1")]
    right = msgspec.structs.replace(explanation(asked[0]), refined=asked[0].observation)
    assert execution.check_explanations(asked, [right]) == [right]
    other = msgspec.structs.replace(asked[0].observation, holder="tom")
    for wrong in ({"refined": other}, {"turn": "x"}, {"target": "x"}):
        with pytest.raises(WrongAnswer):
            execution.check_explanations(asked, [msgspec.structs.replace(right, **wrong)])
    with pytest.raises(WrongAnswer):
        execution.check_explanations(asked, [])


def test_an_engine_that_answers_in_the_wrong_count_fails_and_rejects_nobody() -> None:
    class Short(FakeEngine):
        def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
            return super().observe(requests)[1:]

    with pytest.raises(EngineFailed):
        unwrap(run(Short(), requests("+1", "+1", "+1")))


def test_a_talkative_engine_costs_no_turn() -> None:
    asked = [explain_request("m-1")]
    long = msgspec.structs.replace(explanation(asked[0]), rationale="x" + "é" * MAX_RATIONALE_BYTES)
    [cut] = execution.check_explanations(asked, [long])
    assert len(cut.rationale.encode()) == MAX_RATIONALE_BYTES - 1  # no half of a character
    assert long.rationale.startswith(cut.rationale)


@pytest.mark.parametrize(
    "wrong",
    [
        {"trigger": Trigger(TriggerKind.FACTUAL_LOGICAL, ("m-1",) * (MAX_NAMED + 1), (), 1.0)},
        {"trigger": Trigger(TriggerKind.FACTUAL_LOGICAL, (), ("maya",) * (MAX_NAMED + 1), 1.0)},
        {"trigger": Trigger(TriggerKind.FACTUAL_LOGICAL, ("é" * MAX_NAME_BYTES,), (), 1.0)},
        {"evidence": (Evidence("m-1", "text"),) * (MAX_NAMED + 1)},
        {"evidence": (Evidence("m-1", "x" * (MAX_NAME_BYTES + 1)),)},
    ],
    ids=["turns", "holders", "a turn's name", "evidence", "a modality"],
)
def test_an_explanation_that_names_too_much_is_a_wrong_answer(wrong: dict[str, object]) -> None:
    asked = [explain_request("m-1")]
    with pytest.raises(WrongAnswer, match="answer 0"):
        execution.check_explanations(asked, [msgspec.structs.replace(explanation(asked[0]), **wrong)])
