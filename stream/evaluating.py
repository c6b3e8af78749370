"""What `volteface eval` does: dialogues in, systems run freely over them, a report and its pictures out."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
from rich.console import Console

from models.datasets import benchmark
from models.datasets.dialogue import Dialogue
from models.datasets.files import MissingPart
from models.datasets.open import open_dataset
from models.evaluation import plots, report, runner, tables
from models.evaluation.baselines import BASELINES, Priors
from models.evaluation.patience import Patient
from models.evaluation.prediction import Prediction
from models.evaluation.report import Report, Run
from models.reader import Engine
from stream import roles, routes
from stream.settings import Settings
from tracker import keys
from tracker.policy import Policy

OPEN = "open"
UNTUNED = "untuned"  # the backbone without adapter
WHOLE = "whole-dialogue"  # the generative backbone over all of a dialogue, as the papers do
NAMES = (*BASELINES, UNTUNED)
WIDTH = 240  # of tables in a file

Announce = Callable[[str, int], runner.Progress]  # a system's name and its turns
Predict = Callable[[Sequence[Dialogue], runner.Progress], list[Prediction]]


class System(msgspec.Struct, frozen=True):
    """What is measured: a name, what reads dialogues when it is needed, and the stamps of its policies."""

    name: str
    load: Callable[[], Predict]
    policy: str


class NoDialogues(ValueError):
    """There is nothing to measure on."""


def dialogues(data: str, split: str | None, limit: int | None = None) -> list[Dialogue]:
    """The dialogues of `open` or of a path that have a proposition; a limit draws the same ones every time.

    Raises NoDialogues, MissingPart or Malformed.
    """
    found = [dialogue for dialogue in _load(data, split) if dialogue.proposition]
    if not found:
        raise NoDialogues(f"{data}: no dialogues with a proposition in part {split or 'all'}")
    if limit is None or limit >= len(found):
        return found
    # By hash, not the first ones: files come a language after the other.
    return sorted(found, key=lambda dialogue: keys.digest(dialogue.id, length=12))[:limit]


def _load(data: str, split: str | None) -> Iterator[Dialogue]:
    return open_dataset(None, split) if data == OPEN else benchmark.load(Path(data), split)


def priors(data: str) -> Priors:
    """What majority knows: the training part's most frequent labels, or its defaults where there is none."""
    try:
        return Priors.of(_load(data, "train"))
    except MissingPart:
        return Priors()


def systems(settings: Settings, baselines: Sequence[str], data: str, *, whole: bool = False) -> list[System]:
    """The reader that settings ask for, the whole-dialogue form if it is asked for, then baselines.

    Baselines run under the default policy: thresholds fitted to a reader would silence them.
    """
    known = priors(data)
    made = [_incremental(_name(settings), roles.engine_factory(settings), *routes.policies(settings))]
    made += [_whole(settings)] if whole else []
    for name in baselines:
        if name == UNTUNED:
            bare = msgspec.structs.replace(settings, reader="generative", adapter=None, readers=())
            if bare != settings:  # else it is the reader that is measured already
                made.append(_incremental(name, roles.engine_factory(bare), Policy()))
        else:
            made.append(_incremental(name, partial(BASELINES[name], known), Policy()))
    return made


def _incremental(
    name: str, make: Callable[[], Engine], policy: Policy, policies: Mapping[str, Policy] | None = None
) -> System:
    def load() -> Predict:
        engine = Patient(make(), name)
        return lambda found, progress: runner.run(found, engine, policy, policies=policies, progress=progress)

    stamps = (f"{language}: {one.stamp}" for language, one in (policies or {}).items())
    return System(name, load, ", ".join((policy.stamp, *stamps)))


def _whole(settings: Settings) -> System:
    """On the generative reader's backbone; another reader's model and adapter are not for it."""
    # Imported late: it brings torch, which takes seconds.
    from models.reasoning import dialogue  # noqa: PLC0415

    if settings.reader != "generative":
        settings = msgspec.structs.replace(settings, reader="generative", model=None, adapter=None)
    asked = roles.reader_settings(settings)
    return System(WHOLE, lambda: dialogue.from_settings(asked).run, dialogue.LIKELIEST.stamp)


def _name(settings: Settings) -> str:
    if settings.readers:
        return "by-language"
    return f"{settings.reader}-{settings.adapter.name}" if settings.adapter else settings.reader


def run(found: Sequence[Dialogue], measured: System, announce: Announce) -> Run:
    """A system's predictions; it is loaded, used and let go, so that one is held at a time.

    Raises ReaderAway.
    """
    predict = measured.load()
    progress = announce(measured.name, sum(len(dialogue.turns) for dialogue in found))
    began = time.monotonic()
    predictions = predict(found, progress)
    return Run(measured.name, predictions, measured.policy, time.monotonic() - began)


def write(made: Report, found: Sequence[Dialogue], runs: Sequence[Run], folder: Path) -> None:
    """report.json, tables.txt, every system's predictions, and pictures of the first system's trajectories.

    Raises ImportError where matplotlib is missing; all but the pictures is written by then.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_bytes(report.encode(made))
    with (folder / "tables.txt").open("w", encoding="utf-8") as file:
        show(made, Console(file=file, width=WIDTH))
    for one in runs:
        lines = b"".join(msgspec.json.encode(prediction) + b"\n" for prediction in one.predictions)
        (folder / f"predictions-{plots.slug(one.name)}.jsonl").write_bytes(lines)
    plots.draw(made.systems, plots.telling(report.cases(found, runs[0].predictions)), folder)


def show(made: Report, console: Console) -> None:
    """Print the report's tables."""
    for table in tables.tables(made):
        console.print(table)
