"""The comparison sees what it is there to see."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from tests.end_to_end.harness import Collected
from tests.faults import judging
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


def collected() -> Collected:
    """What `course` holds, as it is read from the topics, with all of it sent twice."""
    seen = Collected(cast(Any, None), cast(Any, None))
    for number in range(3):
        event = {"id": f"e{number}", "data": {"conversation": "a"}}
        entry = {"conversation": "a", "source": f"t/0/{number}", "entry": {"arrival": number}}
        seen.values["stances"] += [event, dict(event)]
        seen.values["journal"] += [entry, dict(entry)]
    state = {"conversation": "a", "holder": "ann", "target": "x", "version": 3, "state": "new"}
    seen.values["states"] += [state, dict(state)]
    return seen


def test_what_is_sent_again_makes_no_difference() -> None:
    compare(judging.course(collected()), course())


SENT: dict[str, Callable[[Collected], object]] = {
    "record applied twice": lambda seen: seen.values["journal"].append(
        seen.values["journal"][0] | {"entry": {"arrival": 3}}
    ),
    "record sent again as another": lambda seen: seen.values["journal"].append(
        seen.values["journal"][0] | {"source": "t/0/9"}
    ),
    "record never applied": lambda seen: seen.values["journal"].__delitem__(slice(2)),
    "event sent again as another": lambda seen: seen.values["stances"].append(
        seen.values["stances"][0] | {"type": "another"}
    ),
    "event never sent": lambda seen: seen.values["stances"].__delitem__(slice(2)),
}


@pytest.mark.parametrize("name", SENT)
def test_damage_in_the_topics_is_seen(name: str) -> None:
    seen = collected()
    SENT[name](seen)
    with pytest.raises(AssertionError):
        compare(judging.course(seen), course())
