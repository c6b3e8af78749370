import pytest

from models.execution import check_explanations, check_observations
from models.language.backbone import Backbone
from models.language.local_chat import LocalChat
from models.reader import Engine
from models.reasoning.engine import ENGINE, RoleEngine
from models.reasoning.roles import Roles
from tests.models.language.scripted import ScriptedChat
from tests.models.reasoning.build import FELT, KIND, SAYS, SOURCE, ask, flip
from tracker.observations import Critic, Evidence, Mark, Model, Probabilities
from tracker.stances import Emotion, Sentiment, Stance, TriggerKind


def test_an_observation_is_what_two_roles_say() -> None:
    engine = RoleEngine(Roles(ScriptedChat({FELT: "anger, negative", SAYS: ["support", "none"]})))
    asked = [ask(), ask("hm", state=Stance.UNKNOWN)]
    first, second = check_observations(asked, engine.observe(asked))
    assert (first.expressed, first.relevance) == (Probabilities(support=1.0), 1.0)
    assert (first.emotion, first.sentiment) == (Emotion.ANGER, Sentiment.NEGATIVE)
    assert (second.expressed, second.relevance) == (Probabilities(none=1.0), 0.0)
    assert first.model == Model("scripted", "1", ENGINE, "en")
    assert (first.marks, first.read_under) == ((), Stance.OPPOSE)


def test_an_explanation_is_the_synthesizers_without_a_critic() -> None:
    chat = ScriptedChat({KIND: "feelings", SOURCE: "2"})
    asked = [flip()]
    (said,) = check_explanations(asked, RoleEngine(Roles(chat)).explain(asked))
    assert (said.trigger.kind, said.trigger.turns) == (TriggerKind.EMOTIONAL_VALUE, ("2",))
    assert said.evidence == (Evidence("9", "text"),)
    assert (said.critic, said.refined) == (Critic.NONE, None)


def test_it_is_an_engine_on_a_backbone_too(tiny: Backbone) -> None:
    engine = RoleEngine(Roles(LocalChat(tiny)))
    assert isinstance(engine, Engine)
    asked = [ask(), ask("好" * 5000, window=())]
    seen = check_observations(asked, engine.observe(asked))
    assert [one.marks[-1] for one in seen] == [Mark.UNTRAINED] * 2
    assert sum(seen[0].expressed[label] for label, _ in seen[0].expressed.ranked()) == pytest.approx(1)
    assert len(check_explanations([flip()], engine.explain([flip()]))) == 1
    assert engine.model.name == tiny.name
    assert 0 < engine.tokens(asked[0]) < engine.tokens(asked[1]) <= 640
