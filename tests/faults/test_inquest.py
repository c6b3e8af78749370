"""The inquest sees what it is there to see."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from stream import dead_letters
from stream.letters import Letter, read
from tests.end_to_end.harness import Collected
from tests.faults import inquest
from tests.faults.mutations import Sent
from tests.faults.verdicts import Place
from tracker.parsing import parse_keyed
from tracker.records import Refused

BAD: dict[Place, Sent] = {
    (0, 4): Sent(b"default/room", None),
    (0, 5): Sent(b"\xff", b"[" * 600_000),
    (1, 4): Sent(None, b"x", (("volteface.remedy", b"mine"), ("__connect.errors.offset", b"7"))),
}


class Message:
    """A dead letter as it comes from the topic."""

    partition, offset, timestamp = 0, 0, 0

    def __init__(self, place: Place, sent: Sent, why: Refused) -> None:
        source = f"some.turns/{place[0]}/{place[1]}"
        message, self.headers = dead_letters.dead_letter(sent.key, sent.value, sent.headers, source, why)
        self.key, self.value = message.key, message.value


def refused() -> dict[Place, Refused]:
    found = {}
    for place, sent in BAD.items():
        with pytest.raises(Refused) as caught:
            parse_keyed(sent.key, sent.value)
        found[place] = caught.value
    return found


def letters() -> list[Letter]:
    found = [read(Message(place, BAD[place], why)) for place, why in refused().items()]
    assert all(isinstance(one, Letter) for one in found)
    return cast(list[Letter], found)


def test_letters_of_all_that_is_refused_are_in_order() -> None:
    inquest.require_letters(BAD, refused(), letters())


def changed(**fields: Any) -> Callable[[list[Letter]], object]:
    return lambda found: found.append(replace(found.pop(), **fields))


DAMAGE: dict[str, Callable[[list[Letter]], object]] = {
    "lost": lambda found: found.pop(),
    "twice": lambda found: found.append(found[0]),
    "of a good record": changed(id="some.turns/1/5"),
    "of another record": changed(id="some.turns/0/4"),
    "another key": changed(key=b"x"),
    "another value": changed(value=b"y"),
    "no headers": changed(headers=()),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_to_letters_is_seen(name: str) -> None:
    found = letters()
    DAMAGE[name](found)
    with pytest.raises(AssertionError):
        inquest.require_letters(BAD, refused(), found)


def test_what_is_wrong_is_told_with_the_record() -> None:
    with pytest.raises(AssertionError, match=r"1 not applied: \(1, 4\).*key=None value=b'x'"):
        inquest.same(BAD, "applied", [(0, 4)], [(0, 4), (1, 4)])
    with pytest.raises(AssertionError, match=r"1 applied that must not be: \(2, 0\): nothing sent"):
        inquest.same(BAD, "applied", [(2, 0)], [])


@pytest.mark.parametrize(
    "line",
    [
        b'{"event":"batch.failed","level":"error"}',
        b'{"event":"restore.failed","level":"error"}',
        b"2026-01-01 [error    ] reader.failed",
        b"Traceback (most recent call last):",
    ],
)
def test_errors_in_a_log_are_loud(line: bytes) -> None:
    quiet = b'{"event":"record.refused","level":"warning"}'
    assert inquest.loud_lines(b"\n".join([quiet, line, quiet])) == [line]
    assert not inquest.loud_lines(quiet)


def test_tombstones_are_known_by_their_newest_message() -> None:
    seen = Collected(cast(Any, None), cast(Any, None))
    for key, value in ((b"a", b"1"), (b"a", None), (b"b", None), (b"b", b"2")):
        seen.records["states"].append(cast(Any, SimpleNamespace(key=key, value=value)))
    assert inquest.ended(seen) == {b"a"}
