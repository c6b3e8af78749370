import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.webhooks.schedule import JITTER, LONGEST_WAIT, WAITS, Answer, Outcome, State, after

NOW = dt.datetime(2026, 12, 1, 12, 0, tzinfo=dt.UTC)


def waits(answer: Answer, attempts: int = 1) -> float:
    outcome = after(answer, attempts, NOW, 0.0)
    assert outcome.state is State.WAITING
    assert outcome.due is not None
    return (outcome.due - NOW).total_seconds()


def test_the_schedule_of_the_specification() -> None:
    waited = [waits(Answer(500), attempts) for attempts in range(1, 10)]
    assert waited == [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400]
    assert after(Answer(500), 10, NOW, 0.0) == Outcome(State.FAILED)


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_a_success_at_any_attempt(status: int) -> None:
    for attempts in (1, 10):
        assert after(Answer(status), attempts, NOW, 0.5) == Outcome(State.DELIVERED)


def test_nobody_is_there_any_more() -> None:
    assert after(Answer(410), 1, NOW, 0.5) == Outcome(State.GONE)


@pytest.mark.parametrize("status", [None, 100, 301, 302, 400, 404, 429, 500, 502, 503, 504])
def test_all_else_is_tried_again(status: int | None) -> None:
    assert waits(Answer(status)) == WAITS[0]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120),
        (" 7 ", 7),
        ("1", 5),
        ("99999999999999999999", LONGEST_WAIT.total_seconds()),
        ("Tue, 01 Dec 2026 12:10:00 GMT", 600),
        ("Tue, 01 Dec 2026 11:00:00 GMT", 5),
        ("Tue, 01 Dec 2026 12:10:00", 600),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_WAIT.total_seconds()),
        ("-5", 5),
        ("soon", 5),
        ("", 5),
    ],
)
def test_a_receiver_says_when(header: str, seconds: float) -> None:
    assert waits(Answer(429, header)) == seconds


@given(st.text(), st.integers(1, 9), st.floats(0, 1))
def test_whatever_it_says_the_next_attempt_is_bounded(header: str, attempts: int, chance: float) -> None:
    outcome = after(Answer(503, header), attempts, NOW, chance)
    assert outcome.due is not None
    wait = (outcome.due - NOW).total_seconds()
    assert WAITS[attempts - 1] <= wait <= LONGEST_WAIT.total_seconds() * (1 + JITTER)
