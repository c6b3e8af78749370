from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import execution
from models.evaluation import runner
from models.language.chat import Talk
from models.language.rule import RuleEngine
from models.reader import Engine, ExplainRequest, ReaderUnavailable
from models.reasoning.incremental import ENGINE, ReasoningEngine
from models.reasoning.roles import Roles
from models.remote.forms import Unreadable
from tests.models.language.scripted import ScriptedChat
from tests.models.reasoning.build import (
    BETTER,
    CRITIQUE,
    KIND,
    ON_EVIDENCE,
    ON_STANCE,
    ON_TARGET,
    RATIONALE,
    SAYS,
    SOURCE,
    Closing,
    ask,
    dialogue,
    flip,
    observation,
)
from tracker.observations import Critic, Explanation, Mark, Model, Probabilities
from tracker.stances import Stance, TriggerKind


def explain(answers: dict[str, str | list[str]], *asked: ExplainRequest) -> list[Explanation]:
    engine = ReasoningEngine(RuleEngine(), Roles(ScriptedChat(answers)))
    return execution.explain(engine, asked or [flip()])


def test_it_observes_and_counts_as_its_engine_does() -> None:
    engine = ReasoningEngine(RuleEngine(), Roles(ScriptedChat()))
    assert isinstance(engine, Engine)
    assert engine.observe([ask()]) == RuleEngine().observe([ask()])
    assert (engine.tokens(ask()), engine.model) == (1, RuleEngine.model)


def test_a_draft_that_passes_is_the_engines_own() -> None:
    (said,) = explain({})
    (given,) = RuleEngine().explain([flip()])
    assert said.critic is Critic.PASSED
    assert (said.rationale, said.trigger, said.refined) == (given.rationale, given.trigger, None)


def test_a_draft_that_fails_is_made_anew_with_the_critique_in_view() -> None:
    chat = ScriptedChat(
        {CRITIQUE: "It quotes nobody.", ON_EVIDENCE: "no", KIND: "pressure", SOURCE: "1", BETTER: "Tom did."}
    )
    (said,) = ReasoningEngine(RuleEngine(), Roles(chat)).explain([flip()])
    assert (said.critic, said.refined, said.rationale) == (Critic.REFINED, None, "Tom did.")
    assert (said.trigger.kind, said.trigger.turns) == (TriggerKind.SOCIAL_INFLUENCE, ("1",))
    assert "It quotes nobody." in chat.written[-1][1].content


def test_a_doubted_stance_is_read_again_and_its_own_outcome_explained() -> None:
    chat = ScriptedChat({CRITIQUE: "She weighs both.", ON_STANCE: "no", SAYS: "neutral", BETTER: "Both."})
    (said,) = execution.explain(ReasoningEngine(RuleEngine(), Roles(chat)), [flip()])
    assert said.refined is not None
    assert said.refined.expressed == Probabilities(neutral=1.0)
    assert said.refined.marks == (Mark.REFINED,)
    assert said.refined.read_under is Stance.OPPOSE
    assert (said.refined.relevance, said.refined.model) == (1.0, Model("scripted", "1", ENGINE, "en"))
    assert "changed from oppose to neutral" in chat.written[-1][1].content
    assert any("doubted" in talk[1].content and "She weighs both." in talk[1].content for talk in chat.asked)


def test_a_second_reading_that_moves_nobody_is_refined_all_the_same() -> None:
    for says in ("none", "oppose"):
        (said,) = explain({CRITIQUE: "No.", ON_STANCE: "no", SAYS: says})
        assert said.critic is Critic.REFINED
        assert said.refined is not None
        assert said.refined.expressed.ranked()[0][0] == says
        assert said.refined.relevance == (says != "none")


def test_a_second_reading_is_of_the_state_that_is_asked_about() -> None:
    asked = ExplainRequest(ask(), observation(ask(state=Stance.NEUTRAL)), Stance.SUPPORT)
    (said,) = explain({CRITIQUE: "No.", ON_STANCE: "no", SAYS: "none"}, asked)
    assert said.refined is not None
    assert said.refined.read_under is Stance.OPPOSE


