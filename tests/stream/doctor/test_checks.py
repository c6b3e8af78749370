"""Checks: every complaint says what to do, and one that breaks hides no other."""

import pytest

from stream.doctor.checks import Check, Status, evaluated, failed, ok, skipped, warning


@pytest.mark.parametrize("status", [Status.WARNING, Status.FAILED])
def test_a_complaint_without_a_remedy_is_refused(status: Status) -> None:
    with pytest.raises(ValueError, match="without a remedy"):
        Check("x", status, "wrong")


def test_the_makers_give_the_status_of_their_name() -> None:
    made = [ok("x", "f"), warning("x", "f", "r"), failed("x", "f", "r"), skipped("x", "f")]
    assert [check.status for check in made] == ["ok", "warning", "failed", "skipped"]


def test_a_check_that_breaks_hides_no_other() -> None:
    def breaks(fact: str) -> Check:
        raise KeyError(fact)

    def answers(fact: str) -> Check:
        return ok("answers", fact)

    broken, answered = evaluated([breaks, answers], "fact")
    assert (broken.name, broken.status, broken.found) == (
        "breaks",
        "failed",
        "this check broke: KeyError('fact')",
    )
    assert answered == ok("answers", "fact")
