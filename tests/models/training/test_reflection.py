"""What stage 3 teaches is what the roles ask: a chat that learned it by heart corrects what it is shown."""

import random
from collections.abc import Sequence

import msgspec
import pytest

from models.language.chat import Talk, talk
from models.language.rule import RuleEngine
from models.reader import ExplainRequest
from models.reasoning.incremental import ReasoningEngine
from models.reasoning.prompts import Objection
from models.reasoning.roles import Roles
from models.reasoning.room import Room
from models.training.corruption import CORRECT, CRITICISE, EXTRACT
from models.training.drafts import CRITERION, Flawed, Truth, corrupted, truths
from models.training.feedback import Fault
from models.training.lessons import Choice, Lesson, Reading, Text, lessons
from models.training.reflection import reflections, taught
from models.training.stages import ReflectionOptions
from tests.models.training.flips import RATIONALE, explained
from tests.models.training.talks import talk as argument
from tests.models.training.test_drafts import told
from tracker.observations import Critic, Explanation, Observation
from tracker.stances import Expressed, Stance

OPTIONS = ReflectionOptions(
    quantization="none", rate=1e-4, shape="linear", warmup=0.0, batch=4, accumulation=4, clip=0.3, epochs=1
)
ROOM = Room()


class LearnedChat:
    """Says what was taught of a talk; of others the first label, and no words."""

    name, revision = "learned", "1"

    def __init__(self, learned: Sequence[Lesson]) -> None:
        self._words = {_talk(one): one.answer for one in learned if isinstance(one, Text)}
        self._choices = {_talk(one): one for one in learned if isinstance(one, Choice)}
        self.unused = {*self._words, *self._choices}

    def write(self, talks: Sequence[Talk], limit: int) -> list[str]:
        self.unused -= set(talks)
        return [self._words.get(one, "") for one in talks]

    def choose(self, talks: Sequence[Talk], labels: Sequence[str]) -> list[list[float]]:
        self.unused -= set(talks)
        return [self._shares(self._choices.get(one), labels) for one in talks]

    def _shares(self, choice: Choice | None, labels: Sequence[str]) -> list[float]:
        assert choice is None or choice.labels == tuple(labels)
        right = labels[:1] if choice is None else choice.right
        return [(label in right) / len(right) for label in labels]


def _talk(lesson: Text | Choice) -> Talk:
    return talk(lesson.instruction, lesson.shown)


def flawed(fault: Fault, room: Room = ROOM, words: str = RATIONALE) -> tuple[Truth, Flawed]:
    dialogue = told(argument("dog0", Stance.SUPPORT, Stance.OPPOSE), words)
    (truth,) = truths(dialogue, room, random.Random(0))
    made = (corrupted(truth, random.Random(seed)) for seed in range(60))
    return truth, next(one for one in made if one.fault == fault)


@pytest.mark.parametrize("fault", CRITERION)
@pytest.mark.parametrize(
    "words", [RATIONALE, "Tom counts every word of it. " + "And of the rest, too, " * 60]
)
def test_the_roles_find_and_mend_what_they_learned_to(fault: Fault, words: str) -> None:
    truth, wrong = flawed(fault, words=words)
    made = list(taught(truth, wrong, ROOM))
    chat = LearnedChat(made)
    roles = Roles(chat, ROOM)
    right, review = roles.reviews([truth.change, wrong.change], [truth.draft, wrong.draft])
    assert right.verdict.passed
    assert review.verdict.failed == (CRITERION[fault],)
    assert review.feedback == wrong.said
    (mended,) = roles.drafts([truth.change], [Objection(wrong.draft, review.feedback)])
    assert mended == truth.draft
    if fault == "stance":
        request, feelings = truth.change.request, truth.change.feelings
        (said,) = roles.expressed([request], [feelings], [review.feedback])
        assert said[Expressed.OPPOSE] == 1.0
    assert chat.unused == set()  # every prompt that is taught was asked, to the letter


def test_a_flip_read_wrongly_is_served_as_it_was_labelled() -> None:
    truth, wrong = flawed("stance")
    engine = ReasoningEngine(Drafting(wrong), Roles(LearnedChat([*taught(truth, wrong, ROOM)]), ROOM))
    (said,) = engine.explain([asked(wrong)])
    assert (said.critic, said.trigger) == (Critic.REFINED, truth.draft.trigger)
    assert said.refined is not None
    assert said.refined.expressed[Expressed.OPPOSE] == 1.0


