"""Corrupt-and-Correct in the form that is served: what the Critic and the roles are asked of a draft (B.2).

Of a flip: the Critic's question whose answer is yes of the true draft and no of the corrupted one; what is
wrong; and then, with that in view, the reading where the stance is doubted, the trigger and the reason. Of a
turn that moves nobody: that a flip seen there is none. Prompts are made by `models.reasoning.prompts`, what
they show is cut as `Roles` cuts it. B.2.1's initial generation is what stage 2 taught.
"""

import random
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from models.datasets.dialogue import Dialogue
from models.language.chat import Talk
from models.language.labels import TRIGGER
from models.reasoning import answers, prompts
from models.reasoning.prompts import Change, Draft, Objection
from models.reasoning.room import Room
from models.training.corruption import corrections
from models.training.drafts import CRITERION, Flawed, Truth, corrupted, numbers, truths
from models.training.lessons import Choice, Lesson, Text, lessons
from models.training.stages import ReflectionOptions

YES, NO = answers.YES_NO


def reflections(dialogues: Iterable[Dialogue], options: ReflectionOptions, room: Room) -> list[Lesson]:
    """All that these dialogues teach, in order; a dialogue's chances do not depend on its neighbours.

    `room` is what the roles are shown when they are served.
    """
    if options.form == "dialogue":
        return [*corrections(dialogues, options.above, options.seed)]
    about = (dialogue for dialogue in dialogues if dialogue.proposition)
    return [lesson for dialogue in about for lesson in _of(dialogue, options, room)]


def _of(dialogue: Dialogue, options: ReflectionOptions, room: Room) -> Iterator[Lesson]:
    chance = random.Random(f"{options.seed}/{dialogue.id}")
    # Every draw is made whether its lesson is kept or not: other shares keep the same corruptions.
    yield from [one for one in lessons([dialogue]) if chance.random() < options.rehearsed]
    for truth in truths(dialogue, room, chance):
        flawed, drawn = corrupted(truth, chance), chance.random()
        if drawn > options.above:
            yield from taught(truth, flawed, room)


def taught(truth: Truth, flawed: Flawed, room: Room) -> Iterator[Text | Choice]:
    """The verdict, the feedback and the correction, as the roles are asked for them."""
    criterion, draft = CRITERION[flawed.fault], _noted(flawed.draft, room)
    if truth.flips:
        yield _checked(truth.change, _noted(truth.draft, room), criterion, YES)
    yield _checked(flawed.change, draft, criterion, NO)
    yield _text(prompts.criticised(flawed.change, draft, [criterion]), flawed.said)
    objection = Objection(draft, room.note(flawed.said))
    if flawed.fault == "stance" and truth.expressed is not None:
        change = truth.change
        talk = prompts.expressed(change.request, change.feelings, objection.feedback)
        yield _choice(talk, list(answers.EXPRESSED), truth.expressed.value)
    if truth.flips:
        yield from _explained(truth, objection)


def _explained(truth: Truth, objection: Objection) -> Iterator[Text | Choice]:
    """The Synthesizer's second draft."""
    change, (trigger, words) = truth.change, (truth.draft.trigger, truth.draft.rationale)
    yield _choice(prompts.kind(change, objection), list(answers.KINDS), TRIGGER.words[trigger.kind])
    shown = numbers(change)
    if len(shown) > 1:  # a single turn is never asked about
        right = (number for turn, number in shown.items() if turn in truth.sources)
        yield _choice(prompts.source(change, objection), [*shown.values()], *right)
    if objection.draft.rationale != words:  # what was right already would teach to repeat it
        yield _text(prompts.reason(change, trigger, objection), words)


def _noted(draft: Draft, room: Room) -> Draft:
    return msgspec.structs.replace(draft, rationale=room.note(draft.rationale))


def _checked(change: Change, draft: Draft, criterion: str, right: str) -> Choice:
    talk = prompts.checked(change, draft)[list(prompts.CRITERIA).index(criterion)]
    return _choice(talk, answers.YES_NO, right)


def _choice(talk: Talk, labels: Sequence[str], *right: str) -> Choice:
    standing, asked = talk
    return Choice(standing.content, asked.content, tuple(labels), right)


def _text(talk: Talk, answer: str) -> Text:
    standing, asked = talk
    return Text(standing.content, asked.content, answer)
