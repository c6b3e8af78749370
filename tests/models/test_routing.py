from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from models import execution, routing
from models.execution import Failed, PartlyRead, Rejected
from models.language.registry import InvalidSetting, ReaderSettings
from models.language.rule import RuleEngine
from models.language.wheels import WeightsUnavailable
from models.local import LocalReader
from models.reader import (
    Engine,
    ExplainRequest,
    ObserveRequest,
    Proposer,
    ProposeRequest,
    ReaderUnavailable,
)
from models.routing import FindingRoutes, RoutedEngine
from models.worker.client import ClientConfig, WorkerReader
from models.worker.server import WorkerConfig
from tests.models.worker.fakes import FakeEngine, explanation, observation, worker
from tracker.context import Window, WindowTurn
from tracker.observations import Explanation, Mark, Observation
from tracker.proposals import Proposal
from tracker.stances import Stance


class Named(FakeEngine):
    """A fake whose observations say its name, and the language it was told."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        return [
            self._named(request, one)
            for request, one in zip(requests, super().observe(requests), strict=True)
        ]

    def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        self._read([request.observed for request in requests])
        return [
            msgspec.structs.replace(
                explanation(request), rationale=self.name, refined=self._refined(request.observed)
            )
            for request in requests
        ]

    def _named(self, request: ObserveRequest, one: Observation) -> Observation:
        model = msgspec.structs.replace(one.model, name=self.name, language=request.turn.language or "und")
        return msgspec.structs.replace(one, model=model)

    def _refined(self, request: ObserveRequest) -> Observation:
        return self._named(request, observation(request))


def detected(turn: WindowTurn, window: Window) -> str:
    """The language is the last word of a turn's text, where the platform names none."""
    return turn.language or turn.text.split()[-1]


def asked(*texts: str, language: str | None = None) -> list[ObserveRequest]:
    turns = [WindowTurn(f"m-{at}", "maya", text, language=language) for at, text in enumerate(texts)]
    return [ObserveRequest("room", turn, 0, "t-1", "whether", Stance.UNKNOWN) for turn in turns]


def flips(engine: Engine, requests: list[ObserveRequest]) -> list[ExplainRequest]:
    return [
        ExplainRequest(request, one, Stance.SUPPORT)
        for request, one in zip(requests, engine.observe(requests), strict=True)
    ]


@pytest.fixture
def engines() -> dict[str, Named]:
    return {name: Named(name) for name in ("chinese", "iberian", "other")}


@pytest.fixture
def routed(engines: dict[str, Named]) -> RoutedEngine:
    routes = {"zh": engines["chinese"], "es": engines["iberian"], "pt": engines["iberian"]}
    return RoutedEngine(routes, engines["other"], detected, unusable=frozenset({"fr"}))


def test_a_batch_is_parted_and_its_answers_come_in_order(
    routed: RoutedEngine, engines: dict[str, Named]
) -> None:
    requests = asked("a es", "b zh", "c en", "d pt", "e zh", "f und")
    observed = routed.observe(requests)
    assert [(one.turn, one.model.name, one.model.language) for one in observed] == [
        ("m-0", "iberian", "es"),
        ("m-1", "chinese", "zh"),
        ("m-2", "other", "en"),
        ("m-3", "iberian", "pt"),
        ("m-4", "chinese", "zh"),
        ("m-5", "other", "und"),
    ]
    assert [engine.batches for engine in engines.values()] == [
        [["m-1", "m-4"]],
        [["m-0", "m-3"]],
        [["m-2", "m-5"]],
    ]


def test_the_platforms_tag_is_compared_by_its_primary_subtag_and_kept(routed: RoutedEngine) -> None:
    [one] = routed.observe(asked("a", language="zh-Hant"))
    assert (one.model.name, one.model.language) == ("chinese", "zh-Hant")


