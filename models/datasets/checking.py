"""Whether a dialogue obeys the labelling guide (open/GUIDELINES.md): as the open dataset must."""

from collections.abc import Iterator

from models.datasets.dialogue import Dialogue, LabelledTurn
from models.datasets.files import PARTS
from tracker.stances import DEFINITE, Expressed, Stance

FEWEST_TURNS, MOST_TURNS = 3, 20
_UNSPACED = ("zh", "ja")  # their descriptions have no words to count
_LONGEST_DESCRIPTION = 40


def problems(dialogue: Dialogue) -> Iterator[str]:
    """What is wrong with a dialogue of the guide's form, a sentence each; nothing where it is right."""
    if not FEWEST_TURNS <= len(dialogue.turns) <= MOST_TURNS:
        yield f"{len(dialogue.turns)} turns"
    if dialogue.split not in PARTS:
        yield f"split {dialogue.split!r}"
    for field in ("id", "language", "domain", "register", "proposition"):
        if not getattr(dialogue, field):
            yield f"no {field}"
    states: dict[str, Stance] = {}
    for index, turn in enumerate(dialogue.turns):
        before = states.get(turn.speaker, Stance.UNKNOWN)
        found = (*_form(index, turn, dialogue.language), *_labels(index, turn, before))
        yield from (f"turn {index}: {problem}" for problem in found)
        states[turn.speaker] = turn.stance or before


def _form(index: int, turn: LabelledTurn, language: str) -> Iterator[str]:
    if turn.index != index:
        yield "wrong index"
    if turn.reply_to is not None and not 0 <= turn.reply_to < index:
        yield "answers no earlier turn"
    if not turn.text.strip() and not turn.media:
        yield "empty"
    for item in turn.media:
        words = len((item.description or "").split())
        if not item.description or (language not in _UNSPACED and not 2 <= words <= _LONGEST_DESCRIPTION):
            yield f"a media description of {words} words"


def _labels(index: int, turn: LabelledTurn, before: Stance) -> Iterator[str]:
    if None in (turn.emotion, turn.sentiment, turn.expressed, turn.stance, turn.flip):
        yield "a label is missing"
        return
    assert turn.stance is not None
    if turn.stance is Stance.UNKNOWN and before is not Stance.UNKNOWN:
        yield "a known stance became unknown"
    if turn.expressed not in _sayable(before, turn.stance):
        yield f"expressed {turn.expressed} where {before} became {turn.stance}"
    flipped = before in DEFINITE and turn.stance in DEFINITE and before is not turn.stance
    if turn.flip is not flipped:
        yield f"flip is {turn.flip} where {before} became {turn.stance}"
    yield from _trigger(index, turn, flipped)


def _sayable(before: Stance, after: Stance) -> set[str]:
    """What a turn may express of its holder: the new state where it changed, else that state or nothing."""
    if before is not after:
        return {after.value}
    return {Expressed.NONE.value} | ({after.value} if after in DEFINITE else set())


def _trigger(index: int, turn: LabelledTurn, flipped: bool) -> Iterator[str]:
    if not flipped:
        if turn.trigger or turn.trigger_turns:
            yield "a trigger without a flip"
        return
    if turn.trigger is None:
        yield "a flip without a trigger"
    if not turn.trigger_turns or any(not 0 <= cause <= index for cause in turn.trigger_turns):
        yield f"trigger turns {turn.trigger_turns}"
    if not turn.rationale:
        yield "a flip without a rationale"
