"""What a critic says of each fault of a draft, in the dialogue's language; English where we know no better.

Faults are those of StanceFlip's Appendix B.2.1; `mover` is a trigger that another participant is given.
"""

from typing import Literal

from tracker.stances import Stance

Fault = Literal["holder", "stance", "target", "mover"]

_VAGUE = {"en": ("something", "this"), "zh": ("某件事", "这个"), "es": ("algo", "esto")}

_VAGUE_REASONS = {
    "en": "{holder} sees {vague} differently now.",
    "zh": "{holder}现在对{vague}有了不同的看法。",
    "es": "{holder} ahora ve {vague} de otra manera.",
}

_SAID: dict[str, dict[Fault, str]] = {
    "en": {
        "holder": "The holder is wrong: turn {turn} was written by {right}, not by {wrong}.",
        "stance": "The stance is wrong: after turn {turn}, {holder}'s position is {right}, not {wrong}.",
        "target": "The target is too vague: “{wrong}” names no question. It is: {right}",
        "mover": "The cause is wrong: what moved {holder} stands in turn {right}, not in turn {wrong}.",
    },
    "zh": {
        "holder": "持有者不对：第{turn}条是{right}说的，不是{wrong}。",
        "stance": "立场不对：在第{turn}条之后，{holder}的立场是{right}，不是{wrong}。",
        "target": "目标太含糊：“{wrong}”没有说明争论的是什么。应当是：{right}",
        "mover": "原因不对：让{holder}改变立场的是第{right}条，不是第{wrong}条。",
    },
    "es": {
        "holder": "El titular es incorrecto: el turno {turn} lo escribió {right}, no {wrong}.",
        "stance": "La postura es incorrecta: tras el turno {turn}, {holder} está {right}, no {wrong}.",
        "target": "El objetivo es demasiado vago: «{wrong}» no nombra ninguna cuestión. Es: {right}",
        "mover": "La causa es incorrecta: a {holder} lo movió el turno {right}, no el turno {wrong}.",
    },
}

_STANCES: dict[str, dict[Stance, str]] = {
    "zh": {Stance.SUPPORT: "支持", Stance.NEUTRAL: "中立", Stance.OPPOSE: "反对"},
    "es": {Stance.SUPPORT: "a favor", Stance.NEUTRAL: "en una posición neutral", Stance.OPPOSE: "en contra"},
}


def feedback(fault: Fault, language: str, **words: object) -> str:
    """What is wrong, and what is right instead; `words` are holder, turn, right and wrong."""
    return _SAID.get(language, _SAID["en"])[fault].format(**words)


def position(stance: Stance, language: str) -> str:
    """A stance, as feedback calls it."""
    return _STANCES.get(language, {}).get(stance, stance.value)


def vague(target: str, language: str) -> str:
    """Vague words in the target's place, and never those that stand there."""
    words, other = _VAGUE.get(language, _VAGUE["en"])
    return words if words != target else other


def vague_reason(holder: str, words: str, language: str) -> str:
    """An explanation that says nothing but that somebody changed."""
    return _VAGUE_REASONS.get(language, _VAGUE_REASONS["en"]).format(holder=holder, vague=words)