@pytest.mark.parametrize(
    ("language", "reads_all", "marked"),
    [
        ("zh", False, False),
        ("fr", True, True),  # its own route could not be loaded
        ("en", True, False),
        ("en", False, True),
        ("und", False, False),
    ],
)
def test_fallback_is_marked(engines: dict[str, Named], language: str, reads_all: bool, marked: bool) -> None:
    routes, unusable = {"zh": engines["chinese"]}, frozenset({"fr"})
    engine = RoutedEngine(routes, engines["other"], detected, unusable=unusable, reads_all=reads_all)
    requests = asked(f"a {language}")
    [observed] = engine.observe(requests)
    [explained] = engine.explain(flips(engine, requests))
    assert explained.refined is not None
    assert (Mark.FALLBACK in observed.marks, Mark.FALLBACK in explained.refined.marks) == (marked, marked)


def test_a_second_reading_that_keeps_the_firsts_marks_is_marked_fallback_once() -> None:
    class Rereading(Named):
        def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
            return [msgspec.structs.replace(explanation(one), refined=one.observation) for one in requests]

    engine = RoutedEngine({}, Rereading("default"), detected, unusable=frozenset({"fr"}))
    [explained] = engine.explain(flips(engine, asked("a fr")))
    assert explained.refined is not None
    assert explained.refined.marks.count(Mark.FALLBACK) == 1


def test_a_flip_is_explained_by_the_engine_of_its_observations_language(
    routed: RoutedEngine, engines: dict[str, Named]
) -> None:
    explained = routed.explain(flips(routed, asked("a zh", "b en", "c es")))
    assert [one.rationale for one in explained] == ["chinese", "other", "iberian"]
    assert [one.refined.model.language for one in explained if one.refined] == ["zh", "en", "es"]


def test_tokens_are_those_of_the_engine_that_will_read(engines: dict[str, Named]) -> None:
    engine = RoutedEngine({"zh": engines["chinese"]}, RuleEngine(), detected)
    assert [engine.tokens(request) for request in asked("abc zh", "abc en")] == [6, 1]


def test_where_no_route_is_set_a_tokens_count_asks_for_no_language() -> None:
    def never(turn: WindowTurn, window: Window) -> str:
        raise AssertionError

    assert RoutedEngine({}, RuleEngine(), never).tokens(asked("abc zh")[0]) == 1


def test_it_answers_at_once_only_if_all_its_engines_do(engines: dict[str, Named]) -> None:
    assert RoutedEngine({"en": RuleEngine()}, RuleEngine(), detected).immediate
    assert not RoutedEngine({"zh": engines["chinese"]}, RuleEngine(), detected).immediate


def test_an_engine_that_is_away_costs_the_others_nothing(
    routed: RoutedEngine, engines: dict[str, Named]
) -> None:
    outcomes = execution.execute(routed.observe, asked("a zh", "gone es", "bad en", "b en"))
    assert [type(outcome) for outcome in outcomes] == [Observation, Failed, Rejected, Observation]
    with pytest.raises(PartlyRead, match="1 of 2"):
        routed.observe(asked("a zh", "gone es"))
    assert engines["chinese"].batches == [["m-0"], ["m-0"]]


async def test_a_worker_answers_whoever_needs_no_engine_that_is_away(routed: RoutedEngine) -> None:
    async with worker(lambda: routed, WorkerConfig()) as url:
        reader = WorkerReader(url, ClientConfig(timeout=2.0))
        try:
            assert len(await reader.observe(asked("a zh", "b en"))) == 2
            with pytest.raises(ReaderUnavailable):
                await reader.observe(asked("gone es"))
        finally:
            await reader.close()


async def test_an_engine_that_breaks_on_every_turn_is_an_outage() -> None:
    class Sick(FakeEngine):
        def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
            raise RuntimeError("out of memory")

    reader = LocalReader(RoutedEngine({"zh": Sick()}, FakeEngine(), detected))
    with pytest.raises(ReaderUnavailable, match="every turn") as raised:
        await reader.observe(asked("a en", "b zh"))
    await reader.close()
    assert not isinstance(raised.value, execution.EngineFailed)


async def test_a_turn_that_breaks_its_engine_is_told_from_an_outage(routed: RoutedEngine) -> None:
    reader = LocalReader(routed)
    with pytest.raises(execution.EngineFailed):
        await reader.observe(asked("a en", "boom zh"))
    await reader.close()


