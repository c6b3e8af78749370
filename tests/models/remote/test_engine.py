"""Engine and chat against a server that plays its answers: ways, repairs, and what becomes of bad answers."""

import asyncio
import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from models import execution
from models.language.chat import Message, talk
from models.language.prompts import INSTRUCTION
from models.language.registry import InvalidSetting, ReaderSettings, build_engine
from models.local import LocalReader
from models.reader import ExplainRequest, ObserveRequest, ReaderRejected, ReaderUnavailable
from models.remote.asking import REPAIR, WAYS, Way
from models.remote.chat import RemoteChat
from models.remote.engine import RemoteEngine
from models.remote.forms import Unreadable
from models.remote.kept import Kept
from tests.models.remote.conftest import Open
from tests.models.remote.faulty_server import OBSERVED, FaultyServer, completion, refused, token
from tracker.observations import Evidence, Model, Probabilities, Trigger
from tracker.records import Media, Modality
from tracker.stances import Emotion, Sentiment, Stance, TriggerKind

Ask = Callable[..., ObserveRequest]
EXPLAINED = '{"cause": "facts", "source": "B", "rationale": "The vet\'s words. They moved her. And more."}'


def flip(request: ObserveRequest, engine: RemoteEngine) -> ExplainRequest:
    return ExplainRequest(request, engine.observe([request])[0], Stance.SUPPORT)


@pytest.fixture
def engine(server: FaultyServer, opened: Open) -> RemoteEngine:
    return RemoteEngine(opened(server.url, parallel=1))


def test_one_call_answers_every_slot(server: FaultyServer, engine: RemoteEngine, ask: Ask) -> None:
    [seen] = execution.observe(engine, [ask(language="en")])
    assert seen.expressed == Probabilities(support=1.0)
    assert (seen.emotion, seen.sentiment, seen.relevance) == (Emotion.JOY, Sentiment.POSITIVE, 1.0)
    assert seen.model == Model("m", "fp-1", "remote", "en")
    assert engine.model == Model("m", "fp-1", "remote", "und")
    [body] = server.bodies
    system, user = body["messages"]
    assert system["content"].startswith(INSTRUCTION)
    assert user["content"].endswith('C. "Maya" to B: "ok you convinced me"')
    schema = body["response_format"]["json_schema"]
    assert schema["strict"] is True
    assert schema["schema"]["properties"]["position"]["enum"] == ["support", "oppose", "neutral", "none"]
    assert (body["temperature"], body["logprobs"], body["top_logprobs"]) == (0, True, 20)


def test_probabilities_come_from_the_labels_tokens(
    server: FaultyServer, engine: RemoteEngine, ask: Ask
) -> None:
    parts = [token('{"position": "'), token("support", ("none", math.log(0.4)), logprob=math.log(0.6))]
    rest = [token('", "emotion": "joy", "sentiment": "positive", "relevance": "')]
    last = [token("fully", ("off", math.log(0.5)), logprob=math.log(0.5)), token('"}')]
    server.default = lambda _: completion(OBSERVED, logprobs={"content": [*parts, *rest, *last]})
    [seen] = engine.observe([ask()])
    assert seen.expressed == Probabilities(support=0.6, none=0.4)
    assert seen.relevance == 0.5


def test_an_answer_in_a_fence_or_behind_thoughts_is_read(
    server: FaultyServer, engine: RemoteEngine, ask: Ask
) -> None:
    server.answers = [f"```json\n{OBSERVED}\n```", f"<think>{{or not}}</think>\n{OBSERVED}"]
    assert len(engine.observe([ask(), ask("hm", "10")])) == 2
    assert len(server.calls) == 2


@pytest.mark.parametrize("bad", ["I would say support.", OBSERVED.replace("joy", "glee"), "", "{}"])
def test_a_bad_answer_is_sent_back_once(
    server: FaultyServer, engine: RemoteEngine, ask: Ask, bad: str
) -> None:
    server.answers = [bad]
    assert engine.observe([ask()])[0].expressed.support == 1.0
    *_, said, mend = server.bodies[1]["messages"]
    assert said["role"] == "assistant"
    assert mend["content"].startswith(REPAIR)


