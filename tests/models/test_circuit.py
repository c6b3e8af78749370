import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import circuit
from models.circuit import Breaker, Circuit, CircuitOpen, CircuitPolicy, IllegalTransition

POLICY = CircuitPolicy(failures=3, open_for=5.0)
LEGAL = {
    (Circuit.CLOSED, Circuit.OPEN),
    (Circuit.OPEN, Circuit.HALF_OPEN),
    (Circuit.HALF_OPEN, Circuit.CLOSED),
    (Circuit.HALF_OPEN, Circuit.OPEN),
}


def opened(at: float = 0.0) -> Breaker:
    breaker = Breaker()
    for _ in range(POLICY.failures):
        breaker = circuit.failed(breaker, breaker.epoch, at, POLICY)
    return breaker


@pytest.mark.parametrize("before", Circuit)
@pytest.mark.parametrize("after", Circuit)
def test_only_the_four_steps_exist(before: Circuit, after: Circuit) -> None:
    if (before, after) in LEGAL:
        assert circuit.moved(Breaker(state=before, epoch=4), after).epoch == 5
    else:
        with pytest.raises(IllegalTransition, match=f"from {before.value} to {after.value}"):
            circuit.moved(Breaker(state=before), after)


def test_failures_in_a_row_open_it_and_a_success_between_them_does_not() -> None:
    breaker = Breaker()
    for _ in range(10):
        breaker = circuit.failed(breaker, 0, 0.0, POLICY)
        breaker = circuit.failed(breaker, 0, 0.0, POLICY)
        breaker = circuit.succeeded(breaker, 0)
    assert breaker.state is Circuit.CLOSED
    assert opened().state is Circuit.OPEN


def test_an_open_one_says_how_long_and_then_admits_one_trial() -> None:
    breaker = opened(at=100.0)
    with pytest.raises(CircuitOpen) as raised:
        circuit.admitted(breaker, 102.0)
    assert raised.value.retry_after == 3.0
    trial = circuit.admitted(breaker, 105.0)
    assert trial.state is Circuit.HALF_OPEN
    with pytest.raises(CircuitOpen):
        circuit.admitted(trial, 105.0)
    assert circuit.succeeded(trial, trial.epoch) == Breaker(epoch=trial.epoch + 1)
    again = circuit.failed(trial, trial.epoch, 105.0, POLICY)
    assert (again.state, again.until) == (Circuit.OPEN, 110.0)


def test_a_cancelled_trial_leaves_room_for_the_next() -> None:
    trial = circuit.admitted(opened(), 5.0)
    released = circuit.released(trial, trial.epoch, 6.0)
    assert circuit.admitted(released, 6.0).state is Circuit.HALF_OPEN


def test_a_late_result_from_before_is_not_the_trials() -> None:
    trial = circuit.admitted(opened(), 5.0)
    assert circuit.succeeded(trial, 0) is trial
    assert circuit.failed(trial, 0, 5.0, POLICY) is trial
    assert circuit.released(trial, 0, 5.0) is trial


@given(
    st.lists(
        st.tuples(st.sampled_from(["admit", "succeed", "fail", "cancel"]), st.floats(0, 4), st.integers(0, 5))
    )
)
def test_whatever_happens_every_step_is_legal_and_at_most_one_trial_runs(
    steps: list[tuple[str, float, int]],
) -> None:
    breaker, now, running = Breaker(), 0.0, list[int]()
    for what, later, which in steps:
        now += later
        before = breaker
        if what == "admit":
            try:
                breaker = circuit.admitted(breaker, now)
                running.append(breaker.epoch)
            except CircuitOpen as refused:
                assert breaker.state is not Circuit.CLOSED
                assert refused.retry_after > 0
        elif running:
            epoch = running.pop(which % len(running))
            match what:
                case "succeed":
                    breaker = circuit.succeeded(breaker, epoch)
                case "fail":
                    breaker = circuit.failed(breaker, epoch, now, POLICY)
                case "cancel":
                    breaker = circuit.released(breaker, epoch, now)
        moved = before.state is not breaker.state
        assert not moved or (before.state, breaker.state) in LEGAL
        assert breaker.epoch == before.epoch + moved
        assert breaker.failures < POLICY.failures
        if breaker.state is Circuit.HALF_OPEN:
            assert running.count(breaker.epoch) == 1
