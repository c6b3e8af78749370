"""Dialogues that a tiny language model can learn by heart: one flip each, with a reason."""

import msgspec

from models.datasets.dialogue import Dialogue
from tests.models.training.talks import corpus

RATIONALE = "Tom counts."


def explained(count: int = 4, split: str = "train") -> list[Dialogue]:
    """The corpus, every flip with its rationale."""
    return [_told(one) for one in corpus(count, split)]


def _told(dialogue: Dialogue) -> Dialogue:
    told = [
        msgspec.structs.replace(turn, rationale=RATIONALE if turn.flip else None) for turn in dialogue.turns
    ]
    return msgspec.structs.replace(dialogue, turns=tuple(told))
