from itertools import product

import pytest

from models.language.backbone import Backbone
from models.language.local_chat import LocalChat
from models.reasoning.answers import Verdict
from models.reasoning.prompts import INSTRUCTIONS, Feelings, Objection
from models.reasoning.roles import Roles
from models.reasoning.room import NOTE, WORDS, estimated, whole
from tests.models.language.scripted import ScriptedChat
from tests.models.reasoning.build import (
    BETTER,
    CALM,
    CRITIQUE,
    FELT,
    KIND,
    ON_EVIDENCE,
    ON_STANCE,
    ON_TARGET,
    RATIONALE,
    SAYS,
    SOURCE,
    STOOD,
    ask,
    change,
    draft,
)
from tracker.observations import Probabilities, Trigger
from tracker.stances import Emotion, Sentiment, Stance, TriggerKind


def test_the_psychologist_finds_emotion_and_sentiment_at_once() -> None:
    chat = ScriptedChat({FELT: ["fear, negative", "joy, positive"]})
    felt = Roles(chat).feelings([ask(), ask("hm")])
    assert felt == [Feelings(Emotion.FEAR, Sentiment.NEGATIVE), Feelings(Emotion.JOY, Sentiment.POSITIVE)]
    assert len(chat.asked) == 2


def test_the_analyst_finds_the_state_or_what_the_turn_says() -> None:
    roles = Roles(ScriptedChat({STOOD: "neutral", SAYS: "none"}))
    assert roles.stances([ask()], [CALM]) == [Stance.NEUTRAL]
    assert roles.expressed([ask()], [CALM], ["Irony."]) == [Probabilities(none=1.0)]


def test_the_synthesizer_names_kind_turn_and_reason() -> None:
    chat = ScriptedChat(
        {KIND: "experience", SOURCE: "2", RATIONALE: "Tom named the vet. Then she agreed. No."}
    )
    (made,) = Roles(chat).drafts([change()])
    assert made.trigger == Trigger(TriggerKind.PERSONAL_EXPERIENCE, ("2",), ("Tom",), 1.0)
    assert made.rationale == "Tom named the vet. Then she agreed."


def test_without_words_the_reason_is_what_is_known() -> None:
    (made,) = Roles(ScriptedChat({SOURCE: "3"})).drafts([change()])
    assert made.rationale == "Maya moved from oppose to support after turn 9."
    (again,) = Roles(ScriptedChat()).drafts([change()], [Objection(draft("Kept."), "Bad.")])
    assert again.rationale == "Kept."


def test_an_answer_that_names_no_label_is_the_first_of_equals() -> None:
    chat = ScriptedChat({KIND: "whatever", SOURCE: "seven", FELT: "?", STOOD: "?"})
    (made,) = Roles(chat).drafts([change()])
    assert made.trigger.kind is TriggerKind.FACTUAL_LOGICAL
    assert made.trigger.confidence == 0.25
    assert made.trigger.turns == ("1",)
    assert Roles(chat).stances([ask()], [CALM]) == [Stance.UNKNOWN]


@pytest.mark.parametrize("met", list(product([True, False], repeat=3)))
def test_verdicts_are_of_their_criteria_and_only_a_failed_draft_gets_feedback(met: tuple[bool, ...]) -> None:
    answers = {
        key: "yes" if yes else "no" for key, yes in zip((ON_TARGET, ON_STANCE, ON_EVIDENCE), met, strict=True)
    }
    chat = ScriptedChat({CRITIQUE: "It names nobody.", **answers})
    (review,) = Roles(chat).reviews([change()], [draft()])
    assert review.verdict == Verdict(*met)
    assert review.feedback == ("" if all(met) else "It names nobody.")
    assert len(chat.written) == (0 if all(met) else 1)


def test_a_critic_without_words_repeats_what_failed() -> None:
    (review,) = Roles(ScriptedChat({CRITIQUE: "", ON_EVIDENCE: "no"})).reviews([change()], [draft()])
    assert ON_EVIDENCE in review.feedback
    assert ON_TARGET not in review.feedback


def test_each_draft_has_its_own_review() -> None:
    chat = ScriptedChat({CRITIQUE: "Bad.", 'Explanation: "B': "no"})
    reviews = Roles(chat).reviews([change()] * 3, [draft("A"), draft("B"), draft("C")])
    assert [review.verdict.passed for review in reviews] == [True, False, True]
    assert [review.feedback for review in reviews] == ["", "Bad.", ""]


def test_nothing_asked_is_nothing_said() -> None:
    roles = Roles(ScriptedChat())
    assert (roles.drafts([]), roles.reviews([], []), roles.feelings([])) == ([], [], [])


def test_what_other_roles_wrote_is_shown_short() -> None:
    chat, long = ScriptedChat({ON_TARGET: "no"}), "word " * 4000
    roles = Roles(chat)
    roles.reviews([change()], [draft(long)])
    roles.drafts([change()], [Objection(draft(long), long)])
    roles.expressed([ask()], [CALM], [long])
    usual = estimated(roles.chat.asked[0][1].content)
    assert all(estimated(talk[1].content) < usual + 3 * NOTE for talk in chat.asked)
    assert any(BETTER in talk[1].content for talk in chat.written)


def test_all_roles_on_a_model_stay_within_its_positions(narrow: Backbone) -> None:
    chat = LocalChat(narrow)
    roles = Roles(chat, whole(chat.room(INSTRUCTIONS), chat.count))
    long = "好" * 3000
    window = tuple(msg for msg in ask().window for _ in range(200))
    request = roles.room.fitted(ask(long, window=window, proposition=long))
    assert len(request.window) < 400
    (felt,) = roles.feelings([request])
    one = change(turn=request.turn, window=request.window, proposition=request.proposition)
    (review,) = roles.reviews([one], [draft(long)])
    (made,) = roles.drafts([one], [Objection(draft(long), long)])
    assert roles.stances([request], [felt])[0] in Stance
    assert len(chat.backbone.encode(made.rationale)) <= 4 * WORDS
    assert isinstance(review.feedback, str)