def test_an_answer_that_stays_bad_is_a_failure_and_never_none(
    server: FaultyServer, engine: RemoteEngine, ask: Ask
) -> None:
    server.default = lambda body: completion(
        "neither" if "two" in body["messages"][1]["content"] else OBSERVED
    )
    asked = [ask("one", "1"), ask("two", "2"), ask("three", "3")]
    outcomes = execution.execute(lambda some: execution.observe(engine, some), asked)
    assert [isinstance(outcome, execution.Failed) for outcome in outcomes] == [False, True, False]
    assert isinstance(outcomes[1], execution.Failed)
    assert isinstance(outcomes[1].error, Unreadable)
    # one, two (and its repair), three; then two alone (and its repair): what was paid for was kept.
    assert len(server.calls) == 6


def test_an_outage_keeps_what_was_read(server: FaultyServer, opened: Open, ask: Ask) -> None:
    engine = RemoteEngine(opened(server.url, parallel=1, attempts=1))
    server.answers = [OBSERVED, refused(503)]
    asked = [ask("one", "1"), ask("two", "2")]
    with pytest.raises(ReaderUnavailable):
        engine.observe(asked)
    assert [seen.turn for seen in engine.observe(asked)] == ["1", "2"]
    assert len(server.calls) == 3


def test_the_best_way_that_the_server_takes_is_found_once(
    server: FaultyServer, engine: RemoteEngine, ask: Ask
) -> None:
    def picky(body: dict[str, Any]) -> Any:
        return refused(400)(body) if "logprobs" in body or "temperature" in body else completion(OBSERVED)

    server.default = picky
    engine.observe([ask()])
    assert len(server.calls) == 4
    engine.observe([ask("hm", "10")])
    assert len(server.calls) == 5
    assert "response_format" in server.bodies[-1]
    assert server.bodies[-1]["max_completion_tokens"] > 1000


def test_a_forced_way_is_the_only_one(server: FaultyServer, opened: Open, ask: Ask) -> None:
    RemoteEngine(opened(server.url), ways=(Way(),)).observe([ask()])
    assert {"response_format", "logprobs"}.isdisjoint(server.bodies[0])


def test_a_refused_turn_is_rejected_where_a_harmless_one_is_taken(
    server: FaultyServer, engine: RemoteEngine, ask: Ask
) -> None:
    def filtered(body: dict[str, Any]) -> Any:
        said = body["messages"][-1]["content"]
        return refused(400, "content_filter")(body) if "vile" in said else completion(OBSERVED)

    server.default = filtered
    with pytest.raises(ReaderRejected, match="content_filter"):
        engine.observe([ask("vile")])
    outcomes = execution.execute(engine.observe, [ask(), ask("vile", "10")])
    assert isinstance(outcomes[1], execution.Rejected)
    assert not isinstance(outcomes[0], execution.Rejected | execution.Failed)


def test_an_answer_that_the_filter_cut_is_rejected(
    server: FaultyServer, engine: RemoteEngine, ask: Ask
) -> None:
    server.answers = [lambda _: completion(None, finish_reason="content_filter")]
    with pytest.raises(ReaderRejected, match="content_filter"):
        engine.observe([ask()])
    assert len(server.calls) == 2, "no other way is tried, and a harmless turn once"


def test_a_filter_that_cuts_everything_rejects_no_turn(
    server: FaultyServer, engine: RemoteEngine, ask: Ask
) -> None:
    server.default = lambda _: completion(None, finish_reason="content_filter")
    with pytest.raises(ReaderUnavailable, match="refuses every call"):
        engine.observe([ask()])


def test_a_key_that_may_not_is_told_from_a_turn_that_is_moderated(
    server: FaultyServer, engine: RemoteEngine, ask: Ask
) -> None:
    server.answers = [refused(403)]
    with pytest.raises(ReaderRejected, match="status 403"):
        engine.observe([ask("vile")])
    server.default = refused(403, "model_not_allowed")
    with pytest.raises(ReaderUnavailable, match=r"403, model_not_allowed.*VOLTEFACE_REMOTE_KEY"):
        engine.observe([ask("hm", "10")])
    assert len(server.calls) == 4, "another way helps against no 403"


async def test_a_turn_on_which_alone_the_server_breaks_holds_nobody_up(
    server: FaultyServer, opened: Open, ask: Ask
) -> None:
    def breaks(body: dict[str, Any]) -> Any:
        return refused(500)(body) if "odd" in body["messages"][-1]["content"] else completion(OBSERVED)

    server.default = breaks
    reader = LocalReader(RemoteEngine(opened(server.url, attempts=2)))
    with pytest.raises(execution.EngineFailed):
        await reader.observe([ask("odd", "1"), ask("even", "2")])
    assert await reader.observe([ask("even", "2")])
    server.default = refused(500)
    with pytest.raises(ReaderUnavailable) as raised:
        await reader.observe([ask("odd", "1"), ask("three", "3")])
    assert not isinstance(raised.value, execution.EngineFailed), "an outage is no turn's fault"
    await reader.close()


