import pytest

from models.datasets.dialogue import Dialogue, LabelledTurn
from models.evaluation import runner
from models.evaluation.baselines import BASELINES, Majority, Persistence, Priors
from models.evaluation.lexicon import Lexicon, positions, trigger_kind
from models.reader import Engine
from tests.models.evaluation.build import FACT, FEEL, LIVED, NEU, OPP, PEERS, PROPOSITION, SUP, UNK, talk
from tests.models.evaluation.build import dialogue as labelled
from tracker.policy import Policy
from tracker.stances import Emotion, Expressed, Stance, TriggerKind


def stances(engine: Engine, *texts: str) -> list[Stance]:
    turns = tuple(LabelledTurn(index=index, speaker="a", text=text) for index, text in enumerate(texts))
    given = Dialogue(id="d", source="t", language="en", proposition=PROPOSITION, turns=turns)
    return [turn.stance for turn in runner.run([given], engine, Policy())[0].turns]


def test_priors_are_the_most_frequent_labels() -> None:
    found = Priors.of([labelled(*talk("aU bU aO bO aS aO"), trigger=FEEL)])
    assert found == Priors(Expressed.OPPOSE, Emotion.JOY, found.sentiment, FEEL)
    assert found.sentiment.value == "positive"


def test_ties_go_by_name_and_nothing_gives_the_defaults() -> None:
    assert Priors.of([labelled(*talk("aS bO"))]).expressed is Expressed.OPPOSE
    assert Priors.of([]) == Priors()


def test_majority_says_one_thing() -> None:
    assert stances(Majority(Priors(Expressed.OPPOSE)), "yes!", "hm") == [OPP, OPP]


def test_persistence_never_moves_after_the_first_turn() -> None:
    assert stances(Persistence(), "bad idea", "i agree", "yes yes") == [OPP, OPP, OPP]
    assert stances(Persistence(), "hm", "no way") == [SUP, SUP]  # the majority's, where no cue is found


def test_the_lexicon_follows_its_cues() -> None:
    assert stances(Lexicon(), "hm", "count me in", "hm", "nope, bad idea") == [UNK, SUP, SUP, OPP]
    assert stances(Lexicon(), "i'm torn") == [NEU]


def test_opposite_cues_move_nothing() -> None:
    assert stances(Lexicon(), "i agree", "yes and no") == [SUP, SUP]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("I don’t agree at all", Expressed.OPPOSE),
        ("DISAGREE", Expressed.OPPOSE),
        ("notable", Expressed.NONE),  # holds "no"
        ("estoy de acuerdo", Expressed.SUPPORT),
        ("no estoy de acuerdo", Expressed.OPPOSE),
        ("我不同意", Expressed.OPPOSE),
        ("我完全同意", Expressed.SUPPORT),
        ("两边都有道理", Expressed.NEUTRAL),
        ("", Expressed.NONE),
    ],
)
def test_cues_in_three_languages(text: str, label: Expressed) -> None:
    assert positions(text).ranked()[0][0] is label


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("the data in this report", FACT),
        ("好害怕", FEEL),
        ("a mi madre le pasó", LIVED),
        ("everyone else votes for it", PEERS),
        ("whatever", FACT),
    ],
)
def test_trigger_cues(text: str, kind: TriggerKind) -> None:
    assert trigger_kind(text) is kind


def test_a_flip_is_laid_on_the_turn_replied_to_else_the_nearest_of_another() -> None:
    texts = [("a", "i agree", None), ("b", "my mum fell", None), ("b", "50%", None), ("a", "nope", 1)]
    turns = [
        LabelledTurn(index=index, speaker=speaker, text=text, reply_to=reply)
        for index, (speaker, text, reply) in enumerate(texts)
    ]
    given = Dialogue(id="d", source="t", language="en", proposition=PROPOSITION, turns=tuple(turns))
    flip = runner.run([given], Lexicon())[0].turns[3]
    assert (flip.trigger, flip.trigger_turns, flip.rationale) == (LIVED, (1,), "nope")


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_is_an_engine(name: str) -> None:
    engine = BASELINES[name](Priors())
    assert isinstance(engine, Engine)
    assert len(stances(engine, "yes", "no")) == 2
