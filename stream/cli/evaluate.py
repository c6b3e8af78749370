"""`volteface eval`: figures of a reader and of baselines on labelled dialogues, free-running."""

import enum
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from models.evaluation.patience import ReaderAway
from models.language.wheels import WeightsUnavailable
from stream import logs, settings

if TYPE_CHECKING:
    from models.datasets.dialogue import Dialogue
    from models.evaluation.judge import Judge
    from models.evaluation.report import Report, Run

WIDTH = 240  # of tables where no terminal says it


class Split(enum.StrEnum):
    """The parts of a data set: train teaches, dev chooses, test only judges."""

    TRAIN = "train"
    DEV = "dev"
    TEST = "test"
    ALL = "all"


class Baseline(enum.StrEnum):
    """What stands in the table beside the reader."""

    PERSISTENCE = "persistence"
    MAJORITY = "majority"
    LEXICON = "lexicon"
    UNTUNED = "untuned"
    NONE = "none"


class Form(enum.StrEnum):
    """How dialogues are read: as a stream is, or beside that each as a whole, as the papers do."""

    INCREMENTAL = "incremental"
    WHOLE = "whole"


class JudgeName(enum.StrEnum):
    """Who judges open fields where no language model is asked."""

    CONTAINMENT = "containment"
    EMBEDDINGS = "embeddings"


PLAIN = (Baseline.PERSISTENCE, Baseline.MAJORITY, Baseline.LEXICON)


Data = Annotated[str, typer.Option(help="open, or a path: benchmark JSONL, or a folder of it.")]
Part = Annotated[Split, typer.Option("--split", help="The part to measure on.")]
Reader = Annotated[str | None, typer.Option(help="Engine; default: VOLTEFACE_READER. Else as settings say.")]
Adapter = Annotated[Path | None, typer.Option(help="Adapter; default: VOLTEFACE_ADAPTER.")]
Baselines = Annotated[
    list[Baseline] | None, typer.Option(help="Repeat; default: persistence, majority, lexicon.")
]
Shape = Annotated[
    Form, typer.Option("--form", help="whole: also the generative backbone over whole dialogues; slow.")
]
Limit = Annotated[int | None, typer.Option(min=1, help="At most so many dialogues, drawn by hash.")]
Out = Annotated[Path | None, typer.Option(help="Folder for report, tables, predictions, plots.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the intervals.")]
Bootstrap = Annotated[int, typer.Option(min=1, help="Resamples of the intervals.")]
By = Annotated[JudgeName, typer.Option("--judge", help="Who judges rationales where no --judge-url is set.")]
Url = Annotated[str | None, typer.Option(help="OpenAI-compatible judge, up to /v1, in place of --judge.")]
JudgeModel = Annotated[str, typer.Option(help="The judge's model.")]
Key = Annotated[str | None, typer.Option(envvar="VOLTEFACE_JUDGE_KEY", help="The judge's API key.")]
Cache = Annotated[Path, typer.Option(help="File of the judge's answers.")]


def evaluate(
    data: Data = "open",
    part: Part = Split.TEST,
    reader: Reader = None,
    adapter: Adapter = None,
    baseline: Baselines = None,
    form: Shape = Form.INCREMENTAL,
    limit: Limit = None,
    out: Out = None,
    seed: Seed = 0,
    bootstrap: Bootstrap = 1000,
    judge_by: By = JudgeName.CONTAINMENT,
    judge_url: Url = None,
    judge_model: JudgeModel = "gpt-4o-mini",
    judge_key: Key = None,
    judge_cache: Cache = Path("api_match_cache.json"),
) -> None:
    """Measure how well a reader tracks stances; the state is its own throughout, never the labels'."""
    names = [name.value for name in baseline or PLAIN if name is not Baseline.NONE]
    try:
        loaded = _settings(reader, adapter)
        asked = judge_url and (judge_url, judge_model, judge_key, judge_cache)
        judge = _llm_judge(*asked) if asked else _judge(judge_by, loaded)
        made = _measured(loaded, names, form, judge, (data, part, limit), (bootstrap, seed), out)
    except (OSError, ValueError, WeightsUnavailable, ReaderAway) as error:
        typer.echo(f"volteface eval: {error}", err=True)
        raise typer.Exit(1) from None
    _show(made)


def _measured(
    loaded: settings.Settings,
    baselines: list[str],
    form: Form,
    judge: "Judge",
    drawn: tuple[str, Split, int | None],
    resampled: tuple[int, int],
    out: Path | None,
) -> "Report":
    # Imported late, here and below: numpy and the data are of no use to any other command.
    from models.evaluation import report  # noqa: PLC0415
    from models.evaluation.bootstrap import Resampling  # noqa: PLC0415
    from stream import evaluating  # noqa: PLC0415

    data, part, limit = drawn
    found = evaluating.dialogues(data, None if part is Split.ALL else part.value, limit)
    systems = evaluating.systems(loaded, baselines, data, whole=form is Form.WHOLE)
    with _progress() as announce:
        runs = [evaluating.run(found, one, announce) for one in systems]
    made = report.report(found, runs, judge, Resampling(*resampled), data=data, split=part.value)
    if out is not None:
        _write(out, made, found, runs)
    return made


def _show(made: "Report") -> None:
    from stream import evaluating  # noqa: PLC0415

    evaluating.show(made, Console(width=None if sys.stdout.isatty() else WIDTH))


def _write(out: Path, made: "Report", found: "list[Dialogue]", runs: "list[Run]") -> None:
    from stream import evaluating  # noqa: PLC0415

    try:
        evaluating.write(made, found, runs, out)
    except ImportError as error:
        typer.echo(f"volteface eval: no plots: {error}; install volteface[train]", err=True)


def _settings(reader: str | None, adapter: Path | None) -> settings.Settings:
    asked = {"VOLTEFACE_READER": reader, "VOLTEFACE_ADAPTER": adapter and str(adapter.absolute())}
    changed = {name: value for name, value in asked.items() if value}
    # As if set: what comes with a reader or an adapter, its policy above all, must be the one asked for.
    loaded = settings.load(os.environ | changed)
    logs.configure(msgspec.structs.replace(loaded, log_level="warning"))
    return loaded


def _judge(by: JudgeName, here: settings.Settings) -> "Judge":
    from models.evaluation import embeddings  # noqa: PLC0415
    from models.evaluation.judge import ContainmentJudge  # noqa: PLC0415

    if by is JudgeName.CONTAINMENT:
        return ContainmentJudge()
    return embeddings.judge(embeddings.Embedder(here.cache, here.device, here.threads))


def _llm_judge(url: str, model: str, key: str | None, cache: Path) -> "Judge":
    from models.evaluation.llm_judge import LLMJudge, LLMSettings  # noqa: PLC0415

    return LLMJudge(LLMSettings(base_url=url, model=model, api_key=key, cache=cache))


@contextmanager
def _progress() -> Iterator[Callable[[str, int], Callable[[int], None]]]:
    """A bar a system on standard error, gone when all are done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:

        def announce(name: str, turns: int) -> Callable[[int], None]:
            task = shown.add_task(name, total=turns)
            return lambda done: shown.advance(task, done)

        yield announce
