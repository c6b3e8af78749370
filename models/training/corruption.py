"""Corrupt-and-Correct: what stage 3 teaches (StanceFlip 4.3, Appendix B.2, equation 9).

Of every dialogue: extract its sextuples (task 1). Of a gold sextuple: say what is wrong with a corrupted one
(task 2), and mend it, given what was said (task 3). B.2.2 down-samples by "probability > 0.4"; read here as:
tasks 2 and 3 of a sextuple are kept, together, where one uniform draw is above 0.4, and task 1 always is.
What is said, and the vague words in a target's place, are in the dialogue's language.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from models.datasets.dialogue import Dialogue
from models.language.budget import name
from models.training.lessons import Text
from models.training.transcript import Sextuple, line, sextuples, shown
from tracker.stances import DEFINITE, Stance

# The paper's own words for the three tasks.
EXTRACT = "Extract all stance information from the dialogue."
CRITICISE = "Provide specific feedback on the extracted stance tuple based on the dialogue."
CORRECT = "Fix the extracted stance tuple based on the feedback."

Fault = Literal["holder", "stance", "target"]

_VAGUE = {"en": ("something", "this"), "zh": ("某件事", "这个"), "es": ("algo", "esto")}

_SAID: dict[str, dict[Fault, str]] = {
    "en": {
        "holder": "The holder is wrong: turn {turn} was written by {right}, not by {wrong}.",
        "stance": "The stance is wrong: after turn {turn}, {holder}'s position is {right}, not {wrong}.",
        "target": "The target is too vague: “{wrong}” names no question. It is: {right}",
    },
    "zh": {
        "holder": "持有者不对：第{turn}条是{right}说的，不是{wrong}。",
        "stance": "立场不对：在第{turn}条之后，{holder}的立场是{right}，不是{wrong}。",
        "target": "目标太含糊：“{wrong}”没有说明争论的是什么。应当是：{right}",
    },
    "es": {
        "holder": "El titular es incorrecto: el turno {turn} lo escribió {right}, no {wrong}.",
        "stance": "La postura es incorrecta: tras el turno {turn}, {holder} está {right}, no {wrong}.",
        "target": "El objetivo es demasiado vago: «{wrong}» no nombra ninguna cuestión. Es: {right}",
    },
}

_STANCES: dict[str, dict[Stance, str]] = {
    "zh": {Stance.SUPPORT: "支持", Stance.NEUTRAL: "中立", Stance.OPPOSE: "反对"},
    "es": {Stance.SUPPORT: "a favor", Stance.NEUTRAL: "en una posición neutral", Stance.OPPOSE: "en contra"},
}

_INVERTED = {Stance.SUPPORT: Stance.OPPOSE, Stance.OPPOSE: Stance.SUPPORT}


class Corruption(msgspec.Struct, frozen=True):
    """A sextuple that is wrong in one element, and what is right."""

    fault: Fault
    truth: Sextuple
    wrong: Sextuple


def reflections(dialogues: Iterable[Dialogue], above: float, seed: int) -> list[Text]:
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
    feedback = _feedback(made, language)
    draft = f"{turns}\n\nExtracted: {line(made.wrong)}"
    yield Text(CRITICISE, draft, feedback)
    yield Text(CORRECT, f"{draft}\nFeedback: {feedback}", line(made.truth))


def corrupted(truth: Sextuple, speakers: Sequence[str], language: str, chance: random.Random) -> Corruption:
    """The sextuple wrong in its holder (where there is another), its stance or its target, by chance."""
    # Told apart by what a prompt shows: two long names may be cut to the same one.
    others = [speaker for speaker in speakers if name(speaker) != name(truth.holder)]
    faults: list[Fault] = ["holder", "stance", "target"] if others else ["stance", "target"]
    fault = chance.choice(faults)
    if fault == "holder":
        wrong = msgspec.structs.replace(truth, holder=chance.choice(others))
    elif fault == "stance":
        wrong = msgspec.structs.replace(truth, stance=_other(truth, chance))
    else:
        wrong = msgspec.structs.replace(truth, target=_vague(truth.target, language))
    return Corruption(fault, truth, wrong)


def _other(truth: Sextuple, chance: random.Random) -> Stance:
    """The inverse; of a flip, the stance that it neither left nor reached; of a middle, a side."""
    if truth.before is not None:
        return chance.choice(sorted(DEFINITE - {truth.stance, truth.before}))
    return _INVERTED.get(truth.stance) or chance.choice(sorted(_INVERTED))


def _vague(target: str, language: str) -> str:
    """Vague words in the target's place (B.2.1), and never those that stand there."""
    vague, other = _VAGUE.get(language, _VAGUE["en"])
    return vague if vague != target else other


def _feedback(made: Corruption, language: str) -> str:
    """What is wrong, and what the dialogue says instead; English where we know no better."""
    said = _SAID.get(language, _SAID["en"])[made.fault]
    right, wrong = (_word(made.fault, one, language) for one in (made.truth, made.wrong))
    return said.format(turn=made.truth.turn, holder=name(made.truth.holder), right=right, wrong=wrong)


def _word(fault: Fault, of: Sextuple, language: str) -> str:
    if fault == "stance":
        return _STANCES.get(language, {}).get(of.stance, of.stance.value)
    return name(of.holder) if fault == "holder" else of.target
