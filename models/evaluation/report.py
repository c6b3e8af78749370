"""The report: every system's figures with intervals, over all dialogues and by part; JSON is its form."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from models.datasets.dialogue import Dialogue
from models.evaluation import live, stanceflip
from models.evaluation.bootstrap import Interval, Resampling, difference, interval
from models.evaluation.calibration import BINS, Bin, expressed_bins, reliability
from models.evaluation.extraction import extraction
from models.evaluation.groups import groups
from models.evaluation.judge import Judge, Verdicts
from models.evaluation.measures import Measure, Sums
from models.evaluation.prediction import Case, Prediction
from tracker.stances import Stance


class Part(msgspec.Struct, frozen=True):
    """The figures of one part of the data."""

    dialogues: int
    turns: int
    flips: int
    live: Mapping[str, Interval]
    stanceflip: Mapping[str, Interval]


class System(msgspec.Struct, frozen=True):
    """One system: its figures by part, its confusion matrix (gold, predicted) and its reliability bins.

    `differences`: how much its live figures over all dialogues exceed the first system's, whose own is empty.
    """

    name: str
    policy: str
    seconds: float
    parts: Mapping[str, Part]
    stances: tuple[Stance, ...]
    confusion: tuple[tuple[int, ...], ...]
    reliability: tuple[Bin, ...]
    differences: Mapping[str, Interval] = {}


class Report(msgspec.Struct, frozen=True):
    """Systems on the same dialogues; all that is needed to make the figures again."""

    data: str
    split: str
    judge: str
    resampling: Resampling
    calibration_bins: int
    systems: tuple[System, ...]


class Run(msgspec.Struct, frozen=True):
    """A system's predictions, and under which policy and in how many seconds they were made."""

    name: str
    predictions: Sequence[Prediction]
    policy: str
    seconds: float = 0.0


def report(
    dialogues: Sequence[Dialogue],
    runs: Iterable[Run],
    judge: Judge,
    resampling: Resampling,
    *,
    data: str,
    split: str,
) -> Report:
    """Measure runs on the same dialogues. Raises ValueError without dialogues, or for a run of others."""
    if not dialogues:
        raise ValueError("no dialogues to measure on")
    measured = tuple(runs)
    systems = [system(dialogues, run, judge, resampling) for run in measured]
    apart = _differences(dialogues, measured, resampling)
    compared = tuple(
        msgspec.structs.replace(made, differences=found) for made, found in zip(systems, apart, strict=True)
    )
    return Report(data, split, judge.name, resampling, BINS, compared)


def cases(dialogues: Sequence[Dialogue], predictions: Sequence[Prediction]) -> list[Case]:
    """Dialogues with their predictions, by id, so that the order they come in moves no resample."""
    said = {prediction.dialogue: prediction for prediction in predictions}
    ids = sorted(dialogue.id for dialogue in dialogues)
    if sorted(prediction.dialogue for prediction in predictions) != ids or len(said) != len(ids):
        raise ValueError("predictions are not one a dialogue, by id")
    return [Case(dialogue, said[dialogue.id]) for dialogue in sorted(dialogues, key=lambda found: found.id)]


def system(dialogues: Sequence[Dialogue], run: Run, judge: Judge, resampling: Resampling) -> System:
    """One system's figures."""
    found = cases(dialogues, run.predictions)
    size = len(live.STANCES)
    confused = np.stack([live.confusion(case) for case in found]).sum(axis=0).reshape(size, size)
    return System(
        name=run.name,
        policy=run.policy,
        seconds=round(run.seconds, 3),
        parts=_parts(found, judge, resampling),
        stances=live.STANCES,
        confusion=tuple(tuple(map(int, row)) for row in confused),
        reliability=reliability(np.stack([expressed_bins(case) for case in found]).sum(axis=0)),
    )


def _differences(
    dialogues: Sequence[Dialogue], runs: Sequence[Run], resampling: Resampling
) -> list[dict[str, Interval]]:
    """Of every run, the first's empty. All are compared on the same resamples of the dialogues."""
    if len(runs) < 2:
        return [{} for _ in runs]
    weights, level = resampling.weights(len(dialogues)), resampling.level
    first, *others = [_live(cases(dialogues, run.predictions)) for run in runs]
    return [{}] + [
        {
            measure.name: difference(rows, firsts, measure.value, weights, level)
            for (measure, rows), (_, firsts) in zip(mine, first, strict=True)
        }
        for mine in others
    ]


Rows = Sequence[tuple[Measure[Any], Sums]]  # a measure, and what each case contributes to it


def _parts(found: Sequence[Case], judge: Judge, resampling: Resampling) -> dict[str, Part]:
    ours = _live(found)
    extracted = [extraction(case) for case in found]
    verdicts = Verdicts(judge, (asked for each in extracted for asked in stanceflip.questions(each)))
    theirs = [(measure, measure.rows(extracted)) for measure in stanceflip.measures(verdicts)]
    places: dict[str, list[int]] = defaultdict(list)
    for place, case in enumerate(found):
        for part in groups(case.dialogue):
            places[part].append(place)
    return {name: _part(found, members, ours, theirs, resampling) for name, members in sorted(places.items())}


def _live(found: Sequence[Case]) -> Rows:
    return [(measure, measure.rows(found)) for measure in live.MEASURES]


def _part(
    found: Sequence[Case], members: Sequence[int], ours: Rows, theirs: Rows, resampling: Resampling
) -> Part:
    weights = resampling.weights(len(members))
    steps = [step for place in members for step in found[place].steps()]
    return Part(
        dialogues=len(members),
        turns=len(steps),
        flips=sum(bool(step.flipped) for step in steps),
        live=_figures(ours, members, weights, resampling.level),
        stanceflip=_figures(theirs, members, weights, resampling.level),
    )


def _figures(rows: Rows, members: Sequence[int], weights: Sums, level: float) -> dict[str, Interval]:
    return {
        measure.name: interval(contributed[members], measure.value, weights, level)
        for measure, contributed in rows
    }


def encode(made: Report) -> bytes:
    """The report as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n"


def decode(written: bytes) -> Report:
    """A report from its JSON."""
    return msgspec.json.decode(written, type=Report)
