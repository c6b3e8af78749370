"""Drafts of explanations as the Critic is shown them: the true one of a labelled turn, and a corrupted one.

A fault fails one criterion (StanceFlip 4.2, B.2.1). `target`: vague words in the explanation's place.
`stance`: another outcome. The holder is the new turn's author and cannot be wrong in a draft; what can be is
who moved them, `mover`: another participant's turn. Swapping the holder itself is taught over whole dialogues
alone, by CRITICISE and CORRECT of `models.training.corruption`.
"""

import random
from collections.abc import Callable, Iterator, Mapping

import msgspec

from models.datasets.dialogue import Dialogue, LabelledTurn
from models.language.budget import name
from models.reasoning import answers, prompts
from models.reasoning.prompts import Change, Draft, Feelings
from models.reasoning.room import Room
from models.training.corruption import other
from models.training.examples import Example, examples, mover
from models.training.feedback import Fault, feedback, position, vague, vague_reason
from tracker.context import WindowTurn
from tracker.observations import Trigger
from tracker.stances import DEFINITE, Expressed, TriggerKind

CRITERION: Mapping[Fault, str] = {"target": "target", "stance": "stance", "mover": "evidence"}


class Truth(msgspec.Struct, frozen=True):
    """A turn under a definite state, as it was labelled: what changed, and the draft that is right.

    Where nobody moved, the draft's words are the label's and its trigger only what a wrong draft would name.
    """

    change: Change
    draft: Draft
    expressed: Expressed | None
    sources: frozenset[str]  # every turn that carried the trigger

    @property
    def flips(self) -> bool:
        """Whether anybody moved."""
        return self.change.after is not self.change.request.state


class Flawed(msgspec.Struct, frozen=True):
    """A change and its draft, wrong in one thing, and what a critic says of it."""

    fault: Fault
    change: Change
    draft: Draft
    said: str


def truths(dialogue: Dialogue, room: Room, chance: random.Random) -> Iterator[Truth]:
    """Those of the turns that are labelled whole."""
    for example, turn in zip(examples([dialogue]), dialogue.turns, strict=True):
        change = _change(example, room)
        trigger = change and _trigger(change, turn, chance)
        reason = answers.rationale(turn.rationale or "")
        if change and trigger and reason:
            labels = example.labels
            yield Truth(change, Draft(trigger, reason), labels.expressed, labels.sources)


def corrupted(truth: Truth, chance: random.Random) -> Flawed:
    """Wrong in one thing, by chance; what moved nobody can only be wrong in its stance."""
    faults: list[Fault] = ["target", "stance"] if truth.flips else ["stance"]
    if truth.flips and _strangers(truth):
        faults.append("mover")
    return _CORRUPTIONS[chance.choice(faults)](truth, chance)


def numbers(change: Change) -> dict[str, str]:
    """The number that each turn shown has in a prompt, by its id."""
    return {turn.turn: number for number, turn in prompts.numbered(change.request).items()}


def _change(example: Example, room: Room) -> Change | None:
    request, labels = example.request, example.labels
    if request.state not in DEFINITE or labels.after not in DEFINITE:
        return None
    if labels.emotion is None or labels.sentiment is None:
        return None
    return Change(room.fitted(request), Feelings(labels.emotion, labels.sentiment), labels.after)


def _trigger(change: Change, turn: LabelledTurn, chance: random.Random) -> Trigger | None:
    """What moved the author, as far as it is shown; where nothing did, what might be taken for it."""
    if change.after is change.request.state:
        likely = change.request.reply or change.request.turn
        return _to(likely, chance.choice(list(TriggerKind)))
    moved_by = mover(change.request, map(str, turn.trigger_turns))
    return _to(moved_by, turn.trigger) if moved_by and turn.trigger else None


def _to(source: WindowTurn, kind: TriggerKind) -> Trigger:
    return Trigger(kind, (source.turn,), (source.holder,), 1.0)


def _strangers(truth: Truth) -> list[WindowTurn]:
    """The turns shown of which no label says that they moved the author, by others than who did."""
    request, (right,) = truth.change.request, truth.draft.trigger.holders
    return [
        turn
        for turn in (*request.window, request.turn)
        if turn.turn not in truth.sources and name(turn.holder) != name(right)
    ]


def _wrong_target(truth: Truth, chance: random.Random) -> Flawed:
    holder, proposition, language = _about(truth)
    words = vague(proposition, language)
    draft = Draft(truth.draft.trigger, vague_reason(holder, words, language))
    return Flawed("target", truth.change, draft, feedback("target", language, wrong=words, right=proposition))


def _wrong_stance(truth: Truth, chance: random.Random) -> Flawed:
    holder, _, language = _about(truth)
    change = truth.change
    wrong = other(change.after, change.request.state if truth.flips else None, chance)
    number = numbers(change)[change.request.turn.turn]
    right, said = position(change.after, language), position(wrong, language)
    words = feedback("stance", language, turn=number, holder=holder, right=right, wrong=said)
    return Flawed("stance", msgspec.structs.replace(change, after=wrong), truth.draft, words)


def _wrong_mover(truth: Truth, chance: random.Random) -> Flawed:
    holder, _, language = _about(truth)
    (turn,), (right,) = truth.draft.trigger.turns, truth.draft.trigger.holders
    stranger, shown = chance.choice(_strangers(truth)), numbers(truth.change)
    draft = Draft(
        _to(stranger, truth.draft.trigger.kind), truth.draft.rationale.replace(right, stranger.holder)
    )
    words = feedback("mover", language, holder=holder, right=shown[turn], wrong=shown[stranger.turn])
    return Flawed("mover", truth.change, draft, words)


_CORRUPTIONS: Mapping[Fault, Callable[[Truth, random.Random], Flawed]] = {
    "target": _wrong_target,
    "stance": _wrong_stance,
    "mover": _wrong_mover,
}


def _about(truth: Truth) -> tuple[str, str, str]:
    request = truth.change.request
    return name(request.turn.holder), request.proposition, request.turn.language or ""
