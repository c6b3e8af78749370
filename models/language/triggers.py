"""Why a flip happened: the kind of trigger, the turn that carried it, and one written sentence.

Kind and turn are scored like any label. For the turn, the model's choice among the turns shown is weighed by
where triggers stand in chats, since a small model names a letter with little conviction.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property

import torch

from models.language.labels import LETTERS, TRIGGER, Tree, source
from models.language.prompts import explain_body, lettered, reason_body
from models.language.scoring import Read, Scorer, Scores, corrected
from models.language.writing import Writer
from models.reader import ExplainRequest, ObserveRequest
from tracker.context import WINDOW_TURNS, WindowTurn
from tracker.observations import Evidence, Explanation, Trigger
from tracker.stances import Stance, TriggerKind

DIGITS = 6
SHOWN_TURNS = WINDOW_TURNS + 1  # the window and the new turn
SOURCE = source(SHOWN_TURNS)
SLOTS = (TRIGGER, SOURCE)

# Where the first trigger turn of the benchmark's English training flips stands: the turn replied to 64 %, the
# flipping turn 16 %, another's 17 % and the holder's own 3 %, both falling with distance.
REPLY, SELF, OTHER, OWN = 0.64, 0.16, 0.17, 0.03


class Attribution:
    """Explains flips with a scorer's model; `correct` takes label priors out first."""

    def __init__(self, scorer: Scorer, writer: Writer, *, correct: bool) -> None:
        self._scorer, self._writer, self._correct = scorer, writer, correct
        self._tree = Tree(SLOTS, scorer.backbone.encode)

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
        chosen = corrected(read.scores[SOURCE.cue], prior.get(SOURCE.cue))
        weights = torch.tensor([weights_of(request.observed) for request in requests], device=chosen.device)
        labels = [list(TRIGGER.words)[index] for index in kinds.argmax(dim=-1).tolist()]
        letters = [LETTERS[index] for index in (chosen * weights).argmax(dim=-1).tolist()]
        movers = [
            lettered(request.observed)[letter] for request, letter in zip(requests, letters, strict=True)
        ]
        words = [TRIGGER.words[label] for label in labels]
        reasons = self._writer.write([*map(reason_body, requests, movers, words)])
        for row, (request, mover) in enumerate(zip(requests, movers, strict=True)):
            confidence = round(kinds[row].max().item(), DIGITS)
            trigger = Trigger(TriggerKind(labels[row]), (mover.turn,), (mover.holder,), confidence)
            reason = reasons[row] or plain_reason(request.observed, request.after, mover.turn)
            yield explained(request.observed, trigger, reason)

    @cached_property
    def _prior(self) -> Scores:
        """What kinds and letters get where no turn says anything."""
        window = tuple(WindowTurn(str(place), "B", "N/A") for place in range(SHOWN_TURNS - 1))
        observed = ObserveRequest("", WindowTurn("", "A", "N/A"), 0, "", "N/A", Stance.SUPPORT, window)
        return self._scorer.prior([explain_body(observed, Stance.OPPOSE)], self._tree)


def weights_of(request: ObserveRequest) -> list[float]:
    """How often a trigger stands where each turn does: the window, the new turn, 0 for no turn."""
    behind = len(request.window)
    shown = [_weight(request, turn, behind - place) for place, turn in enumerate(request.window)]
    return [*shown, SELF] + [0.0] * (SHOWN_TURNS - behind - 1)


def _weight(request: ObserveRequest, turn: WindowTurn, distance: int) -> float:
    if turn == request.reply:
        return REPLY
    return (OWN if turn.holder == request.turn.holder else OTHER) * 0.5 ** (distance - 1)


def explained(request: ObserveRequest, trigger: Trigger, rationale: str) -> Explanation:
    """An explanation whose evidence is all that the new turn shows in."""
    turn = request.turn
    modalities = ["text"] * bool(turn.text) + [item.modality.value for item in turn.media if item.description]
    return Explanation(
        turn=turn.turn,
        target=request.target,
        trigger=trigger,
        evidence=tuple(Evidence(turn.turn, modality) for modality in dict.fromkeys(modalities or ["text"])),
        rationale=rationale,
    )


def plain_reason(request: ObserveRequest, after: Stance, mover: str) -> str:
    """What is known without a model that writes; `mover` is the trigger turn's id."""
    return f"{request.turn.holder} moved from {request.state} to {after} after turn {mover}."
