"""What an explanation keeps when turns are gone or a person is forgotten."""

import msgspec
import pytest

from tracker.cutting import cut
from tracker.observations import Evidence, Explanation, Trigger
from tracker.stances import TriggerKind

TOLD = Explanation(
    "m-9",
    "t-1",
    Trigger(TriggerKind.SOCIAL_INFLUENCE, ("m-1", "m-2", "m-3"), ("ann", "bo"), 0.5),
    (Evidence("m-2", "text"), Evidence("m-9", "text")),
    "bo has a point",
)
HOLDERS = {"m-1": "ann", "m-2": "bo", "m-3": "bo"}


@pytest.mark.parametrize(
    ("gone", "turns", "holders", "evidence"),
    [
        ({"m-1"}, ("m-2", "m-3"), ("bo",), ("m-2", "m-9")),
        ({"m-2"}, ("m-1", "m-3"), ("ann", "bo"), ("m-9",)),
        ({"m-2", "m-3"}, ("m-1",), ("ann",), ("m-9",)),
    ],
)
def test_turns_go_and_their_holders_where_none_of_theirs_is_left(
    gone: set[str], turns: tuple[str, ...], holders: tuple[str, ...], evidence: tuple[str, ...]
) -> None:
    less = cut(TOLD, gone, HOLDERS)
    assert (less.trigger.turns, less.trigger.holders) == (turns, holders)
    assert tuple(one.turn for one in less.evidence) == evidence
    assert less.rationale == ""
    assert (less.trigger.kind, less.trigger.confidence) == (TOLD.trigger.kind, 0.5)


def test_what_tells_of_nothing_that_is_gone_stays_the_same() -> None:
    assert cut(TOLD, {"m-7"}, HOLDERS, "cy") is TOLD


@pytest.mark.parametrize("named", [("bo",), ()])
def test_a_forgotten_person_is_named_neither_as_a_holder_nor_in_words(named: tuple[str, ...]) -> None:
    trigger = msgspec.structs.replace(TOLD.trigger, holders=named)
    less = cut(msgspec.structs.replace(TOLD, trigger=trigger), (), HOLDERS, "bo")
    assert (less.trigger.holders, less.rationale) == ((), "")
