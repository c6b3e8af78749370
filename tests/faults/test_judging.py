"""The comparison sees what it is there to see."""

from collections.abc import Callable

import pytest

from tests.faults.judging import compare
from tests.faults.undisturbed import Course


def course() -> Course:
    found = Course()
    for number in range(3):
        event = {"id": f"e{number}", "data": {"conversation": "a"}}
        found.take("stances", event)
        found.take("journal", {"conversation": "a", "source": f"t/0/{number}", "entry": {"arrival": number}})
    found.take("states", {"conversation": "a", "holder": "ann", "target": "x", "version": 3, "state": "new"})
    return found


def test_where_a_record_stood_and_older_states_make_no_difference() -> None:
    other = course()
    other.take("states", {"conversation": "a", "holder": "ann", "target": "x", "version": 2, "state": "old"})
    moved = {"conversation": "b", "source": "elsewhere", "entry": {}}
    other.take("journal", moved)
    expected = course()
    expected.take("journal", moved | {"source": "here"})
    compare(other, expected)


DAMAGE: dict[str, Callable[[Course], object]] = {
    "lost event": lambda found: found.stances["a"].pop(),
    "event twice": lambda found: found.stances["a"].append(found.stances["a"][-1]),
    "foreign event": lambda found: found.stances["b"].append({"id": "x"}),
    "overtaken": lambda found: found.stances["a"].reverse(),
    "other content": lambda found: found.stances["a"][0].update(type="another"),
    "lost record": lambda found: found.journal["a"].pop(0),
    "record twice": lambda found: found.journal["a"].append(found.journal["a"][0]),
    "lost state": lambda found: found.states.clear(),
    "newer state": lambda found: found.take(
        "states", {"conversation": "a", "holder": "ann", "target": "x", "version": 4}
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_seen(name: str) -> None:
    found = course()
    DAMAGE[name](found)
    with pytest.raises(AssertionError):
        compare(found, course())
