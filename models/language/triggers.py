"""Why a flip happened: the kind of trigger, the turn that carried it, and one written sentence.

Kind and turn are scored like any label. For the turn, the model's choice among the turns shown is weighed by
where triggers stand in chats, since a small model names a letter with little conviction.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

import torch

from models.language.labels import TRIGGER, Tree, source
from models.language.prompts import explain_body, lettered
from models.language.scoring import Read, Scorer, Scores, corrected
from models.language.writing import write
from models.reader import ExplainRequest, ObserveRequest
from tracker.context import WindowTurn
from tracker.observations import Evidence, Explanation, Trigger
from tracker.records import Modality
from tracker.stances import Stance, TriggerKind

REASON_CUE = "Reason:"
REASON_TOKENS = 48
SENTENCE = re.compile(r".+?[.!?。！？](?=\s|$)|.+", re.DOTALL)
DIGITS = 6

# Where the first trigger turn of the benchmark's English training flips stands: the turn replied to 64 %, the
# flipping turn 16 %, another's 17 % and the holder's own 3 %, both falling with distance.
REPLY, SELF, OTHER, OWN = 0.64, 0.16, 0.17, 0.03


class Attribution:
    """Explains flips with a scorer's model; `correct` takes label priors out first."""

    def __init__(self, scorer: Scorer, *, correct: bool) -> None:
        self._scorer, self._correct = scorer, correct
        self._backbone = scorer.backbone
        self._trees: dict[int, Tree] = {}
        self._priors: dict[int, Scores] = {}

    def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """One explanation a request, in order; the requests fit the budget already."""
        by_turns: dict[int, list[int]] = defaultdict(list)
        for place, request in enumerate(requests):
            by_turns[len(lettered(request.observed))].append(place)
        done: dict[int, Explanation] = {}
        for turns, places in by_turns.items():
            group = [requests[place] for place in places]
            done.update(zip(places, self._alike(turns, group), strict=True))
        return [done[place] for place in range(len(requests))]

    def _alike(self, turns: int, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """Explanations of flips that show equally many turns, and so share a tree."""
        done: dict[int, Explanation] = {}
        for read in self._scorer.read(
            [explain_body(request.observed, request.after) for request in requests], self._tree(turns)
        ):
            batch = [requests[place] for place in read.places]
            done.update(zip(read.places, self._batch(turns, batch, read), strict=True))
        return [done[place] for place in range(len(requests))]

    def _batch(self, turns: int, requests: Sequence[ExplainRequest], read: Read) -> Iterator[Explanation]:
        kind_slot, turn_slot = self._tree(turns).slots
        prior = self._prior(turns) if self._correct else {}
        kinds = corrected(read.scores[kind_slot.cue], prior.get(kind_slot.cue))
        chosen = corrected(read.scores[turn_slot.cue], prior.get(turn_slot.cue))
        weights = torch.tensor([_weights(request.observed) for request in requests], device=chosen.device)
        letters = [list(turn_slot.words)[index] for index in (chosen * weights).argmax(dim=-1).tolist()]
        labels = [list(kind_slot.words)[index] for index in kinds.argmax(dim=-1).tolist()]
        reasons = self._reasons(
            read,
            [
                f"{kind_slot.answer(label)}\n{turn_slot.answer(letter)}\n{REASON_CUE}"
                for label, letter in zip(labels, letters, strict=True)
            ],
        )
        for row, request in enumerate(requests):
            mover = lettered(request.observed)[letters[row]]
            confidence = round(kinds[row].max().item(), DIGITS)
            trigger = Trigger(TriggerKind(labels[row]), (mover.turn,), (mover.holder,), confidence)
            yield _explanation(request, trigger, reasons[row] or _plain_reason(request, mover))

    def _reasons(self, read: Read, cues: Sequence[str]) -> list[str]:
        """A sentence a row, written behind the answers that were scored."""
        rows = [self._backbone.encode(cue) for cue in cues]
        model, stops = self._backbone.model, self._backbone.stops
        written = write(model, read.context, rows, stops, REASON_TOKENS)
        return [_sentence(self._backbone.decode(tokens)) for tokens in written]

    def _tree(self, turns: int) -> Tree:
        if turns not in self._trees:
            self._trees[turns] = Tree((TRIGGER, source(turns)), self._backbone.encode)
        return self._trees[turns]

    def _prior(self, turns: int) -> Scores:
        """What kinds and letters get where no turn says anything."""
        if turns not in self._priors:
            window = tuple(WindowTurn(str(place), "B", "N/A") for place in range(turns - 1))
            observed = ObserveRequest("", WindowTurn("", "A", "N/A"), 0, "", "N/A", Stance.SUPPORT, window)
            body = explain_body(observed, Stance.OPPOSE)
            self._priors[turns] = self._scorer.prior([body], self._tree(turns))
        return self._priors[turns]


def _weights(request: ObserveRequest) -> list[float]:
    """How often a trigger stands where each shown turn stands, oldest first, the new turn last."""
    return [
        _weight(request, turn, distance)
        for turn, distance in zip(request.window, range(len(request.window), 0, -1), strict=True)
    ] + [SELF]


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
