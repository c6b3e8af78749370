"""Corrupt-and-Correct over whole dialogues, in the paper's own prompts (StanceFlip Appendix B.2, equation 9).

Of every dialogue: extract its sextuples (task 1). Of a gold sextuple: say what is wrong with a corrupted one
(task 2), and mend it, given what was said (task 3). B.2.2 down-samples by "probability > 0.4"; read here as:
tasks 2 and 3 of a sextuple are kept, together, where one uniform draw is above 0.4, and task 1 always is.
The form that is served is `models.training.reflection`'s.
"""

import random
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from models.datasets.dialogue import Dialogue
from models.language.budget import name
from models.training.feedback import Fault, feedback, position, vague
from models.training.lessons import Text
from models.training.transcript import Sextuple, line, sextuples, shown
from tracker.stances import DEFINITE, Stance

# The paper's own words for the three tasks.
EXTRACT = "Extract all stance information from the dialogue."
CRITICISE = "Provide specific feedback on the extracted stance tuple based on the dialogue."
CORRECT = "Fix the extracted stance tuple based on the feedback."

_INVERTED = {Stance.SUPPORT: Stance.OPPOSE, Stance.OPPOSE: Stance.SUPPORT}


class Corruption(msgspec.Struct, frozen=True):
    """A sextuple that is wrong in one element, and what is right."""

    fault: Fault
    truth: Sextuple
    wrong: Sextuple


def corrections(dialogues: Iterable[Dialogue], above: float, seed: int) -> list[Text]:
    """All that these dialogues teach, in order; a dialogue's chances do not depend on its neighbours."""
    return [
        lesson
        for dialogue in dialogues
        if dialogue.proposition
        for lesson in _of(dialogue, above, random.Random(f"{seed}/{dialogue.id}"))
    ]


def _of(dialogue: Dialogue, above: float, chance: random.Random) -> Iterator[Text]:
    found, turns = list(sextuples(dialogue)), shown(dialogue)
    if found:
        yield Text(EXTRACT, turns, "\n".join(map(line, found)))
    speakers = list(dict.fromkeys(turn.speaker for turn in dialogue.turns))
    for truth in found:
        # Every draw is made whether the sample is kept or not: another `above` keeps the same corruptions.
        made, drawn = corrupted(truth, speakers, dialogue.language, chance), chance.random()
        if drawn > above:
            yield from _pair(made, turns, dialogue.language)


def _pair(made: Corruption, turns: str, language: str) -> Iterator[Text]:
    said = _feedback(made, language)
    draft = f"{turns}\n\nExtracted: {line(made.wrong)}"
    yield Text(CRITICISE, draft, said)
    yield Text(CORRECT, f"{draft}\nFeedback: {said}", line(made.truth))


def corrupted(truth: Sextuple, speakers: Sequence[str], language: str, chance: random.Random) -> Corruption:
    """The sextuple wrong in its holder (where there is another), its stance or its target, by chance."""
    # Told apart by what a prompt shows: two long names may be cut to the same one.
    others = [speaker for speaker in speakers if name(speaker) != name(truth.holder)]
    faults: list[Fault] = ["holder", "stance", "target"] if others else ["stance", "target"]
    fault = chance.choice(faults)
    if fault == "holder":
        wrong = msgspec.structs.replace(truth, holder=chance.choice(others))
    elif fault == "stance":
        wrong = msgspec.structs.replace(truth, stance=other(truth.stance, truth.before, chance))
    else:
        wrong = msgspec.structs.replace(truth, target=vague(truth.target, language))
    return Corruption(fault, truth, wrong)


def other(stance: Stance, before: Stance | None, chance: random.Random) -> Stance:
    """The inverse; of a flip, the stance that it neither left nor reached; of a middle, a side."""
    if before is not None:
        return chance.choice(sorted(DEFINITE - {stance, before}))
    return _INVERTED.get(stance) or chance.choice(sorted(_INVERTED))


def _feedback(made: Corruption, language: str) -> str:
    """What is wrong, and what the dialogue says instead."""
    right, wrong = (_word(made.fault, one, language) for one in (made.truth, made.wrong))
    holder = name(made.truth.holder)
    return feedback(made.fault, language, turn=made.truth.turn, holder=holder, right=right, wrong=wrong)


def _word(fault: Fault, of: Sextuple, language: str) -> str:
    if fault == "stance":
        return position(of.stance, language)
    return name(of.holder) if fault == "holder" else of.target
