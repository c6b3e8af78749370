import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.worker import wire
from models.worker.wire import STATUS, ObserveCall, Reason, Refusal
from tests.models.worker.fakes import requests


def test_every_reason_has_a_status() -> None:
    assert set(STATUS) == set(Reason)


def test_a_refusal_is_a_problem_document() -> None:
    document = msgspec.json.decode(msgspec.json.encode(Refusal(Reason.QUEUE_FULL, "12 wait").problem))
    assert document == {
        "type": "urn:volteface:problem:queue_full",
        "title": "Service Unavailable",
        "status": 503,
        "reason": "queue_full",
        "detail": "12 wait",
    }


def test_a_problem_quotes_no_more_than_a_little() -> None:
    assert len(Refusal(Reason.REJECTED, "x" * 10_000).problem.detail) == 500


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_body_made_of_encoded_requests_is_a_call(count: int) -> None:
    asked = requests(*["+1 é\n"] * count)
    body = wire.body_of([msgspec.json.encode(request) for request in asked])
    assert msgspec.json.decode(body, type=ObserveCall) == ObserveCall(asked)
    assert body == msgspec.json.encode(ObserveCall(asked))


@given(st.lists(st.integers(1, 50)), st.integers(1, 8), st.integers(1, 100))
def test_spans_cover_everything_once_within_the_limits_and_as_few_as_can_be(
    sizes: list[int], most: int, most_bytes: int
) -> None:
    spans = wire.spans(sizes, most=most, most_bytes=most_bytes)
    assert [at for start, stop in spans for at in range(start, stop)] == list(range(len(sizes)))
    for start, stop in spans:
        assert start < stop <= start + most
        assert stop - start == 1 or sum(sizes[start:stop]) <= most_bytes
    for start, stop in spans[:-1]:
        assert stop - start == most or sum(sizes[start : stop + 1]) > most_bytes
