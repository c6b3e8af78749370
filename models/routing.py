"""Engines by language behind the one reader port: each turn is read by the engine its language has.

The rule: a turn goes to its language's own route. Where the language has none, the default reads it, marked
`fallback` if the language's own route could not be loaded, or if routes are set and the default is not
declared to read all languages. The default reads a turn of no known language, too, unmarked: no other
engine was asked for it.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec
import structlog

from models import execution
from models.execution import PROBE, Answer, Failed, Outcome, PartlyRead, Rejected, Request
from models.language.detection import Detector, language_of
from models.language.registry import Built, InvalidSetting, ReaderSettings, build_engine
from models.language.rule import UNDETERMINED
from models.language.wheels import WeightsUnavailable
from models.reader import (
    Engine,
    ExplainRequest,
    ObserveRequest,
    Proposer,
    ProposeRequest,
    ReaderUnavailable,
)
from tracker.context import Window, WindowTurn
from tracker.observations import Explanation, Mark, Observation
from tracker.proposals import Proposal

Detect = Callable[[WindowTurn, Window], str]

_log = structlog.get_logger(__name__)


def build(
    default: ReaderSettings, routes: Mapping[str, ReaderSettings] | None = None, *, reads_all: bool = True
) -> Engine:
    """The engine of these settings, by language where routes name some; what they share is loaded once.

    A route whose weights are not to be had is left to the default. Raises InvalidSetting, and
    WeightsUnavailable for the default's.
    """
    if not routes and default.engine == "rule":
        return build_engine(default)  # it answers at once, and asks for no language
    loaded: dict[ReaderSettings, Built] = {}
    built: dict[ReaderSettings, Engine | None] = {default: build_engine(default, loaded)}
    for language, asked in (routes or {}).items():
        if asked not in built:
            built[asked] = _route(language, asked, loaded)
    usable = {language: engine for language, asked in (routes or {}).items() if (engine := built[asked])}
    engine = built[default]
    assert engine is not None
    unusable = frozenset(routes or {}) - usable.keys()
    finds = any(isinstance(one, Proposer) for one in (engine, *usable.values()))
    made = FindingRoutes if finds else RoutedEngine
    return made(usable, engine, Detector(), unusable=unusable, reads_all=reads_all)


def _route(language: str, asked: ReaderSettings, loaded: dict[ReaderSettings, Built]) -> Engine | None:
    try:
        return build_engine(asked, loaded)
    except InvalidSetting as error:
        raise InvalidSetting(f"{error.field} of the reader of {language}", error.got, error.remedy) from None
    except WeightsUnavailable as error:
        _log.warning("reader.route_unusable", language=language, engine=asked.engine, error=str(error))
        return None


class RoutedEngine:
    """An engine made of several. Where one of them fails, the others' answers stand (PartlyRead)."""

    def __init__(
        self,
        routes: Mapping[str, Engine],
        default: Engine,
        detect: Detect,
        *,
        unusable: frozenset[str] = frozenset(),
        reads_all: bool = True,
    ) -> None:
        """`routes` by primary subtag; `unusable`: the languages whose own engine could not be loaded."""
        self._routes, self._default, self._detect = routes, default, detect
        self._unusable, self._reads_all = unusable, reads_all
        self.immediate = all(getattr(one, "immediate", False) for one in (default, *routes.values()))
        self.model = getattr(default, "model", None)  # for metrics: who reads where no route says otherwise

    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        """One observation a request, in order, with the turn's language in its model."""
        spoken = [self._spoken(request) for request in requests]
        return self._read(self._observed, spoken, lambda request: self._engine(language_of(request)))

    def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """One explanation a request, in order, by the engine that its observation's language has."""
        asked = [
            msgspec.structs.replace(
                request, observed=_in(request.observed, request.observation.model.language)
            )
            for request in requests
        ]
        return self._read(self._explained, asked, lambda request: self._engine(language_of(request.observed)))

    def tokens(self, request: ObserveRequest) -> int:
        """About how many tokens a request costs the engine that will read it."""
        if not self._routes:
            return self._default.tokens(request)  # its language decides nothing, and asking for it costs
        return self._engine(language_of(self._spoken(request))).tokens(request)

    def close(self) -> None:
        """Close each engine; what two of them share is closed twice, and must bear it."""
        for engine in dict.fromkeys((self._default, *self._routes.values())):
            execution.close(engine)

    def _spoken(self, request: ObserveRequest) -> ObserveRequest:
        return _in(request, self._detect(request.turn, request.window))

    def _engine(self, language: str) -> Engine:
        return self._routes.get(language, self._default)

    def _read(
        self,
        run: Callable[[Engine, Sequence[Request]], list[Answer]],
        requests: Sequence[Request],
        reading: Callable[[Request], Engine],
    ) -> list[Answer]:
        if not self._routes:
            return run(self._default, requests)  # whose failures are its own
        parts: dict[Engine, list[int]] = {}
        for place, request in enumerate(requests):
            parts.setdefault(reading(request), []).append(place)
        outcomes: dict[int, Outcome[Answer]] = {}
        for engine, places in parts.items():
            found = _outcomes(engine, partial(run, engine), [requests[place] for place in places])
            outcomes.update(zip(places, found, strict=True))
        return _answers([outcomes[place] for place in range(len(requests))])

    def _observed(self, engine: Engine, requests: Sequence[ObserveRequest]) -> list[Observation]:
        observed = execution.observe(engine, requests)
        return [self._marked(request, one) for request, one in zip(requests, observed, strict=True)]

    def _explained(self, engine: Engine, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        explained = execution.explain(engine, requests)
        return [
            msgspec.structs.replace(one, refined=self._marked(request.observed, one.refined))
            if one.refined
            else one
            for request, one in zip(requests, explained, strict=True)
        ]

    def _marked(self, request: ObserveRequest, observation: Observation) -> Observation:
        language = language_of(request)
        if language == UNDETERMINED or language in self._routes:
            return observation
        if Mark.FALLBACK in observation.marks or (self._reads_all and language not in self._unusable):
            return observation
        return msgspec.structs.replace(observation, marks=(*observation.marks, Mark.FALLBACK))


class FindingRoutes(RoutedEngine):
    """The same, where some of the engines find targets: those of a language whose own does not go to another.

    A proposition is a sentence like any other, so whoever can word one is better than nobody.
    """

    def propose(self, requests: Sequence[ProposeRequest]) -> list[Proposal]:
        """One proposal a request, in order, by the engine that its newest turn's language has."""
        return self._read(_proposed, requests, self._finding)

    def _finding(self, request: ProposeRequest) -> Engine:
        own = self._engine(language_of(self._spoken(request.shown)))
        engines = (own, self._default, *self._routes.values())
        return next(engine for engine in engines if isinstance(engine, Proposer))


def _proposed(engine: Engine, requests: Sequence[ProposeRequest]) -> list[Proposal]:
    assert isinstance(engine, Proposer)
    return execution.propose(engine, requests)


def _answers(outcomes: "list[Outcome[Answer]]") -> list[Answer]:
    answers = [outcome for outcome in outcomes if not isinstance(outcome, Rejected | Failed)]
    if len(answers) < len(outcomes):
        raise PartlyRead(outcomes)
    return answers


def _outcomes(
    engine: Engine, run: Callable[[Sequence[Request]], list[Answer]], requests: Sequence[Request]
) -> "list[Outcome[Answer]]":
    """An outcome a request; an engine that breaks on a harmless one, too, is away, and no request's fault.

    Whoever isolates bad requests outside cannot tell: its own harmless request goes to the default.
    """
    outcomes = execution.execute(run, requests)
    errors = [out.error for out in outcomes if isinstance(out, Failed)]
    broken = next((error for error in errors if not isinstance(error, ReaderUnavailable)), None)
    if broken is None or _reads(engine):
        return outcomes
    away = ReaderUnavailable(f"an engine by language breaks on every turn: {type(broken).__name__}")
    away.__cause__ = broken
    return [Failed(away) if isinstance(out, Failed) else out for out in outcomes]


def _reads(engine: Engine) -> bool:
    try:
        engine.observe([PROBE])
    except Exception:
        return False
    return True


def _in(request: ObserveRequest, language: str) -> ObserveRequest:
    """The request with its turn's language; as it is where that is unknown or stands there."""
    if language in (UNDETERMINED, request.turn.language):
        return request
    return msgspec.structs.replace(request, turn=msgspec.structs.replace(request.turn, language=language))
