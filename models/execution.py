"""Has an engine read requests: a bad one never fails its neighbours, no answer lands on another's turn.

The reader in process and the worker go through `execute`. Nothing here knows of threads, loops or HTTP.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import msgspec

from models.reader import (
    Engine,
    ExplainRequest,
    ObserveRequest,
    Proposer,
    ProposeRequest,
    ReaderRejected,
    ReaderUnavailable,
)
from tracker.context import WINDOW_TURNS, WindowTurn
from tracker.observations import Explanation, Observation
from tracker.proposals import Proposal
from tracker.records import MAX_NAME_BYTES, MAX_PROPOSITION_BYTES
from tracker.stances import Stance

MAX_RATIONALE_BYTES = 2 * 1024  # of UTF-8; a flip's message must fit what a broker takes
MAX_NAMED = WINDOW_TURNS + 1  # trigger turns, their holders, and evidence: as many as turns are shown

# Harmless: an engine that breaks on this one, too, breaks on everything.
PROBE = ObserveRequest(
    "probe", WindowTurn("0", "probe", "ok"), 0, "probe", "whether turns are read", Stance.UNKNOWN
)

_ILL_AFTER = 2  # failures in a row without a success: the engine is ill, not a request


class WrongAnswer(RuntimeError):
    """Answers that are not, one for one and in order, those of the requests."""


class EngineFailed(ReaderUnavailable):
    """The engine raised something that is neither a refusal nor an absence; its cause says what."""


class RequestsRejected(ReaderRejected):
    """Some requests can never be read; `indexes` says which, the others may be asked again without them."""

    def __init__(self, message: str, indexes: Sequence[int]) -> None:
        super().__init__(message)
        self.indexes = tuple(indexes)


class PartlyRead(Exception):
    """An engine made of several could read only some requests; `outcomes` has one a request, in order."""

    def __init__(self, outcomes: "Sequence[Outcome[Any]]") -> None:
        self.outcomes = tuple(outcomes)
        failed = sum(isinstance(outcome, Rejected | Failed) for outcome in outcomes)
        super().__init__(f"{failed} of {len(outcomes)} requests were not read")


@dataclass(frozen=True)
class Rejected:
    """The engine refused this request."""

    detail: str


@dataclass(frozen=True)
class Failed:
    """The engine broke, or was not there, on this request."""

    error: Exception


Request = TypeVar("Request")
Answer = TypeVar("Answer")
Outcome: TypeAlias = Answer | Rejected | Failed


def observe(engine: Engine, requests: Sequence[ObserveRequest]) -> list[Observation]:
    """The engine's observations. Raises WrongAnswer where they are not the requests'."""
    return check_observations(requests, engine.observe(requests))


def explain(engine: Engine, requests: Sequence[ExplainRequest]) -> list[Explanation]:
    """The engine's explanations. Raises WrongAnswer where they are not the requests'."""
    return check_explanations(requests, engine.explain(requests))


def propose(engine: Proposer, requests: Sequence[ProposeRequest]) -> list[Proposal]:
    """The engine's proposals. Raises WrongAnswer where they are not the requests'."""
    return check_proposals(requests, engine.propose(requests))


def close(engine: Engine) -> None:
    """Have an engine give back what it holds beside memory, if it does; a call under way in it may fail."""
    if closing := getattr(engine, "close", None):
        closing()


def check_observations(
    requests: Sequence[ObserveRequest], observations: Sequence[Observation]
) -> list[Observation]:
    """The observations, one a request and in order. Raises WrongAnswer."""
    _check_count(requests, observations)
    for index, (request, observation) in enumerate(zip(requests, observations, strict=True)):
        _check(index, _is_of(request, observation))
    return list(observations)


def check_explanations(
    requests: Sequence[ExplainRequest], explanations: Sequence[Explanation]
) -> list[Explanation]:
    """The explanations, one a request, in order and within limits. Raises WrongAnswer.

    A rationale that is too long is cut: a talkative engine must cost no turn.
    """
    _check_count(requests, explanations)
    for index, (request, explanation) in enumerate(zip(requests, explanations, strict=True)):
        asked, refined = request.observed, explanation.refined
        _check(index, (explanation.turn, explanation.target) == (asked.turn.turn, asked.target))
        _check(index, refined is None or _is_of(asked, refined))
        _check(index, _names_few(explanation))
    return [_cut(explanation) for explanation in explanations]


def check_proposals(requests: Sequence[ProposeRequest], proposals: Sequence[Proposal]) -> list[Proposal]:
    """The proposals, one a request and in order; one that no record could carry proposes nothing.

    Raises WrongAnswer.
    """
    _check_count(requests, proposals)
    for index, (request, proposal) in enumerate(zip(requests, proposals, strict=True)):
        asked = (request.conversation, request.turns[-1].turn)
        _check(index, (proposal.conversation, proposal.turn) == asked)
    return [
        proposal
        if _declarable(proposal.proposition)
        else msgspec.structs.replace(proposal, proposition=None, replaces=False)
        for proposal in proposals
    ]


def execute(
    run: Callable[[Sequence[Request]], list[Answer]], requests: Sequence[Request]
) -> "list[Outcome[Answer]]":
    """An outcome a request. Where several fail together each is tried alone, until the engine proves ill."""
    try:
        return list(run(requests))
    except PartlyRead as partly:
        return list(partly.outcomes)
    except ReaderUnavailable as error:
        return [Failed(error)] * len(requests)
    except Exception as error:
        if len(requests) == 1:
            return [_outcome(error)]
    return _one_by_one(run, requests)


def unwrap(outcomes: "Sequence[Outcome[Answer]]") -> list[Answer]:
    """The answers. Raises RequestsRejected where one was refused, else ReaderUnavailable where one failed."""
    answers = [outcome for outcome in outcomes if not isinstance(outcome, Rejected | Failed)]
    if len(answers) == len(outcomes):
        return answers
    if rejected := {at: out.detail for at, out in enumerate(outcomes) if isinstance(out, Rejected)}:
        at, detail = next(iter(rejected.items()))
        raise RequestsRejected(
            f"{len(rejected)} of {len(outcomes)} refused; [{at}]: {detail}", list(rejected)
        )
    raise _unavailable(next(outcome.error for outcome in outcomes if isinstance(outcome, Failed)))


def _one_by_one(
    run: Callable[[Sequence[Request]], list[Answer]], requests: Sequence[Request]
) -> "list[Outcome[Answer]]":
    outcomes: list[Outcome[Answer]] = []
    failures = 0
    for request in requests:
        outcome = execute(run, [request])[0] if failures < _ILL_AFTER else outcomes[-1]
        outcomes.append(outcome)
        failures = failures + 1 if isinstance(outcome, Failed) else 0
    return outcomes


def _outcome(error: Exception) -> Rejected | Failed:
    # No other ValueError: what an engine meant as no verdict (NaN from a sick GPU) must refuse no turn.
    return Rejected(str(error)) if isinstance(error, ReaderRejected) else Failed(error)


def _unavailable(error: Exception) -> ReaderUnavailable:
    # Made anew: several callers may be told of one error, and each raise would lengthen its traceback.
    if isinstance(error, ReaderUnavailable):
        made = ReaderUnavailable(str(error), error.retry_after)
    else:
        made = EngineFailed(f"the engine failed: {type(error).__name__}")
    made.__cause__ = error
    return made


def _is_of(request: ObserveRequest, observation: Observation) -> bool:
    return (
        observation.turn == request.turn.turn
        and observation.revision == request.revision
        and observation.target == request.target
        and observation.holder == request.turn.holder
        and observation.read_under is request.state
    )


def _names_few(explanation: Explanation) -> bool:
    trigger, evidence = explanation.trigger, explanation.evidence
    names = (
        *trigger.turns,
        *trigger.holders,
        *(word for item in evidence for word in (item.turn, item.modality)),
    )
    return max(len(trigger.turns), len(trigger.holders), len(evidence)) <= MAX_NAMED and all(
        len(name.encode()) <= MAX_NAME_BYTES for name in names
    )


def _cut(explanation: Explanation) -> Explanation:
    written = explanation.rationale.encode()
    if len(written) <= MAX_RATIONALE_BYTES:
        return explanation
    short = written[:MAX_RATIONALE_BYTES].decode(errors="ignore")  # between characters
    return msgspec.structs.replace(explanation, rationale=short)


def _declarable(proposition: str | None) -> bool:
    try:
        size = len((proposition or "").encode())
    except UnicodeEncodeError:  # half of a surrogate pair, as JSON can spell it
        return False
    return size <= MAX_PROPOSITION_BYTES and bool((proposition or "").strip())


def _check_count(requests: Sequence[object], answers: Sequence[object]) -> None:
    if len(requests) != len(answers):
        raise WrongAnswer(f"{len(answers)} answers to {len(requests)} requests")


def _check(index: int, holds: bool) -> None:
    if not holds:
        raise WrongAnswer(f"answer {index} is not its request's")
