"""From a labelled dialogue to what an engine is asked and what it should have said.

A request is built as the stream builds it, but beside what annotators say where the stream has what it read:
the gold state before the turn, the window of recent turns with the sides that they take, and nothing else; a
dialogue's register and domain stay behind, since they leak labels.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from models.datasets.dialogue import Dialogue, LabelledTurn, shown_turn
from models.reader import ObserveRequest
from tracker import keys
from tracker.context import Window, WindowTurn, extended
from tracker.stances import DEFINITE, Emotion, Expressed, Sentiment, Stance, TriggerKind

TENANT = "default"


class Labels(msgspec.Struct, frozen=True, kw_only=True):
    """What an annotator said of a turn; None where nothing was said. `after` is the state after it."""

    expressed: Expressed | None = None
    after: Stance | None = None
    emotion: Emotion | None = None
    sentiment: Sentiment | None = None
    relevance: float | None = None  # 1: it expresses a position on the target; 0: it is about another
    trigger: TriggerKind | None = None
    sources: frozenset[str] = frozenset()  # the turns that carry the trigger
    sides: Mapping[str, Expressed] = {}  # what the turns so far express, this one's too, by turn


class Example(msgspec.Struct, frozen=True):
    """A request, and what its answer should be."""

    request: ObserveRequest
    labels: Labels


def examples(dialogues: Iterable[Dialogue]) -> list[Example]:
    """One example a turn, in order, each under the gold state."""
    return [example for dialogue in dialogues for example in _of(dialogue)]


def mover(request: ObserveRequest, sources: Iterable[str]) -> WindowTurn | None:
    """The first trigger turn that the request still shows."""
    shown = {turn.turn: turn for turn in (*request.window, request.turn)}
    return next((shown[source] for source in sources if source in shown), None)


def _of(dialogue: Dialogue) -> Iterator[Example]:
    proposition = dialogue.proposition or ""
    target = keys.target_id(TENANT, dialogue.id, proposition)
    states: dict[str, Stance] = {}
    window: Window = ()
    sides: dict[str, Expressed] = {}
    for turn in dialogue.turns:
        shown = shown_turn(turn, dialogue.language)
        before = states.get(turn.speaker, Stance.UNKNOWN)
        request = ObserveRequest(dialogue.id, shown, 0, target, proposition, before, window)
        if turn.expressed is not None:
            sides[shown.turn] = turn.expressed
        took = {target: turn.expressed} if turn.expressed not in {None, Expressed.NONE} else {}
        yield Example(request, _labels(turn, dict(sides)))
        if turn.stance in DEFINITE:
            states[turn.speaker] = turn.stance
        window = extended(window, msgspec.structs.replace(shown, sides=took))


def _labels(turn: LabelledTurn, sides: Mapping[str, Expressed]) -> Labels:
    speaks = turn.expressed not in {None, Expressed.NONE}
    return Labels(
        expressed=turn.expressed,
        after=turn.stance,
        emotion=turn.emotion,
        sentiment=turn.sentiment,
        relevance=1.0 if speaks else None,
        trigger=turn.trigger if turn.flip else None,
        sources=frozenset(map(str, turn.trigger_turns)) if turn.flip else frozenset(),
        sides=sides,
    )
