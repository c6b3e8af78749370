"""The runner with engine `rule`, which reads +1, -1 and +0."""

from collections.abc import Sequence

import msgspec
import pytest

from models.datasets.dialogue import Dialogue, LabelledTurn
from models.evaluation import runner
from models.evaluation.prediction import Prediction
from models.execution import WrongAnswer
from models.language.rule import RuleEngine
from models.reader import ExplainRequest, ObserveRequest
from tests.models.evaluation.build import FACT, NEU, OPP, PROPOSITION, SUP, UNK
from tracker.context import WINDOW_TURNS
from tracker.observations import Explanation, Observation, Probabilities
from tracker.policy import Policy, Threshold
from tracker.records import Media, Modality
from tracker.stances import Stance


def dialogue(*texts: str, ident: str = "d", **given: object) -> Dialogue:
    """`a +1`: speaker and text. All labels say what the system must not use: everyone opposes."""
    turns = tuple(
        LabelledTurn(index=index, speaker=text.split()[0], text=text.partition(" ")[2], stance=OPP)
        for index, text in enumerate(texts)
    )
    fields = {"source": "test", "language": "en", "proposition": PROPOSITION}
    return Dialogue(id=ident, turns=turns, **(fields | given))


class Watching(RuleEngine):
    """Engine `rule` that remembers what it was asked, call by call."""

    def __init__(self) -> None:
        self.observed: list[list[ObserveRequest]] = []
        self.explained: list[list[ExplainRequest]] = []

    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        self.observed.append(list(requests))
        return super().observe(requests)

    def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        self.explained.append(list(requests))
        return super().explain(requests)


def states(made: Prediction) -> list[tuple[Stance, Stance]]:
    return [(turn.before, turn.stance) for turn in made.turns]


def test_the_state_is_the_systems_own() -> None:
    (made,) = runner.run([dialogue("a +1", "b hm", "a hm", "a -1", "b +0")], RuleEngine())
    assert states(made) == [(UNK, SUP), (UNK, UNK), (SUP, SUP), (SUP, OPP), (UNK, NEU)]
    assert [turn.flip for turn in made.turns] == [False, False, False, True, False]


def test_a_flip_is_explained_and_nothing_else() -> None:
    (made,) = runner.run([dialogue("a +1", "b hm", "a -1")], RuleEngine())
    flip = made.turns[2]
    assert (flip.trigger, flip.trigger_turns) == (FACT, (1,))
    assert flip.rationale == 'The text begins with "-1": oppose.'
    assert flip.expressed == Probabilities(oppose=1.0)
    assert [turn.trigger for turn in made.turns[:2]] == [None, None]


def test_turns_go_wave_by_wave_across_dialogues() -> None:
    engine = Watching()
    short, long = dialogue("a +1", ident="short"), dialogue("a +1", "a -1", "a +1", ident="long")
    found = runner.run([short, long], engine)
    assert [made.dialogue for made in found] == ["short", "long"]
    assert [[asked.conversation for asked in wave] for wave in engine.observed] == [
        ["short", "long"],
        ["long"],
        ["long"],
    ]
    assert [len(wave) for wave in engine.explained] == [1, 1]


def test_a_call_is_at_most_one_batch_and_progress_is_told() -> None:
    engine, told = Watching(), []
    runner.run(
        [dialogue("a +1", ident=str(place)) for place in range(5)], engine, batch=2, progress=told.append
    )
    assert [len(wave) for wave in engine.observed] == [2, 2, 1] == told


def test_what_an_engine_is_shown() -> None:
    engine = Watching()
    media = (Media(modality=Modality.MEME, description="a dog"),)
    given = dialogue(*["a +1"] * (WINDOW_TURNS + 1), "b hm", language="zh")
    last = msgspec.structs.replace(given.turns[-1], reply_to=3, media=media)
    runner.run([msgspec.structs.replace(given, turns=(*given.turns[:-1], last))], engine)
    asked = engine.observed[-1][0]
    assert (asked.proposition, asked.state, asked.turn.language) == (PROPOSITION, UNK, "zh")
    assert (asked.turn.reply_to, asked.turn.media, asked.turn.holder) == ("3", media, "b")
    assert [turn.turn for turn in asked.window] == [str(place) for place in range(1, WINDOW_TURNS + 1)]


def test_the_policy_decides() -> None:
    strict = Policy(flip=Threshold(1.0, 1.0), exempt_holders=frozenset({"b"}))
    engine = Watching()
    (made,) = runner.run([dialogue("a +1", "b -1", "a -1")], engine, strict)
    assert states(made) == [(UNK, SUP), (UNK, UNK), (SUP, OPP)]
    assert made.turns[1].expressed is None
    assert [len(wave) for wave in engine.observed] == [1, 1]
    (unmoved,) = runner.run(
        [dialogue("a +1")], RuleEngine(), Policy(relevance=1.0, establish=Threshold(1.0, 1.0))
    )
    assert states(unmoved) == [(UNK, SUP)]


class Unsure(RuleEngine):
    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        doubt = Probabilities(support=0.6, none=0.4)
        return [msgspec.structs.replace(one, expressed=doubt) for one in super().observe(requests)]


def test_each_language_has_its_policy() -> None:
    talks = [dialogue("a +1", language=language) for language in ("en", "zh-Hans")]
    strict = {"zh": Policy(establish=Threshold(0.7))}
    assert [states(made) for made in runner.run(talks, Unsure(), policies=strict)] == [
        [(UNK, SUP)],
        [(UNK, UNK)],
    ]


class Refining(RuleEngine):
    """Takes every flip back when asked why."""

    def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        return [
            msgspec.structs.replace(
                made,
                refined=msgspec.structs.replace(asked.observation, expressed=Probabilities(none=1.0)),
            )
            for asked, made in zip(requests, super().explain(requests), strict=True)
        ]


def test_a_refined_flip_is_folded_as_refined() -> None:
    (made,) = runner.run([dialogue("a +1", "a -1", "a hm")], Refining())
    assert states(made) == [(UNK, SUP), (SUP, SUP), (SUP, SUP)]
    assert made.turns[1].trigger is None


class Mixing(RuleEngine):
    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        return super().observe(requests)[::-1]


def test_an_engine_that_mixes_answers_up_is_found_out() -> None:
    with pytest.raises(WrongAnswer):
        runner.run([dialogue("a +1", ident="x"), dialogue("b +1", ident="y")], Mixing())


def test_a_dialogue_without_proposition_cannot_be_read() -> None:
    with pytest.raises(ValueError, match="dialogue d has no proposition"):
        runner.run([dialogue("a +1", proposition=None)], RuleEngine())


def test_no_dialogues() -> None:
    assert runner.run([], RuleEngine()) == []
