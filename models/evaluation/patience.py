"""Waits for a reader that is away, a bounded number of times: what it did not say is never scored."""

import time
from collections.abc import Callable, Sequence
from functools import partial

import structlog

from models import execution
from models.execution import Answer, Failed, Outcome, PartlyRead, Rejected, Request
from models.language.detection import language_of
from models.reader import Engine, ExplainRequest, ObserveRequest, ReaderUnavailable
from tracker.observations import Explanation, Observation

ATTEMPTS = 6  # in a row that bring no answer
LONGEST_SECONDS = 30.0  # of a pause

_log = structlog.get_logger(__name__)


class ReaderAway(Exception):
    """The reader, or that of a language, stayed away: there is nothing to measure."""


class Patient:
    """An engine that asks another one again, for what it could not answer alone.

    Raises ReaderAway in place of ReaderUnavailable and PartlyRead, and whatever else the other raises.
    """

    def __init__(self, engine: Engine, name: str, sleep: Callable[[float], None] = time.sleep) -> None:
        """`name`: the engine's, for people."""
        self._engine, self._name, self._sleep = engine, name, sleep

    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        """One observation a request, in order."""
        return self._read(partial(execution.observe, self._engine), requests, language_of)

    def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """One explanation a request, in order."""
        return self._read(
            partial(execution.explain, self._engine), requests, lambda request: language_of(request.observed)
        )

    def tokens(self, request: ObserveRequest) -> int:
        """About how many tokens a request costs the engine."""
        return self._engine.tokens(request)

    def _read(
        self,
        run: Callable[[Sequence[Request]], list[Answer]],
        requests: Sequence[Request],
        language: Callable[[Request], str],
    ) -> list[Answer]:
        answers: dict[int, Answer] = {}
        attempts = 0
        while missing := [place for place in range(len(requests)) if place not in answers]:
            outcomes = _outcomes(run, [requests[place] for place in missing])
            found = {
                place: outcome
                for place, outcome in zip(missing, outcomes, strict=True)
                if not isinstance(outcome, Rejected | Failed)
            }
            answers |= found
            attempts = 1 if found else attempts + 1
            try:
                execution.unwrap(outcomes)
            except ReaderUnavailable as away:
                self._wait(away, attempts, {language(requests[at]) for at in missing if at not in found})
        return [answers[place] for place in range(len(requests))]

    def _wait(self, away: ReaderUnavailable, attempts: int, languages: set[str]) -> None:
        named = ", ".join(sorted(languages))
        if attempts == ATTEMPTS:
            told = f"{self._name} gave no answer for turns in {named}, asked {ATTEMPTS} times: {away}"
            raise ReaderAway(
                f"{told}; nothing is measured without it, so run again once it answers"
            ) from away
        seconds = min(max(away.retry_after, 2.0 ** (attempts - 1)), LONGEST_SECONDS)
        _log.warning(
            "eval.reader_away",
            system=self._name,
            languages=named,
            error=str(away),
            attempt=f"{attempts} of {ATTEMPTS}",
            again_in=seconds,
        )
        self._sleep(seconds)


def _outcomes(
    run: Callable[[Sequence[Request]], list[Answer]], requests: Sequence[Request]
) -> "Sequence[Outcome[Answer]]":
    """An outcome a request; what is neither absence nor refusal is raised: asking again mends no bug."""
    try:
        return run(requests)
    except PartlyRead as partly:
        return partly.outcomes
    except ReaderUnavailable as away:
        return [Failed(away)] * len(requests)
