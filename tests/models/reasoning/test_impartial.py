import pytest

from models.language.backbone import Backbone
from models.language.local_chat import LocalChat
from models.reasoning import prompts
from models.reasoning.impartial import Impartial, fair, freed, silenced
from tests.models.language.scripted import ScriptedChat
from tests.models.reasoning.build import CALM, TOPIC, ask, change, draft
from tracker.stances import Stance


def test_nothing_is_left_of_what_anybody_wrote() -> None:
    talk = prompts.felt(ask())
    shown = silenced(talk)[-1].content
    assert "dog" not in shown
    assert "Maya" not in shown
    assert "so far: oppose" in shown
    assert 'oppose\n\nNew turn:\n1. "N/A": "N/A"\n\n' in shown
    assert "Earlier" not in shown
    assert shown.splitlines()[-1] == talk[-1].content.splitlines()[-1].replace('"Maya"', '"N/A"')


def test_the_same_question_about_any_turn_is_one_question_about_nothing() -> None:
    long, short = ask(), ask("x", window=(), proposition="y")
    assert silenced(prompts.stood(long, CALM)) == silenced(prompts.stood(short, CALM))
    assert silenced(prompts.stood(long, CALM)) == silenced(prompts.stood(ask("other"), CALM))
    assert silenced(prompts.stood(long, CALM)) != silenced(prompts.stood(ask(state=Stance.SUPPORT), CALM))


@pytest.mark.parametrize(
    "talk",
    [
        prompts.held(ask().window),
        prompts.drifted(TOPIC, ask().window),
        prompts.kind(change()),
        *prompts.checked(change(), draft('A \\ "quote"')),
    ],
)
def test_every_question_can_be_asked_about_nothing(talk: prompts.Talk) -> None:
    shown = silenced(talk)[-1].content
    assert "dog" not in shown
    assert "quote" not in shown.replace("quotation", "")
    assert shown.count('1. "N/A": "N/A"') == 1


def test_what_is_preferred_for_nothing_is_divided_out() -> None:
    assert freed([0.6, 0.4], [0.9, 0.1]) == pytest.approx([1 / 7, 6 / 7])
    assert freed([0.5, 0.5], [1.0, 0.0]) == pytest.approx([0.0001, 0.9999], abs=1e-3)
    assert freed([0.25] * 4, [0.25] * 4) == pytest.approx([0.25] * 4)


def test_favourites_are_measured_once() -> None:
    chat = ScriptedChat({"dog": "yes"})
    impartial = Impartial(chat)
    asked = [prompts.drifted(TOPIC, ask().window)]
    first = impartial.choose(asked, ("yes", "no"))
    assert impartial.choose(asked, ("yes", "no")) == first
    assert len(chat.asked) == 3


def test_only_an_untrained_model_is_corrected(tiny: Backbone, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(fair(LocalChat(tiny)), Impartial)
    scripted, trained = ScriptedChat(), LocalChat(tiny)
    assert fair(scripted) is scripted
    monkeypatch.setattr(tiny, "untrained", False)
    assert fair(trained) is trained
