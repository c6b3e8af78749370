"""A reader that is away while it is measured: waited for, then given up, and never scored."""

from collections.abc import Callable, Sequence

import pytest

from models.evaluation import runner
from models.evaluation.patience import ATTEMPTS, LONGEST_SECONDS, Patient, ReaderAway
from models.execution import Failed, PartlyRead, Rejected
from models.language.rule import RuleEngine
from models.reader import ExplainRequest, ObserveRequest, ReaderRejected, ReaderUnavailable
from models.routing import RoutedEngine
from tests.models.evaluation.build import OPP, SUP, UNK
from tests.models.evaluation.test_runner import dialogue, states
from tracker.observations import Explanation, Observation

TALK = [dialogue("a +1", "a -1", language="en"), dialogue("b +1", "b -1", ident="z", language="zh")]
MOVED = [[(UNK, SUP), (SUP, OPP)]] * 2


class Away(RuleEngine):
    """Engine `rule`, whose calls of these numbers, from 0, find it away."""

    def __init__(self, away: Callable[[int], bool], retry_after: float = 1.0) -> None:
        self.calls: list[int] = []  # how many requests each had
        self._away, self._retry_after = away, retry_after

    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        self._called(requests)
        return super().observe(requests)

    def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        self._called(requests)
        return super().explain(requests)

    def _called(self, requests: Sequence[object]) -> None:
        self.calls.append(len(requests))
        if self._away(len(self.calls) - 1):
            raise ReaderUnavailable("the remote server: status 503", self._retry_after)


def by_language(chinese: Away, english: Away) -> RoutedEngine:
    return RoutedEngine({"zh": chinese}, english, lambda turn, window: turn.language or "und")


def never(call: int) -> bool:
    return False


def always(call: int) -> bool:
    return True


def test_a_reader_that_comes_back_is_waited_for_longer_each_time() -> None:
    slept: list[float] = []
    engine = Away(lambda call: call % ATTEMPTS != ATTEMPTS - 1)
    assert [states(one) for one in runner.run(TALK, Patient(engine, "x", slept.append))] == MOVED
    assert slept == [1.0, 2.0, 4.0, 8.0, 16.0] * 3  # two waves observed, one explained


@pytest.mark.parametrize(("retry_after", "first"), [(7.0, 7.0), (600.0, LONGEST_SECONDS)])
def test_a_pause_is_as_long_as_was_asked_for_within_bounds(retry_after: float, first: float) -> None:
    slept: list[float] = []
    engine = Away(lambda call: call == 0, retry_after)
    runner.run(TALK, Patient(engine, "x", slept.append))
    assert slept == [first]


def test_a_reader_that_stays_away_is_given_up_by_name() -> None:
    slept: list[float] = []
    engine = Away(always)
    with pytest.raises(ReaderAway, match=r"remote gave no answer for turns in en, zh, asked 6 times: .* 503"):
        runner.run(TALK, Patient(engine, "remote", slept.append))
    assert (len(engine.calls), len(slept)) == (ATTEMPTS, ATTEMPTS - 1)


def test_a_languages_reader_is_asked_again_for_its_own_turns_alone() -> None:
    chinese, english = Away(lambda call: call in {0, 2}), Away(never)
    found = runner.run(TALK, Patient(by_language(chinese, english), "x", lambda seconds: None))
    assert [states(one) for one in found] == MOVED
    assert (chinese.calls, english.calls) == ([1, 1, 1, 1, 1], [1, 1, 1])


def test_a_languages_reader_that_stays_away_is_named_and_nothing_is_scored() -> None:
    chinese, english = Away(always), Away(never)
    with pytest.raises(ReaderAway, match="gave no answer for turns in zh, asked 6 times"):
        runner.run(TALK, Patient(by_language(chinese, english), "by-language", lambda seconds: None))
    assert (len(chinese.calls), len(english.calls)) == (ATTEMPTS, 1)


def test_away_for_explanations_alone_is_away_too() -> None:
    with pytest.raises(ReaderAway, match="turns in en, zh"):
        runner.run(TALK, Patient(Away(lambda call: call >= 2), "x", lambda seconds: None))


class Partly(RuleEngine):
    def __init__(self, *outcomes: Rejected | Failed) -> None:
        self._outcomes = outcomes

    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        raise PartlyRead(self._outcomes)


def test_a_refusal_is_not_asked_again() -> None:
    engine = Partly(Rejected("too long"), Failed(ReaderUnavailable("gone")))
    with pytest.raises(ReaderRejected, match="too long"):
        runner.run(TALK, Patient(engine, "x", pytest.fail))


def test_what_an_engine_breaks_with_is_given_up_without_its_words() -> None:
    engine = Partly(*[Failed(RuntimeError("the turn's text"))] * 2)
    with pytest.raises(ReaderAway, match="the engine failed: RuntimeError"):
        runner.run(TALK, Patient(engine, "x", lambda seconds: None))


class Bug(RuleEngine):
    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        raise ZeroDivisionError


def test_a_bug_is_not_waited_for() -> None:
    with pytest.raises(ZeroDivisionError):
        runner.run(TALK, Patient(Bug(), "x", pytest.fail))