def test_the_probe_is_asked_each_time(server: FaultyServer, engine: RemoteEngine) -> None:
    engine.observe([execution.PROBE])
    server.default = "no idea"
    with pytest.raises(Unreadable):  # else a model that answers nonsense to all would cost every turn
        engine.observe([execution.PROBE])


async def test_answers_go_when_their_time_is_over() -> None:
    asked: list[str] = []

    async def read(request: Message) -> str:
        asked.append(request.content)
        return request.content.upper()

    kept = Kept(read, most=2, seconds=0.1)
    for text in ("a", "a", "b", "c", "a"):  # of three, two are kept
        assert await kept(Message("user", text)) == text.upper()
    assert asked == ["a", "b", "c", "a"]
    await asyncio.sleep(0.15)
    assert not kept._answers, "though nobody asked again"
    await kept(Message("user", "a"))
    assert asked == ["a", "b", "c", "a", "a"]
    await asyncio.sleep(0.15)
    assert not kept._answers


@pytest.mark.parametrize("read_before", [False, True])
def test_a_server_that_refuses_everything_rejects_no_turn(
    server: FaultyServer, engine: RemoteEngine, ask: Ask, read_before: bool
) -> None:
    if read_before:
        engine.observe([ask()])
    server.default = refused(400, "invalid_model")
    with pytest.raises(ReaderUnavailable, match=r"refuses every call.*invalid_model.*VOLTEFACE_REMOTE_MODEL"):
        engine.observe([ask("hm", "10")])
    server.default = lambda body: refused(400)(body) if "logprobs" in body else completion(OBSERVED)
    assert engine.observe([ask("hm", "10")]), "another server was started there"


