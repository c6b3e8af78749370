"""Why a flip happened: the kind of trigger, the turn that carried it, and one written sentence.

Kind and turn are scored like any label. For the turn, the model's choice among the turns shown is weighed by
where triggers stand in chats, since a small model names a letter with little conviction.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

import torch

from models.language.labels import LETTERS, TRIGGER, Tree, source
from models.language.prompts import explain_body, lettered
from models.language.scoring import Read, Scorer, Scores, corrected
from models.language.writing import write
from models.reader import ExplainRequest, ObserveRequest
from tracker.context import WINDOW_TURNS, WindowTurn
from tracker.observations import Evidence, Explanation, Trigger
from tracker.stances import Stance, TriggerKind

REASON_CUE = "Reason:"
REASON_TOKENS = 48
SENTENCE = re.compile(r".+?[.!?。！？](?=\s|$)|.+", re.DOTALL)
DIGITS = 6
SHOWN_TURNS = WINDOW_TURNS + 1  # the window and the new turn

# Where the first trigger turn of the benchmark's English training flips stands: the turn replied to 64 %, the
# flipping turn 16 %, another's 17 % and the holder's own 3 %, both falling with distance.
REPLY, SELF, OTHER, OWN = 0.64, 0.16, 0.17, 0.03


class Attribution:
    """Explains flips with a scorer's model; `correct` takes label priors out first."""

    def __init__(self, scorer: Scorer, *, correct: bool) -> None:
        self._scorer, self._correct = scorer, correct
        self._backbone = scorer.backbone
        self._turns = source(SHOWN_TURNS)
        self._tree = Tree((TRIGGER, self._turns), self._backbone.encode)

    def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """One explanation a request, in order; the requests fit the budget already."""
        bodies = [explain_body(request.observed, request.after) for request in requests]
        done: dict[int, Explanation] = {}
        for read in self._scorer.read(bodies, self._tree):
            batch = self._batch([requests[place] for place in read.places], read)
            done.update(zip(read.places, batch, strict=True))
        return [done[place] for place in range(len(requests))]

    def _batch(self, requests: Sequence[ExplainRequest], read: Read) -> Iterator[Explanation]:
        prior = self._prior if self._correct else {}
        kinds = corrected(read.scores[TRIGGER.cue], prior.get(TRIGGER.cue))
        chosen = corrected(read.scores[self._turns.cue], prior.get(self._turns.cue))
        weights = torch.tensor([_weights(request.observed) for request in requests], device=chosen.device)
        labels = [list(TRIGGER.words)[index] for index in kinds.argmax(dim=-1).tolist()]
        letters = [LETTERS[index] for index in (chosen * weights).argmax(dim=-1).tolist()]
        reasons = self._reasons(read, labels, letters)
        for row, request in enumerate(requests):
            mover = lettered(request.observed)[letters[row]]
            confidence = round(kinds[row].max().item(), DIGITS)
            trigger = Trigger(TriggerKind(labels[row]), (mover.turn,), (mover.holder,), confidence)
            yield _explanation(request, trigger, reasons[row] or _plain_reason(request, mover))

    def _reasons(self, read: Read, labels: Sequence[str], letters: Sequence[str]) -> list[str]:
        """A sentence a row, written behind the answers that were chosen."""
        rows = [
            self._backbone.encode(f"{TRIGGER.answer(label)}\n{self._turns.answer(letter)}\n{REASON_CUE}")
            for label, letter in zip(labels, letters, strict=True)
        ]
        written = write(self._backbone.model, read.context, rows, self._backbone.stops, REASON_TOKENS)
        return [_sentence(self._backbone.decode(tokens)) for tokens in written]

    @cached_property
    def _prior(self) -> Scores:
        """What kinds and letters get where no turn says anything."""
        window = tuple(WindowTurn(str(place), "B", "N/A") for place in range(SHOWN_TURNS - 1))
        observed = ObserveRequest("", WindowTurn("", "A", "N/A"), 0, "", "N/A", Stance.SUPPORT, window)
        return self._scorer.prior([explain_body(observed, Stance.OPPOSE)], self._tree)


def _weights(request: ObserveRequest) -> list[float]:
    """How often a trigger stands where each shown turn stands, oldest first, the new turn last; 0 for no turn."""
    behind = len(request.window)
    shown = [_weight(request, turn, behind - place) for place, turn in enumerate(request.window)]
    return [*shown, SELF] + [0.0] * (SHOWN_TURNS - behind - 1)


def _weight(request: ObserveRequest, turn: WindowTurn, distance: int) -> float:
    if turn == request.reply:
        return REPLY
    return (OWN if turn.holder == request.turn.holder else OTHER) * 0.5 ** (distance - 1)


def _explanation(request: ExplainRequest, trigger: Trigger, rationale: str) -> Explanation:
    turn = request.observed.turn
    modalities = ["text"] * bool(turn.text) + [item.modality.value for item in turn.media if item.description]
    return Explanation(
        turn=turn.turn,
        target=request.observed.target,
        trigger=trigger,
        evidence=tuple(Evidence(turn.turn, modality) for modality in dict.fromkeys(modalities or ["text"])),
        rationale=rationale,
    )


def _sentence(text: str) -> str:
    """The first sentence of what was written."""
    first = text.strip().split("\n")[0].strip()
    found = SENTENCE.match(first)
    return found[0] if found else ""


def _plain_reason(request: ExplainRequest, mover: WindowTurn) -> str:
    """What is known without a model that writes."""
    observed = request.observed
    return f"{observed.turn.holder} moved from {observed.state} to {request.after} after turn {mover.turn}."
