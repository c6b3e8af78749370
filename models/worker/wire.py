"""Every message between a reader and a worker, and why a worker refuses (RFC 9457 problem documents)."""

import enum
from collections.abc import Sequence
from http import HTTPStatus

import msgspec

from models.reader import ExplainRequest, ObserveRequest, ProposeRequest
from tracker.observations import Explanation, Observation
from tracker.proposals import Proposal

OBSERVE = "/v1/observe"
EXPLAIN = "/v1/explain"
PROPOSE = "/v1/propose"
JSON = "application/json"
PROBLEM_JSON = "application/problem+json"

# One request holds 13 turns of 16 KiB; JSON may escape a byte into six.
MAX_BODY_BYTES = 8 * 1024 * 1024
MAX_ANSWER_BYTES = 16 * 1024 * 1024
MAX_REQUESTS = 512
_MAX_DETAIL = 500


class Reason(enum.StrEnum):
    """Why a worker refused; stable words."""

    NOT_JSON = "not_json"
    INVALID = "invalid"  # JSON of another shape: another version speaks
    BROKEN_BODY = "broken_body"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    SLOW_BODY = "slow_body"
    TOO_LARGE = "too_large"
    REJECTED = "rejected"  # the engine will never read these requests
    CANNOT_PROPOSE = "cannot_propose"  # the engine finds no targets
    INTERNAL = "internal"
    ENGINE_FAILED = "engine_failed"
    ENGINE_UNAVAILABLE = "engine_unavailable"
    LOADING = "loading"
    DRAINING = "draining"
    QUEUE_FULL = "queue_full"
    STUCK = "stuck"  # a batch runs for longer than any should
    TIMED_OUT = "timed_out"


STATUS: dict[Reason, HTTPStatus] = {
    Reason.NOT_JSON: HTTPStatus.BAD_REQUEST,
    Reason.INVALID: HTTPStatus.BAD_REQUEST,
    Reason.BROKEN_BODY: HTTPStatus.BAD_REQUEST,
    Reason.NOT_FOUND: HTTPStatus.NOT_FOUND,
    Reason.METHOD_NOT_ALLOWED: HTTPStatus.METHOD_NOT_ALLOWED,
    Reason.SLOW_BODY: HTTPStatus.REQUEST_TIMEOUT,
    Reason.TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    Reason.REJECTED: HTTPStatus.UNPROCESSABLE_ENTITY,
    Reason.CANNOT_PROPOSE: HTTPStatus.NOT_IMPLEMENTED,
    Reason.INTERNAL: HTTPStatus.INTERNAL_SERVER_ERROR,
    Reason.ENGINE_FAILED: HTTPStatus.INTERNAL_SERVER_ERROR,
    Reason.ENGINE_UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    Reason.LOADING: HTTPStatus.SERVICE_UNAVAILABLE,
    Reason.DRAINING: HTTPStatus.SERVICE_UNAVAILABLE,
    Reason.QUEUE_FULL: HTTPStatus.SERVICE_UNAVAILABLE,
    Reason.STUCK: HTTPStatus.SERVICE_UNAVAILABLE,
    Reason.TIMED_OUT: HTTPStatus.GATEWAY_TIMEOUT,
}


class ObserveCall(msgspec.Struct, frozen=True):
    """The body of POST /v1/observe."""

    requests: list[ObserveRequest]


class ObserveAnswer(msgspec.Struct, frozen=True):
    """One observation a request, in order."""

    observations: list[Observation]


class ExplainCall(msgspec.Struct, frozen=True):
    """The body of POST /v1/explain."""

    requests: list[ExplainRequest]


class ExplainAnswer(msgspec.Struct, frozen=True):
    """One explanation a request, in order."""

    explanations: list[Explanation]


class ProposeCall(msgspec.Struct, frozen=True):
    """The body of POST /v1/propose; without requests it asks whether the engine finds targets."""

    requests: list[ProposeRequest]


class ProposeAnswer(msgspec.Struct, frozen=True):
    """One proposal a request, in order."""

    proposals: list[Proposal]


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """RFC 9457, with the reason beside it and, where `rejected`, which requests of the call were."""

    type: str
    title: str
    status: int
    reason: str  # a Reason; a plain string here, since a newer worker may know more of them
    detail: str = ""
    indexes: tuple[int, ...] = ()


class Refusal(Exception):
    """A call that the worker does not answer with a result."""

    def __init__(
        self,
        reason: Reason,
        detail: str,
        *,
        retry_after: float | None = None,
        indexes: tuple[int, ...] = (),
    ) -> None:
        super().__init__(detail)
        self.reason = reason
        self.retry_after = retry_after  # seconds
        self.indexes = indexes

    @property
    def problem(self) -> Problem:
        """The refusal as a document."""
        status = STATUS[self.reason]
        return Problem(
            type=f"urn:volteface:problem:{self.reason}",
            title=status.phrase,
            status=status.value,
            reason=self.reason,
            detail=str(self)[:_MAX_DETAIL],
            indexes=self.indexes,
        )


def body_of(requests: Sequence[bytes]) -> bytes:
    """A call's body from its requests, each encoded once already."""
    return b'{"requests":[' + b",".join(requests) + b"]}"


def spans(sizes: Sequence[int], *, most: int, most_bytes: int) -> list[tuple[int, int]]:
    """Consecutive (start, stop) of at most so many requests and bytes; one too large for any stands alone."""
    found: list[tuple[int, int]] = []
    start = total = 0
    for at, size in enumerate(sizes):
        if at > start and (at - start == most or total + size > most_bytes):
            found.append((start, at))
            start, total = at, 0
        total += size
    return [*found, (start, len(sizes))] if sizes else []
