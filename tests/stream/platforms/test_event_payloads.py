"""Payloads of live events: one a line, refusals by the platform's own names."""

import io
from collections.abc import Iterator
from typing import Any

import pytest

from stream.platforms import event_payloads
from stream.platforms.event_payloads import Result, inner, results, whole
from stream.platforms.lines import MAX_LINE_BYTES, raw_lines
from tracker.records import EPOCH, CreateTurn, Reason, Record, Refused


def create(turn: str, holder: str = "u") -> CreateTurn:
    return CreateTurn(conversation="c", sent_at=EPOCH, turn=turn, holder=holder, text="hi")


def test_each_lines_payload_is_read_and_a_bad_line_is_told() -> None:
    def records(payload: Any) -> Iterator[Result]:
        return results(iter([create(payload["turn"])] * 2), {})

    raw = b'{"turn": "1"}\n[]\n' + b"x" * (MAX_LINE_BYTES + 1) + b'\n{"turn": "2"}'
    lines = list(event_payloads.read(raw_lines(io.BytesIO(raw)), records))
    found = [(line.number, getattr(line.result, "turn", None)) for line in lines]
    assert found == [(1, "1"), (1, "1"), (2, None), (3, None), (4, "2"), (4, "2")]


def test_what_was_made_before_a_refusal_is_kept() -> None:
    def records() -> Iterator[Record]:
        yield create("1")
        raise Refused(Reason.MISSING_FIELD, "ts", "missing", "add ts")

    turn, refused = results(records(), {})
    assert isinstance(refused, Refused) and not isinstance(turn, Refused)


def test_a_refusal_is_called_as_the_platform_calls_it() -> None:
    (refused,) = results(iter([create("1", holder="x" * 600)]), {"holder": "author.id"})
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.field) == (Reason.TOO_LONG, "author.id")


@pytest.mark.parametrize(
    ("given", "reason"), [({}, Reason.MISSING_FIELD), ({"event": None}, Reason.WRONG_TYPE)]
)
def test_an_inner_object_that_is_none(given: dict[str, Any], reason: Reason) -> None:
    with pytest.raises(Refused) as raised:
        inner(given, "event")
    assert (raised.value.reason, raised.value.field) == (reason, "event")
    with pytest.raises(Refused, match="not_an_object"):
        whole([given])