def test_a_flip_is_explained_by_a_turn_that_was_shown(
    server: FaultyServer, engine: RemoteEngine, ask: Ask
) -> None:
    asked = flip(ask(), engine)
    server.answers = [EXPLAINED.replace('"B"', '"Z"'), EXPLAINED]
    [explained] = execution.explain(engine, [asked])
    assert explained.trigger == Trigger(TriggerKind.FACTUAL_LOGICAL, ("2",), ("Tom",), 1.0)
    assert explained.evidence == (Evidence("9", "text"),)
    assert explained.rationale == "The vet's words. They moved her."
    schema = server.bodies[-1]["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["source"]["enum"] == ["A", "B", "C"]
    assert "evidence" not in schema["properties"]


def test_evidence_is_asked_for_where_there_is_a_choice(
    server: FaultyServer, engine: RemoteEngine, ask: Ask
) -> None:
    media = (Media(modality=Modality.IMAGE, description="a happy dog"),)
    asked = flip(ask(media=media), engine)
    server.answers = [EXPLAINED.replace('"rationale"', '"evidence": ["image"], "rationale"')]
    [explained] = execution.explain(engine, [asked])
    assert explained.evidence == (Evidence("9", "image"),)


def test_a_model_that_talks_until_it_is_cut_is_still_read(
    server: FaultyServer, engine: RemoteEngine, ask: Ask
) -> None:
    asked = flip(ask(), engine)
    server.answers = [lambda _: completion(EXPLAINED[:-2] + " On and", finish_reason="length")]
    [explained] = execution.explain(engine, [asked])
    assert explained.rationale == "The vet's words. They moved her."


@pytest.mark.parametrize("answers", [["no idea"] * 2, [refused(400), EXPLAINED]])
@pytest.mark.parametrize(("changes", "mover"), [({}, "2"), ({"reply_to": None}, "9")])
def test_a_flip_that_nobody_can_explain_is_explained_plainly(
    server: FaultyServer,
    engine: RemoteEngine,
    ask: Ask,
    answers: list[Any],
    changes: dict[str, Any],
    mover: str,
) -> None:
    first, asked = flip(ask(), engine), flip(ask("fine", "9", **changes), engine)
    server.answers = [EXPLAINED, *answers]
    engine.explain([first])
    [explained] = execution.explain(engine, [asked])
    assert (explained.trigger.turns, explained.trigger.confidence) == ((mover,), 0.0)
    assert explained.rationale == f"Maya moved from oppose to support after turn {mover}."


def test_an_outage_explains_nothing_plainly(server: FaultyServer, opened: Open, ask: Ask) -> None:
    engine = RemoteEngine(opened(server.url, attempts=1))
    asked = flip(ask(), engine)
    server.answers = [refused(503)]
    with pytest.raises(ReaderUnavailable):
        engine.explain([asked])


def test_tokens_grow_with_the_text_up_to_the_budget(engine: RemoteEngine, ask: Ask) -> None:
    assert engine.tokens(ask("a")) < engine.tokens(ask("a" * 600)) < engine.tokens(ask("a" * 60_000))
    assert engine.tokens(ask("a" * 60_000)) == engine.tokens(ask("a" * 600_000))


def test_a_giant_turn_is_cut(server: FaultyServer, engine: RemoteEngine, ask: Ask) -> None:
    engine.observe([ask("dog " * 20_000)])
    assert len(json.dumps(server.bodies[0])) < 20_000


@pytest.mark.parametrize("ways", [WAYS, (Way(),)])
@pytest.mark.parametrize("said", ['{"answer": "no"}', "no", '"No."'])
def test_a_choice_that_is_only_named_gets_1(
    server: FaultyServer, opened: Open, said: str, ways: tuple[Way, ...]
) -> None:
    server.default = said
    chat = RemoteChat(opened(server.url), ways)
    assert chat.choose([talk("You judge.", "Is it?")], ["yes", "no"]) == [[0.0, 1.0]]
    assert (chat.name, chat.revision) == ("m", "fp-1")


def test_a_choice_is_weighed_by_its_tokens(server: FaultyServer, opened: Open) -> None:
    told = [token('{"answer": "'), token("no", ("yes", math.log(0.2)), logprob=math.log(0.6)), token('"}')]
    server.default = lambda _: completion('{"answer": "no"}', logprobs={"content": told})
    [[yes, no]] = RemoteChat(opened(server.url)).choose([talk("You judge.", "Is it?")], ["yes", "no"])
    assert (yes, no) == (pytest.approx(0.25), pytest.approx(0.75))


def test_a_choice_is_repaired_once(server: FaultyServer, opened: Open) -> None:
    server.answers = ["perhaps", "yes"]
    chat = RemoteChat(opened(server.url))
    assert chat.choose([talk("You judge.", "Is it?")], ["yes", "no"]) == [[1.0, 0.0]]
    server.answers = ["perhaps", "maybe"]
    with pytest.raises(Unreadable):
        chat.choose([talk("You judge.", "Is it?")], ["yes", "no"])


def test_words_are_stripped_and_may_be_none(server: FaultyServer, opened: Open) -> None:
    server.answers = ["  a word\n", lambda _: completion(None)]
    chat = RemoteChat(opened(server.url, parallel=1))
    assert chat.write([talk("Write.", "one"), talk("Write.", "two")], 7) == ["a word", ""]
    assert server.bodies[0]["max_tokens"] == 7
    assert [message["content"] for message in server.bodies[0]["messages"]] == ["Write.", "one"]


async def test_behind_a_reader_only_the_refused_turn_is_refused(
    server: FaultyServer, engine: RemoteEngine, ask: Ask
) -> None:
    server.default = lambda body: (
        refused(413)(body) if "vile" in body["messages"][1]["content"] else completion(OBSERVED)
    )
    reader = LocalReader(engine)
    with pytest.raises(execution.RequestsRejected) as raised:
        await reader.observe([ask("one", "1"), ask("vile", "2"), ask("three", "3")])
    assert raised.value.indexes == (1,)
    server.default = refused(401)
    with pytest.raises(ReaderUnavailable, match="VOLTEFACE_REMOTE_KEY"):
        await reader.observe([ask("four", "4")])
    await reader.close()


def test_the_registry_knows_it_and_says_what_is_lacking(server: FaultyServer, ask: Ask) -> None:
    with pytest.raises(InvalidSetting, match="remote_url: unset"):
        build_engine(ReaderSettings(engine="remote"))
    with pytest.raises(InvalidSetting, match="remote_model: unset"):
        build_engine(ReaderSettings(engine="remote", remote_url=server.url))
    settings = ReaderSettings(engine="remote", remote_url=server.url, remote_model="m", remote_key="s3cret")
    assert "s3cret" not in repr(settings)
    engine = build_engine(settings)
    assert isinstance(engine, RemoteEngine)
    assert engine.observe([ask()])
    engine.close()
