from collections.abc import Sequence

import pytest

from models import execution
from models.language.chat import Talk
from models.language.rule import RuleEngine
from models.reader import Proposer, ProposeRequest, ReaderRejected, ReaderUnavailable
from models.reasoning.cartographer import Cartographer
from models.reasoning.finding import FindingEngine
from models.remote.forms import Unreadable
from tests.models.language.scripted import ScriptedChat
from tests.models.reasoning.build import TOPIC, WINDOW, Closing, ask, flip
from tracker.proposals import Proposal

HELD, PROPOSED, ABOUT, SAME = "take a side", "as one sentence", "still about", "in other words"
OTHER = "The debate concerning whether the office should have a cat"


def proposal(answers: dict[str, str | list[str]], known: str = "") -> Proposal:
    engine = FindingEngine(RuleEngine(), Cartographer(ScriptedChat(answers)))
    (found,) = execution.propose(engine, [ProposeRequest("room", WINDOW, known)])
    assert (found.conversation, found.turn) == ("room", "2")
    return found


def test_it_reads_as_its_engine_does_and_finds_targets_beside() -> None:
    engine = FindingEngine(RuleEngine(), Cartographer(ScriptedChat()))
    assert isinstance(engine, Proposer)
    assert not isinstance(RuleEngine(), Proposer)
    assert engine.observe([ask()]) == RuleEngine().observe([ask()])
    assert engine.explain([flip()]) == RuleEngine().explain([flip()])
    assert (engine.tokens(ask()), engine.model) == (1, RuleEngine.model)


def test_a_first_target_replaces_nothing() -> None:
    assert proposal({PROPOSED: TOPIC}) == Proposal("room", "2", TOPIC)
    assert proposal({HELD: "no", PROPOSED: TOPIC}).proposition is None


def test_a_debate_that_is_still_the_same_is_left_alone() -> None:
    assert proposal({ABOUT: "yes", PROPOSED: OTHER}, TOPIC).proposition is None


@pytest.mark.parametrize(("same", "replaces"), [("yes", True), ("no", False)])
def test_a_debate_that_was_left_gives_way_to_the_one_that_is_held(same: str, replaces: bool) -> None:
    found = proposal({ABOUT: "no", PROPOSED: OTHER, SAME: same}, TOPIC)
    assert (found.proposition, found.replaces) == (OTHER, replaces)


@pytest.mark.parametrize("answers", [{HELD: "no"}, {PROPOSED: TOPIC}], ids=["small talk", "the same words"])
def test_a_target_stays_where_nothing_else_is_argued_about(answers: dict[str, str | list[str]]) -> None:
    assert proposal({ABOUT: "no", **answers}, TOPIC).proposition is None


class Refusing(ScriptedChat):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def choose(self, talks: Sequence[Talk], labels: Sequence[str]) -> list[list[float]]:
        raise self._error


@pytest.mark.parametrize("error", [ReaderRejected("filtered"), Unreadable("no form")])
def test_a_model_that_will_not_answer_finds_nothing(error: Exception) -> None:
    engine = FindingEngine(RuleEngine(), Cartographer(Refusing(error)))
    assert engine.propose([ProposeRequest("room", WINDOW)]) == [Proposal("room", "2")]


def test_a_model_that_is_away_is_away() -> None:
    engine = FindingEngine(RuleEngine(), Cartographer(Refusing(ReaderUnavailable("away"))))
    with pytest.raises(ReaderUnavailable):
        engine.propose([ProposeRequest("room", WINDOW)])


def test_closing_closes_its_engine() -> None:
    engine = Closing()
    execution.close(FindingEngine(engine, Cartographer(ScriptedChat())))
    assert engine.closed
