"""Why a flip happened: the kind of trigger, the turn that carried it, and one written sentence.

Kind and turn are scored like any label. For the turn, the model's choice among the turns shown is weighed by
where triggers stand in chats, since a small model names a letter with little conviction.
"""

import re
from collections.abc import Sequence

import torch
from torch import Tensor

from models.language.labels import TRIGGER, Slot, Tree, source
from models.language.prefix import Context, extend
from models.language.prompts import explain_body, lettered, quoted
from models.language.scoring import Read, Scorer, Scores, corrected
from models.reader import ExplainRequest, ObserveRequest
from tracker.context import WindowTurn
from tracker.observations import Evidence, Explanation, Trigger
from tracker.stances import Stance, TriggerKind

REASON_CUE = "Reason:"
REASON_TOKENS = 48
SENTENCE = re.compile(r"(.+?[.!?。！？])(?:\s|$)")

# Shares of trigger turns over the benchmark's English training flips: the turn replied to 64 %, the flipping turn
# itself 16 %, another's 17 % and the holder's own 3 %, both falling with distance.
REPLY, SELF, OTHER, OWN = 0.64, 0.16, 0.17, 0.03


class Attribution:
    """Explains flips with the scorer's model."""

    def __init__(self, scorer: Scorer, *, correct: bool) -> None:
        self._scorer, self._correct = scorer, correct
        self._backbone = scorer.backbone
        self._reason = self._backbone.encode(REASON_CUE)
        self._trees: dict[int, Tree] = {}
        self._priors: dict[int, Scores] = {}

    def explain(self, requests: Sequence[ExplainRequest], fitted: Sequence[ObserveRequest]) -> list[Explanation]:
        """One explanation a request, in order; `fitted` are the observed requests as the prompt may show them."""
        ...