def test_each_flip_has_a_verdict_of_its_own() -> None:
    answers: dict[str, str | list[str]] = {
        CRITIQUE: "Bad.", BETTER: "New.", ON_STANCE: ["yes", "no", "yes"], ON_EVIDENCE: ["no", "yes", "yes"],
        SAYS: "support",
    }  # fmt: skip
    first, second, third = explain(answers, flip(), flip(ask("+1 so be it")), flip())
    assert [one.critic for one in (first, second, third)] == [Critic.REFINED, Critic.REFINED, Critic.PASSED]
    assert [one.refined is None for one in (first, second, third)] == [True, False, True]


@given(
    said=st.lists(st.sampled_from(["yes", "no", "perhaps"]), min_size=3, max_size=12),
    read=st.sampled_from(["support", "oppose", "neutral", "none", "?"]),
    flips=st.integers(1, 4),
)
def test_never_more_than_one_refinement(said: list[str], read: str, flips: int) -> None:
    answers: dict[str, str | list[str]] = {
        CRITIQUE: "Bad.", BETTER: "New.", SAYS: read,
        ON_TARGET: said[::3], ON_STANCE: said[1::3], ON_EVIDENCE: said[2::3],
    }  # fmt: skip
    chat = ScriptedChat(answers)
    asked = [flip()] * flips
    found = execution.explain(ReasoningEngine(RuleEngine(), Roles(chat)), asked)
    refined = sum(one.critic is Critic.REFINED for one in found)
    wrote = [sum(key in talk[1].content for talk in chat.written) for key in (CRITIQUE, BETTER, RATIONALE)]
    assert wrote == [refined, refined, 0]
    assert all(one.critic is not Critic.NONE for one in found)


def test_the_tracker_folds_a_second_reading_instead_of_the_first() -> None:
    talk = dialogue(("Maya", "-1 no"), ("Tom", "the vet says so"), ("Maya", "+1 sure, as if"))
    held = {CRITIQUE: "Irony.", ON_STANCE: "no", SAYS: "none"}
    kept, moved = (
        runner.run([talk], ReasoningEngine(RuleEngine(), Roles(ScriptedChat(answers))))[0].turns[-1]
        for answers in (held, {})
    )
    assert (kept.stance, kept.flip, kept.rationale) == (Stance.OPPOSE, False, None)
    assert (moved.stance, moved.flip) == (Stance.SUPPORT, True)


class Shy(ScriptedChat):
    """Will not look at what one turn says, nor at anything that is asked beside it."""

    def choose(self, talks: Sequence[Talk], labels: Sequence[str]) -> list[list[float]]:
        if any("unspeakable" in talk[-1].content for talk in talks):
            raise Unreadable("no form")
        return super().choose(talks, labels)


def test_a_flip_that_the_critic_will_not_look_at_keeps_its_own_explanation() -> None:
    asked = [flip(), flip(ask("-1 unspeakable"))]
    first, second = ReasoningEngine(RuleEngine(), Roles(Shy())).explain(asked)
    assert first.critic is Critic.PASSED
    assert second == RuleEngine().explain(asked)[1]
    assert second.critic is Critic.NONE


def test_a_model_that_is_away_costs_no_flip_its_check() -> None:
    class Away(ScriptedChat):
        def choose(self, talks: Sequence[Talk], labels: Sequence[str]) -> list[list[float]]:
            raise ReaderUnavailable("away")

    with pytest.raises(ReaderUnavailable):
        ReasoningEngine(RuleEngine(), Roles(Away())).explain([flip()])


def test_closing_closes_its_engine() -> None:
    engine = Closing()
    execution.close(ReasoningEngine(engine, Roles(ScriptedChat())))
    assert engine.closed
