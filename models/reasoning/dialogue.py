"""Thought-of-Stance over a whole dialogue, as StanceFlip runs it (sections 4.1, 4.2), for comparison.

Every role is shown the full history up to its turn, the Cartographer all of the dialogue. A history that is
longer than the model's context loses its oldest turns, but for the one replied to. The Analyst says the state
after a turn, the likeliest label counts, and "unknown" keeps the state before. Trigger and rationale are made
for flips alone, since our labels know no others; the paper writes a rationale for every turn.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import msgspec

from models.datasets.dialogue import Dialogue, shown_turn
from models.evaluation import outputs
from models.evaluation.prediction import PredictedTurn, Prediction
from models.evaluation.stanceflip import Flip, Sextuple
from models.language.generative import backbone_from
from models.language.local_chat import LocalChat
from models.language.settings import ReaderSettings
from models.reader import ObserveRequest
from models.reasoning.cartographer import Cartographer
from models.reasoning.prompts import INSTRUCTIONS, Change, Draft, Objection
from models.reasoning.roles import Roles
from models.reasoning.room import whole
from tracker.context import WindowTurn
from tracker.policy import Policy, Threshold
from tracker.stances import DEFINITE, Stance

Progress = Callable[[int], None]  # turns read since the last call

LIKELIEST = Policy(name="likeliest", establish=Threshold(0.0), flip=Threshold(0.0))  # what the fold here does


class Reading(msgspec.Struct, frozen=True):
    """What was read of a dialogue, and the proposition it was read for."""

    proposition: str
    prediction: Prediction

    def sextuples(self) -> tuple[Sextuple, ...]:
        """One a turn, as StanceFlip's subtask I has them."""
        return tuple(_sextuple(self.proposition, turn) for turn in self.prediction.turns)

    def flips(self) -> tuple[Flip, ...]:
        """StanceFlip's subtask II."""
        return tuple(
            outputs.flip(turn.before, turn.stance, turn.trigger)
            for turn in self.prediction.turns
            if turn.flip
        )


class WholeDialogue:
    """Reads dialogues with roles that are shown all of them."""

    def __init__(self, roles: Roles) -> None:
        self._roles = roles
        self._cartographer = Cartographer(roles.chat, roles.room)

    def run(self, dialogues: Iterable[Dialogue], progress: Progress = lambda turns: None) -> list[Prediction]:
        """One prediction a dialogue, in order."""
        return [self.read(dialogue, progress).prediction for dialogue in dialogues]

    def read(self, dialogue: Dialogue, progress: Progress = lambda turns: None) -> Reading:
        """A dialogue toward its own proposition, else the Cartographer's.

        Raises ValueError where there is neither.
        """
        turns = tuple(shown_turn(turn, dialogue.language) for turn in dialogue.turns)
        proposition = dialogue.proposition or self._cartographer.propose(turns)
        if not proposition:
            raise ValueError(f"dialogue {dialogue.id} has no proposition to take a stance on")
        changes = self.changes(requests(dialogue.id, proposition, turns), progress)
        flips = [change for change in changes if _flips(change)]
        drafts = iter(self._verified(flips))
        said = [_said(change, next(drafts) if _flips(change) else None) for change in changes]
        return Reading(proposition, Prediction(dialogue.id, tuple(said)))

    def changes(
        self, asked: Sequence[ObserveRequest], progress: Progress = lambda turns: None
    ) -> list[Change]:
        """Psychologist over all turns, then the Discourse Analyst over one after the other."""
        shown = [self._roles.room.fitted(request) for request in asked]
        states: defaultdict[str, Stance] = defaultdict(lambda: Stance.UNKNOWN)
        changes: list[Change] = []
        for request, felt in zip(shown, self._roles.feelings(shown), strict=True):
            before = states[request.turn.holder]
            known = msgspec.structs.replace(request, state=before)
            (stance,) = self._roles.stances([known], [felt])
            states[request.turn.holder] = after = stance if stance in DEFINITE else before
            changes.append(Change(known, felt, after))
            progress(1)
        return changes

    def _verified(self, changes: Sequence[Change]) -> list[Draft]:
        """The Synthesizer's drafts, each refined once where the Critic sent it back."""
        drafts = self._roles.drafts(changes)
        reviews = self._roles.reviews(changes, drafts)
        failed = [place for place, review in enumerate(reviews) if not review.verdict.passed]
        objections = [Objection(drafts[place], reviews[place].feedback) for place in failed]
        better = self._roles.drafts([changes[place] for place in failed], objections)
        for place, draft in zip(failed, better, strict=True):
            drafts[place] = draft
        return drafts


def from_settings(settings: ReaderSettings) -> WholeDialogue:
    """On the backbone of engine `generative`. Raises ValueError where its context is too short."""
    chat = LocalChat(backbone_from(settings), settings.batch_tokens)
    return WholeDialogue(Roles(chat, whole(chat.room(INSTRUCTIONS), chat.count)))


def requests(dialogue: str, proposition: str, turns: Sequence[WindowTurn]) -> list[ObserveRequest]:
    """What is asked of every turn: all that stands before it is its window; no state is known yet."""
    return [
        ObserveRequest(dialogue, turn, 0, "", proposition, Stance.UNKNOWN, tuple(turns[:place]))
        for place, turn in enumerate(turns)
    ]


def _flips(change: Change) -> bool:
    return change.request.state in DEFINITE and change.after is not change.request.state


def _said(change: Change, draft: Draft | None) -> PredictedTurn:
    """`expressed` stays out: the Analyst says where a holder stands, not what the turn expresses."""
    turn = change.request.turn
    return PredictedTurn(
        index=int(turn.turn),
        holder=turn.holder,
        before=change.request.state,
        stance=change.after,
        emotion=change.feelings.emotion,
        sentiment=change.feelings.sentiment,
        trigger=draft.trigger.kind if draft else None,
        trigger_turns=tuple(map(int, draft.trigger.turns)) if draft else (),
        rationale=draft.rationale if draft else None,
    )


def _sextuple(proposition: str, turn: PredictedTurn) -> Sextuple:
    labels = {
        name: str(getattr(turn, name) or "") for name in ("emotion", "sentiment", "stance", "rationale")
    }
    return outputs.sextuple(
        {"holder": turn.holder, "target": proposition, **labels}, turn=turn.index, flip=turn.flip
    )
