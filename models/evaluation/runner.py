"""Runs an engine freely over dialogues: the state it reads under is the system's own, never gold.

Folding is the tracker's, as in the stream. Dialogues go side by side, wave by wave (the k-th turn of each),
so that an engine sees batches; no turn is read before the one before it has settled.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from models import execution
from models.datasets.dialogue import Dialogue, LabelledTurn
from models.evaluation.prediction import PredictedTurn, Prediction
from models.reader import Engine, ExplainRequest, ObserveRequest
from tracker import targets
from tracker.conversation import (
    Admitted,
    Conversation,
    Folded,
    Header,
    Rules,
    admitted,
    explained,
    folded,
    state_before,
)
from tracker.policy import Policy
from tracker.records import EPOCH, CreateTurn
from tracker.settlement import settled
from tracker.stances import TransitionKind

TENANT, RUN = "default", "eval"
BATCH = 64  # requests a call: the engine batches these by its own budget

Progress = Callable[[int], None]  # turns read since the last call


@dataclass(slots=True)
class _Play:
    """A dialogue on its way, and what was said of it so far."""

    dialogue: Dialogue
    conversation: Conversation
    said: list[PredictedTurn] = field(default_factory=list)


@dataclass(slots=True)
class _Step:
    """A play's part of a wave; no request where the policy exempts the holder."""

    play: _Play
    turn: LabelledTurn
    admission: Admitted
    request: ObserveRequest | None
    fold: Folded | None = None


def run(
    dialogues: Iterable[Dialogue],
    engine: Engine,
    policy: Policy | None = None,
    *,
    policies: Mapping[str, Policy] | None = None,
    batch: int = BATCH,
    progress: Progress = lambda turns: None,
) -> list[Prediction]:
    """One prediction a dialogue, in order; `policies` by language, of readers that have one of their own.

    Raises ValueError for a dialogue without proposition, WrongAnswer, and what the engine raises.
    """
    rules = Rules(policy=policy or Policy(), policies=policies or {})
    plays = [_opened(dialogue) for dialogue in dialogues]
    for wave in range(max((len(play.dialogue.turns) for play in plays), default=0)):
        going = [play for play in plays if wave < len(play.dialogue.turns)]
        for start in range(0, len(going), batch):
            part = [_step(play, play.dialogue.turns[wave], rules) for play in going[start : start + batch]]
            _read(part, engine, rules)
            progress(len(part))
    return [Prediction(play.dialogue.id, tuple(play.said)) for play in plays]


def _opened(dialogue: Dialogue) -> _Play:
    if not dialogue.proposition:
        raise ValueError(f"dialogue {dialogue.id} has no proposition to take a stance on")
    targeted = targets.first(TENANT, dialogue.id, (dialogue.proposition,))
    return _Play(dialogue, Conversation(TENANT, RUN, dialogue.id, Header(targets=targeted)))


def _step(play: _Play, turn: LabelledTurn, rules: Rules) -> _Step:
    record = CreateTurn(
        conversation=play.dialogue.id,
        # Dialogues carry no times; one after the other is all that the fold asks of them.
        sent_at=EPOCH + dt.timedelta(seconds=len(play.said)),
        turn=str(turn.index),
        holder=turn.speaker,
        text=turn.text,
        reply_to=None if turn.reply_to is None else str(turn.reply_to),
        language=play.dialogue.language,
        media=turn.media,
    )
    admission = admitted(play.conversation, record, None, rules)
    return _Step(play, turn, admission, _request(play.conversation, admission, turn.speaker))


def _request(conversation: Conversation, admission: Admitted, holder: str) -> ObserveRequest | None:
    if admission.turn is None or not admission.targets:
        return None
    target = admission.targets[0]
    return ObserveRequest(
        conversation.name,
        admission.turn,
        0,
        target.id,
        target.proposition,
        state_before(conversation, holder, target.id).stance,
        conversation.window,
    )


def _read(steps: Sequence[_Step], engine: Engine, rules: Rules) -> None:
    """A wave: one call to observe, one to explain what flipped, then every conversation settles."""
    asked = [(step, step.request) for step in steps if step.request is not None]
    observations = execution.observe(engine, [request for _, request in asked]) if asked else []
    for (step, _), observation in zip(asked, observations, strict=True):
        step.fold = folded(step.play.conversation, step.admission, [observation], rules)[0]
    _explain(steps, engine, rules)
    for step in steps:
        folds = [step.fold] if step.fold else []
        step.play.said.append(_said(step))
        outcome = settled(step.play.conversation, step.admission, folds, rules)
        step.play.conversation = outcome.conversation


def _explain(steps: Sequence[_Step], engine: Engine, rules: Rules) -> None:
    flipped = [
        (step, step.fold, ExplainRequest(step.request, step.fold.observation, step.fold.after.stance))
        for step in steps
        if step.fold and step.request and step.fold.transition.kind is TransitionKind.FLIP
    ]
    if not flipped:
        return
    explanations = execution.explain(engine, [request for _, _, request in flipped])
    for (step, fold, _), explanation in zip(flipped, explanations, strict=True):
        step.fold = explained(step.play.conversation, fold, explanation, rules)


def _said(step: _Step) -> PredictedTurn:
    fold, turn = step.fold, step.turn
    if fold is None:
        target = step.play.conversation.header.targets[0].id
        kept = state_before(step.play.conversation, turn.speaker, target).stance
        return PredictedTurn(index=turn.index, holder=turn.speaker, before=kept, stance=kept)
    why = fold.explanation
    return PredictedTurn(
        index=turn.index,
        holder=turn.speaker,
        before=fold.before.stance,
        stance=fold.after.stance,
        expressed=fold.observation.expressed,
        emotion=fold.observation.emotion,
        sentiment=fold.observation.sentiment,
        trigger=why.trigger.kind if why else None,
        trigger_turns=tuple(int(turn) for turn in why.trigger.turns) if why else (),
        rationale=why.rationale if why else None,
    )
