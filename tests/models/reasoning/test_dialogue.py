import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.evaluation.prediction import Case
from models.evaluation.stanceflip import Flip
from models.language.backbone import Backbone
from models.language.local_chat import LocalChat
from models.reasoning.dialogue import LIKELIEST, WholeDialogue, requests
from models.reasoning.prompts import INSTRUCTIONS
from models.reasoning.roles import Roles
from models.reasoning.room import Room, whole
from tests.models.language.scripted import ScriptedChat
from tests.models.reasoning.build import (
    BETTER,
    CRITIQUE,
    FELT,
    KIND,
    ON_EVIDENCE,
    RATIONALE,
    SOURCE,
    STOOD,
    TOPIC,
    WINDOW,
    ask,
    dialogue,
    observation,
)
from tracker.observations import Probabilities
from tracker.policy import decide
from tracker.stances import DEFINITE, Emotion, Stance, TriggerKind

TALK = (("Maya", "one dog is plenty"), ("Tom", "why?"), ("Maya", "fine, a second one"), ("Maya", "anyway"))
WHOLE = Room(5000, whole=True)


def script(**more: str | list[str]) -> ScriptedChat:
    """Maya opposes and supports after Tom, who is never known; the last turn tells nothing."""
    stances = ["oppose", "unknown", "support", "unknown"]
    return ScriptedChat({STOOD: stances, KIND: "facts", SOURCE: "2", RATIONALE: "Tom asked.", **more})


def test_a_dialogue_is_read_toward_its_proposition() -> None:
    reading = WholeDialogue(Roles(script(), WHOLE)).read(dialogue(*TALK))
    turns = reading.prediction.turns
    assert [turn.stance for turn in turns] == [Stance.OPPOSE, Stance.UNKNOWN, Stance.SUPPORT, Stance.SUPPORT]
    assert [turn.flip for turn in turns] == [False, False, True, False]
    assert (turns[2].before, turns[2].trigger, turns[2].trigger_turns) == (
        Stance.OPPOSE,
        TriggerKind.FACTUAL_LOGICAL,
        (1,),
    )
    assert (turns[2].rationale, turns[2].emotion, turns[2].expressed) == ("Tom asked.", Emotion.ANGER, None)
    assert Case(dialogue(*TALK), reading.prediction).prediction is reading.prediction


def test_each_role_sees_the_history_up_to_its_turn_and_the_last_stance() -> None:
    chat = script()
    WholeDialogue(Roles(chat, WHOLE)).read(dialogue(*TALK))
    felt = [talk[1].content for talk in chat.asked if FELT in talk[1].content]
    assert [sum(f'"{text}"' in shown for _, text in TALK) for shown in felt] == [1, 2, 3, 4]
    stood = [talk[1].content for talk in chat.asked if STOOD in talk[1].content]
    assert ['"Maya" so far: oppose' in shown for shown in stood] == [False, False, True, False]
    assert '"Maya" so far: support' in stood[3]


def test_the_critic_sends_a_rationale_back_once() -> None:
    chat = script(**{CRITIQUE: "Name the question.", BETTER: "Tom asked why.", ON_EVIDENCE: "no"})
    reading = WholeDialogue(Roles(chat, WHOLE)).read(dialogue(*TALK))
    assert reading.prediction.turns[2].rationale == "Tom asked why."
    assert len(chat.written) == 3


def test_without_a_proposition_the_cartographer_scans_the_dialogue() -> None:
    found = WholeDialogue(Roles(script(**{"as one sentence": "Whether dogs."}), WHOLE))
    assert found.read(dialogue(*TALK, proposition=None)).proposition == "Whether dogs."
    with pytest.raises(ValueError, match="dialogue d has no proposition"):
        WholeDialogue(Roles(ScriptedChat({"take a side": "no"}))).read(dialogue(*TALK, proposition=None))


def test_stanceflips_outputs() -> None:
    reading = WholeDialogue(Roles(script(), WHOLE)).read(dialogue(*TALK))
    first, silent, flipped, _ = reading.sextuples()
    assert (first.holder, first.target, first.stance, first.flip) == ("Maya", TOPIC, Stance.OPPOSE, False)
    assert (silent.stance, silent.rationale) == (Stance.UNKNOWN, None)
    assert (flipped.turn, flipped.flip, flipped.rationale) == (2, True, "Tom asked.")
    assert reading.flips() == (Flip(Stance.OPPOSE, Stance.SUPPORT, TriggerKind.FACTUAL_LOGICAL),)


def test_a_turn_is_asked_for_with_all_that_stands_before_it() -> None:
    first, second = requests("d", TOPIC, WINDOW)
    assert (first.window, second.window) == ((), WINDOW[:1])
    assert (second.turn, second.state) == (WINDOW[1], Stance.UNKNOWN)


def test_progress_counts_turns() -> None:
    counted: list[int] = []
    WholeDialogue(Roles(script())).run([dialogue(*TALK), dialogue(*TALK, id="e")], counted.append)
    assert sum(counted) == 8


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([*Stance, "?"])), min_size=1, max_size=12))
def test_a_definite_stance_never_becomes_unknown(said: list[tuple[str, str]]) -> None:
    chat = ScriptedChat({STOOD: [stance for _, stance in said]})
    reading = WholeDialogue(Roles(chat, WHOLE)).read(dialogue(*((who, "x") for who, _ in said)))
    for turn in reading.prediction.turns:
        assert turn.stance in DEFINITE or turn.before is Stance.UNKNOWN
        assert (turn.trigger is not None) is turn.flip


def test_the_policy_in_reports_says_what_is_done() -> None:
    weak = msgspec.structs.replace(observation(ask()), expressed=Probabilities(0.3, 0.25, 0.25, 0.2))
    assert decide(Stance.OPPOSE, weak, LIKELIEST) is Stance.SUPPORT


def test_a_long_dialogue_on_a_short_model_is_read_to_its_end(narrow: Backbone) -> None:
    chat = LocalChat(narrow)
    roles = Roles(chat, whole(chat.room(INSTRUCTIONS), chat.count))
    long = dialogue(*(("Maya" if at % 2 else "Tom", f"{at} {'word ' * 100}") for at in range(6)))
    assert len(WholeDialogue(roles).run([long])[0].turns) == 6