def test_a_flip_where_nobody_moved_is_read_anew() -> None:
    dialogue = told(argument("dog0", Stance.SUPPORT, Stance.UNKNOWN))
    (truth,) = truths(dialogue, ROOM, random.Random(0))
    wrong = corrupted(truth, random.Random(0))
    chat = LearnedChat([*taught(truth, wrong, ROOM)])
    (said,) = ReasoningEngine(Drafting(wrong), Roles(chat, ROOM)).explain([asked(wrong)])
    assert said.refined is not None
    assert said.refined.expressed[Expressed.NONE] == 1.0
    assert chat.unused == set()


class Drafting(RuleEngine):
    """Explains as the draft says."""

    def __init__(self, wrong: Flawed) -> None:
        self._draft = wrong.draft

    def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        given = super().explain(requests)
        trigger, words = self._draft.trigger, self._draft.rationale
        return [msgspec.structs.replace(one, trigger=trigger, rationale=words) for one in given]


def asked(wrong: Flawed) -> ExplainRequest:
    change = wrong.change
    seen: Observation = msgspec.structs.replace(
        RuleEngine().observe([change.request])[0],
        emotion=change.feelings.emotion,
        sentiment=change.feelings.sentiment,
    )
    return ExplainRequest(change.request, seen, change.after)


def test_what_is_shown_is_cut_to_the_room_that_is_served() -> None:
    room = Room(200)
    truth, wrong = flawed("target", room, "Tom says " + "so, and again, " * 80)
    roomy, _ = flawed("target", Room(640), "Tom says " + "so, and again, " * 80)
    assert truth.change.request == room.fitted(roomy.change.request)
    chat = LearnedChat([*taught(truth, wrong, room)])
    Roles(chat, room).reviews([truth.change], [truth.draft])
    Roles(chat, room).reviews([wrong.change], [wrong.draft])
    Roles(chat, room).drafts([truth.change], [Objection(wrong.draft, wrong.said)])
    assert chat.unused == set()


def options(**changes: object) -> ReflectionOptions:
    return msgspec.structs.replace(OPTIONS, **changes)


def test_pairs_are_kept_by_chance_and_by_seed() -> None:
    dialogues = explained(200)
    every, kept = (
        _checks(reflections(dialogues, options(above=above), ROOM)) for above in (-1.0, 0.4)
    )  # fmt: skip
    assert kept / every == pytest.approx(0.6, abs=0.1)
    made = reflections(dialogues, OPTIONS, ROOM)
    assert made == reflections(dialogues, OPTIONS, ROOM)
    assert made != reflections(dialogues, options(seed=1), ROOM)
    assert all(one in made for one in reflections(dialogues[7:8], OPTIONS, ROOM))


def _checks(made: Sequence[Lesson]) -> int:
    return sum(isinstance(one, Choice) and one.right == ("no",) for one in made)


def test_of_what_stage_2_taught_a_share_is_told_again_and_corruptions_stay() -> None:
    dialogues = explained(40)
    every, some, none = (reflections(dialogues, options(rehearsed=share), ROOM) for share in (1.0, 0.3, 0.0))
    roles = [[one for one in made if isinstance(one, Choice | Text)] for made in (every, some, none)]
    assert roles[0] == roles[1] == roles[2] == none
    assert [one for one in every if not isinstance(one, Choice | Text)] == lessons(dialogues)
    assert (
        0.2 < sum(isinstance(one, Reading) for one in some) / sum(len(one.turns) for one in dialogues) < 0.4
    )


def test_the_papers_form_is_over_whole_dialogues() -> None:
    made = reflections(explained(6), options(form="dialogue", above=-1.0), ROOM)
    assert {one.instruction for one in made if isinstance(one, Text)} == {EXTRACT, CRITICISE, CORRECT}


def test_a_dialogue_without_a_proposition_teaches_nothing() -> None:
    (one,) = explained(1)
    bare = msgspec.structs.replace(one, proposition=None)
    for form in ("served", "dialogue"):
        assert reflections([bare], options(form=form), ROOM) == []