async def test_closing_a_reader_closes_each_engine_once() -> None:
    closed: list[str] = []

    class Held(Named):
        def close(self) -> None:
            closed.append(self.name)

    shared = Held("shared")
    reader = LocalReader(
        RoutedEngine({"es": shared, "pt": shared, "zh": Named("bare")}, Held("all"), detected)
    )
    await reader.close()
    assert sorted(closed) == ["all", "shared"]


async def test_a_worker_closes_its_engine() -> None:
    closed: list[bool] = []

    class Held(FakeEngine):
        def close(self) -> None:
            closed.append(True)

    async with worker(Held, WorkerConfig()) as url:
        reader = WorkerReader(url)
        assert await reader.observe(asked("a"))
        await reader.close()
        assert not closed
    assert closed == [True]


def test_rule_alone_asks_for_no_language() -> None:
    assert isinstance(routing.build(ReaderSettings(engine="rule")), RuleEngine)


def test_what_routes_share_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[ReaderSettings] = []
    monkeypatch.setattr(routing, "build_engine", lambda one, _: loaded.append(one) or Named(one.engine))
    big, default = ReaderSettings(engine="generative"), ReaderSettings(engine="encoder")
    engine: Any = routing.build(default, {"en": big, "zh": big, "es": default}, reads_all=False)
    assert loaded == [default, big]
    turns = asked(
        "the water board says so", "我一直都觉得应该取消，大家说呢", "pues a mí me parece una tontería"
    )
    observed = engine.observe(turns)
    assert [one.model.name for one in observed] == ["generative", "generative", "encoder"]
    assert [one.marks for one in observed] == [(), (), ()]


def test_a_route_without_weights_is_left_to_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def build(one: ReaderSettings, _: object) -> Engine:
        tried.append(one.engine)
        if one.engine == "generative":
            raise WeightsUnavailable("no weights here")
        return Named(one.engine)

    monkeypatch.setattr(routing, "build_engine", build)
    big = ReaderSettings(engine="generative")
    engine = routing.build(ReaderSettings(engine="encoder"), {"en": big, "zh": big}, reads_all=True)
    [observed] = engine.observe(asked("who would own the fruit, actually?"))
    assert (observed.model.name, observed.marks) == ("encoder", (Mark.FALLBACK,))
    assert tried == ["encoder", "generative"]


def test_a_wrong_route_names_its_language() -> None:
    with pytest.raises(InvalidSetting, match=r"^engine of the reader of zh: no engine 'oracle'"):
        routing.build(ReaderSettings(engine="rule"), {"zh": ReaderSettings(engine="oracle")})


class Finding(Named):
    def propose(self, requests: Sequence[ProposeRequest]) -> list[Proposal]:
        return [Proposal(one.conversation, one.turns[-1].turn, self.name) for one in requests]


def proposed(default: Engine, **routes: Engine) -> list[str | None]:
    """Who words the proposition of an English and of a Spanish conversation."""
    engine = FindingRoutes(routes, default, detected)
    turns = [request.turn for request in asked("hm en", "hm es")]
    return [
        one.proposition
        for one in execution.propose(engine, [ProposeRequest("room", (turn,)) for turn in turns])
    ]


def test_a_proposition_is_worded_by_its_languages_own_engine_where_that_can() -> None:
    assert proposed(Finding("default"), en=Finding("english")) == ["english", "default"]


def test_else_by_the_default_and_else_by_any_that_can() -> None:
    assert proposed(Finding("default"), en=Named("english")) == ["default", "default"]
    assert proposed(Named("default"), en=Finding("english")) == ["english", "english"]
    assert proposed(Finding("default")) == ["default", "default"]


def test_routes_find_targets_where_one_of_them_does(monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, type[Named]] = {"generative": Finding, "encoder": Named}
    monkeypatch.setattr(routing, "build_engine", lambda one, _: made[one.engine](one.engine))
    default, big = ReaderSettings(engine="encoder"), ReaderSettings(engine="generative")
    assert isinstance(routing.build(default, {"en": big}), Proposer)
    assert not isinstance(routing.build(default, {"en": default}), Proposer)
