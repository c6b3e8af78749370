import itertools
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.language.chat import Talk
from models.language.prompts import observe_body
from models.reasoning import prompts
from models.reasoning.prompts import Objection
from tests.models.reasoning.build import CALM, TOPIC, ask, change, draft
from tracker.context import WindowTurn
from tracker.records import Media, Modality
from tracker.stances import Emotion, Sentiment, Stance


def asked(talk: Talk) -> str:
    return talk[1].content


def test_a_turn_is_shown_as_to_the_engine_but_numbered() -> None:
    shown = asked(prompts.felt(ask()))
    assert shown.startswith(f'Topic: "{TOPIC}"\nPosition of "Maya" so far: oppose\n')
    assert '1. "Maya": "one dog is plenty"\n2. "Tom" to 1: "the vet says' in shown
    assert '3. "Maya" to 2: "+1 ok you convinced me"' in shown
    assert shown.startswith(observe_body(ask(), map(str, itertools.count(1))))


def test_a_history_may_be_longer_than_the_alphabet() -> None:
    window = tuple(WindowTurn(str(index), "Tom", f"word {index}") for index in range(200))
    request = ask(window=window)
    assert list(prompts.numbered(request))[-1] == "201"
    assert '200. "Tom": "word 199"' in asked(prompts.felt(request))


def test_each_role_has_an_instruction_of_its_own_that_never_changes() -> None:
    talks = [
        prompts.formulated(ask().window),
        prompts.felt(ask()),
        prompts.stood(ask(), CALM),
        prompts.kind(change()),
        prompts.checked(change(), draft())[0],
    ]
    assert tuple(talk[0].content for talk in talks) == prompts.INSTRUCTIONS
    assert all(talk[0].content.endswith(prompts.GUARD) for talk in talks)


def test_the_psychologist_is_shown_media_and_every_label() -> None:
    turn = WindowTurn("9", "Maya", "great", media=(Media(Modality.MEME, description="a dog on fire"),))
    shown = asked(prompts.felt(ask(turn=turn)))
    assert '[meme: "a dog on fire"]' in shown
    assert all(label in shown for label in (*Emotion, *Sentiment))


def test_the_analyst_is_told_the_last_stance_and_the_feelings() -> None:
    shown = asked(prompts.stood(ask(), change().feelings))
    assert '"Maya" so far: oppose' in shown
    assert '"Maya" feels: sadness, negative' in shown
    assert "unknown" in shown


def test_a_critique_is_in_view_as_a_quotation() -> None:
    assert 'doubted: "she only \\"jokes\\""' in asked(prompts.expressed(ask(), CALM, 'she only "jokes"'))


def test_the_synthesizer_knows_the_change_and_then_the_trigger() -> None:
    assert "changed from oppose to support" in asked(prompts.kind(change()))
    shown = asked(prompts.reason(change(), draft().trigger))
    assert "Cause: facts, from turn 2." in shown
    assert "from an earlier turn." in asked(prompts.reason(change(), draft(turn="gone").trigger))


def test_an_objection_shows_the_draft_and_what_is_wrong_with_it() -> None:
    shown = asked(prompts.reason(change(), draft().trigger, Objection(draft("Bad."), "Name the vet.")))
    assert 'A first explanation: "Bad."\nWhat is wrong with it: "Name the vet."' in shown
    assert "Write a better explanation" in shown


def test_the_critic_asks_for_each_criterion_about_the_same_draft() -> None:
    target, stance, evidence = map(asked, prompts.checked(change(), draft()))
    assert len({target, stance, evidence}) == 3
    assert all('Explanation: "Tom named the vet."' in shown for shown in (target, stance, evidence))
    shown = asked(prompts.criticised(change(), draft(), ["evidence"]))
    assert f"{prompts.CRITERIA['evidence']} No." in shown
    assert prompts.CRITERIA["target"] not in shown


POSERS: list[Callable[[str], Talk]] = [
    lambda text: prompts.felt(ask(text)),
    lambda text: prompts.stood(ask(proposition=text), CALM),
    lambda text: prompts.expressed(ask(), CALM, text),
    lambda text: prompts.reason(change(), draft().trigger, Objection(draft(text), text)),
    lambda text: prompts.checked(change(), draft(text))[0],
    lambda text: prompts.criticised(change(), draft(text), ["stance"]),
    lambda text: prompts.held([WindowTurn("1", text, text)]),
    lambda text: prompts.drifted(text, ask().window),
]


@pytest.mark.parametrize("made", POSERS)
@given(text=st.text(max_size=40))
def test_nobodys_words_add_a_line_or_leave_their_quotation_marks(
    made: Callable[[str], Talk], text: str
) -> None:
    lines, usual = asked(made(text)).split("\n"), asked(made("x")).split("\n")
    assert len(lines) == len(usual)
    for line, plain in zip(lines, usual, strict=True):
        assert outside(line) == outside(plain)


def outside(line: str) -> str:
    """The line without what stands in quotation marks."""
    kept = ""
    while '"' in line:
        before, _, _ = line.partition('"')
        _, end = json.JSONDecoder().raw_decode(line[len(before) :])
        kept, line = kept + before, line[len(before) + end :]
    return kept + line


def test_stances_are_told_apart_by_their_words() -> None:
    assert prompts.stood(ask(state=Stance.UNKNOWN), CALM) != prompts.stood(ask(), CALM)
