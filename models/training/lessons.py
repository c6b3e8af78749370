"""What stage 2 teaches of labelled dialogues (StanceFlip 4.3 and C.4), before any tokenizer has seen it.

In the served form that is what the engine asks: of every turn the label slots of `observe`; of every flip
those of `explain` and the written reason. Requests are `models.training.examples`', so none shows what its
turn is labelled with.
"""

from collections.abc import Iterable, Iterator

import msgspec

from models.datasets.dialogue import Dialogue, LabelledTurn
from models.language.writing import SENTENCE
from models.training import transcript
from models.training.examples import Example, examples, mover
from models.training.stages import Form
from tracker.stances import Stance, TriggerKind


class Reading(msgspec.Struct, frozen=True, tag=True):
    """A turn to be observed."""

    example: Example


class Cause(msgspec.Struct, frozen=True, tag=True):
    """A flip to be explained by its kind of trigger and the turns that carried it."""

    example: Example
    after: Stance


class Reason(msgspec.Struct, frozen=True, tag=True):
    """A flip to be explained in words, once its trigger is known."""

    example: Example
    after: Stance
    kind: TriggerKind
    mover: str  # the trigger turn
    words: str


class Text(msgspec.Struct, frozen=True, tag=True):
    """Words to be written behind an instruction and what is shown."""

    instruction: str
    shown: str
    answer: str


class Choice(msgspec.Struct, frozen=True, tag=True):
    """A label to be chosen behind an instruction and what is shown, as `Chat.choose` is asked."""

    instruction: str
    shown: str
    labels: tuple[str, ...]
    right: tuple[str, ...]  # any of them


Lesson = Reading | Cause | Reason | Text | Choice


def lessons(dialogues: Iterable[Dialogue], form: Form = "served") -> list[Lesson]:
    """All that these dialogues teach, in order."""
    if form == "dialogue":
        return [
            Text(transcript.INSTRUCTION, transcript.shown(one), transcript.path(one))
            for one in dialogues
            if one.proposition
        ]
    return [lesson for dialogue in dialogues for lesson in _served(dialogue)]


def _served(dialogue: Dialogue) -> Iterator[Lesson]:
    for example, turn in zip(examples([dialogue]), dialogue.turns, strict=True):
        yield Reading(example)
        if turn.flip and turn.stance is not None and turn.trigger is not None:
            yield Cause(example, turn.stance)
            yield from _reason(example, turn, turn.stance, turn.trigger)


def _reason(example: Example, turn: LabelledTurn, after: Stance, kind: TriggerKind) -> Iterator[Reason]:
    moved_by = mover(example.request, map(str, turn.trigger_turns))
    # The engine keeps a first sentence: what comes behind it would be written and thrown away.
    sentence = SENTENCE.match((turn.rationale or "").strip())
    if sentence and moved_by:
        yield Reason(example, after, kind, moved_by.turn, sentence[0].strip())
