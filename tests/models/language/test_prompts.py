import json
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from models.language.prompts import explain_body, lettered, observe_body, quoted, reason_body
from models.reader import ExplainRequest, ObserveRequest
from tracker.records import Media, Modality
from tracker.stances import Stance

Ask = Callable[..., ObserveRequest]


def test_proposition_and_state_then_the_window_then_the_new_turn_last(ask: Ask) -> None:
    media = (Media(Modality.MEME, description="a dog in a burning room"), Media(Modality.AUDIO))
    assert observe_body(ask('he said "no"\nfine', media=media)) == (
        'Topic: "The debate concerning whether the office should get a second dog"\n'
        'Position of "Maya" so far: oppose\n'
        "\n"
        "Earlier turns, already read:\n"
        'A. "Maya": "one dog is plenty"\n'
        'B. "Tom" to A: "the vet says a lone dog gets ill"\n'
        "\n"
        "New turn:\n"
        'C. "Maya" to B: "he said \\"no\\"\\nfine" [meme: "a dog in a burning room"] [audio]'
    )


def test_what_is_not_known_is_said_to_be_so(ask: Ask) -> None:
    body = observe_body(ask(state=Stance.UNKNOWN, window=(), reply_to="gone"))
    assert "so far: not known yet" in body
    assert "Earlier" not in body
    assert 'A. "Maya" to an earlier turn: ' in body


def test_a_flip_is_named_after_the_new_turn(ask: Ask) -> None:
    body = explain_body(ask(), Stance.SUPPORT)
    assert body.startswith(observe_body(ask()))
    assert body.endswith('With this turn "Maya" changed from oppose to support. What caused it?')


def test_a_reason_is_asked_of_the_two_turns_that_matter(ask: Ask, observation: object) -> None:
    request = ExplainRequest(ask(), observation, Stance.SUPPORT)
    turns = lettered(ask())
    assert [turn.text in reason_body(request, turns["B"], "facts") for turn in turns.values()] == [
        False,
        True,
        True,
    ]
    assert [turn.text in reason_body(request, turns["C"], "facts") for turn in turns.values()] == [
        False,
        False,
        True,
    ]


@given(st.text())
def test_no_text_closes_its_own_quotation(text: str) -> None:
    line = quoted(text)
    assert "\n" not in line
    assert json.JSONDecoder().raw_decode(line + ' [meme: "posing"]') == (text, len(line))
