"""`volteface train`: teaching an engine, and fitting the policy that goes with it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from models.language.wheels import WeightsUnavailable
from stream import logs, settings

if TYPE_CHECKING:
    from models.language.backbone import Placement
    from models.training.encoder import Step
    from models.training.options import EncoderOptions
    from models.training.policy import Fitted

app = typer.Typer(help="Teach an engine, and fit the policy that goes with it.", no_args_is_help=True)

ALPHA = 2  # of LoRA: so many times the rank

Data = Annotated[
    list[str] | None, typer.Option(help="Repeat: open, a benchmark's path, NAME=PATH. Default: open.")
]
Out = Annotated[Path, typer.Option(help="Folder of the run; its adapter is there when it ends.")]
Base = Annotated[Path | None, typer.Option(help="Encoder's folder; default: multilingual-e5-small.")]
Epochs = Annotated[int, typer.Option(min=1, help="Times over the data.")]
Rate = Annotated[
    float | None, typer.Option("--lr", min=0, help="Peak learning rate; default: 7e-5, with LoRA 5e-4.")
]
Size = Annotated[int, typer.Option("--batch", min=1, help="Examples of a step.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of order, chances and new weights.")]
Rank = Annotated[int | None, typer.Option("--lora", min=1, help="LoRA of this rank; default: every layer.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where the folder's run was stopped.")]
Limit = Annotated[int | None, typer.Option(min=1, help="At most so many dialogues of each part.")]
Every = Annotated[int, typer.Option("--checkpoint", min=1, help="Steps between checkpoints.")]
Research = Annotated[
    bool, typer.Option("--research", help="Also sources whose licence forbids what is shipped.")
]
Adapter = Annotated[Path, typer.Argument(help="Folder of a trained encoder adapter.")]
Cap = Annotated[float, typer.Option("--false-flips", min=0, help="False flips in 1,000 turns, at most.")]


@app.command("encoder")
def encoder(
    out: Out,
    data: Data = None,
    base: Base = None,
    epochs: Epochs = 3,
    rate: Rate = None,
    batch: Size = 12,
    seed: Seed = 0,
    lora: Rank = None,
    resume: Resume = False,
    limit: Limit = None,
    checkpoint: Every = 200,
    research: Research = False,
) -> None:
    """Train the encoder on labelled dialogues; killed at any instant, it resumes to the same weights."""
    from models.encoder.adapter import Lora  # noqa: PLC0415
    from models.training.options import LORA_RATE, RATE, EncoderOptions  # noqa: PLC0415

    options = EncoderOptions(
        epochs=epochs,
        rate=rate or (LORA_RATE if lora else RATE),
        batch=batch,
        seed=seed,
        lora=Lora(lora, ALPHA * lora) if lora else None,
    )
    with _refusals():
        _train(out, options, tuple(data or ["open"]), (base, limit), (resume, research, checkpoint))
    typer.echo(f"trained: {out}; next: volteface train policy {out}")


def _train(
    out: Path,
    options: "EncoderOptions",
    data: tuple[str, ...],
    drawn: tuple[Path | None, int | None],
    how: tuple[bool, bool, int],
) -> None:
    # Imported late, here and below: torch takes seconds, and no other command needs training.
    from models.encoder.weights import base as encoder_base  # noqa: PLC0415
    from models.training import checkpoints, teaching  # noqa: PLC0415
    from models.training.encoder import Trainer  # noqa: PLC0415
    from models.training.examples import examples  # noqa: PLC0415

    (path, limit), (resume, research, every) = drawn, how
    loaded = _settings()
    found = encoder_base(path or loaded.model, loaded.cache)
    taught = examples(teaching.dialogues(data, "train", research=research, limit=limit))
    dev = [one for one in teaching.dialogues(data, "dev", research=research, limit=limit) if one.proposition]
    asked = checkpoints.Run(
        options=options, base_revision=found.revision, data=data, examples=teaching.digest(taught)
    )
    checkpoints.begin(out, asked, resume=resume)
    trainer = Trainer(found, out, options, _placement(loaded))
    with _progress("training") as watch:
        trainer.run(taught, dev, lambda step: watch(*_position(step)), every)


def _position(step: "Step") -> tuple[int, int]:
    return step.step, step.steps


@app.command("policy")
def policy(
    adapter: Adapter,
    data: Data = None,
    base: Base = None,
    cap: Cap = 30.0,
    limit: Limit = None,
    research: Research = False,
) -> None:
    """Fit temperatures and thresholds on the dev part, and store them beside the adapter."""
    with _refusals():
        fitted = _fit(adapter, tuple(data or ["open"]), (base, limit), cap, research)
    for name, value in fitted.figures.values.items():
        typer.echo(f"{name:32}{value:8.3f}")
    typer.echo(f"VOLTEFACE_POLICY={adapter / 'policy.toml'}")


def _fit(
    adapter: Path,
    data: tuple[str, ...],
    drawn: tuple[Path | None, int | None],
    cap: float,
    research: bool,
) -> "Fitted":
    from models.encoder import loading  # noqa: PLC0415
    from models.encoder.engine import EncoderEngine  # noqa: PLC0415
    from models.encoder.weights import base as encoder_base  # noqa: PLC0415
    from models.training import policy as fitting  # noqa: PLC0415
    from models.training import teaching  # noqa: PLC0415

    (path, limit), loaded = drawn, _settings()
    found = encoder_base(path or loaded.model, loaded.cache)
    engine = EncoderEngine(loading.load(found, adapter, _placement(loaded)))
    dev = [one for one in teaching.dialogues(data, "dev", research=research, limit=limit) if one.proposition]
    with _progress("fitting") as watch:
        fitted = fitting.fit(engine, dev, name=adapter.name, cap=cap, watch=watch)
    fitting.save(fitted, adapter)
    return fitted


def _settings() -> settings.Settings:
    loaded = settings.load()
    logs.configure(msgspec.structs.replace(loaded, log_level="warning"))
    return loaded


def _placement(loaded: settings.Settings) -> "Placement":
    from models.language.backbone import Placement  # noqa: PLC0415

    return Placement(loaded.device, loaded.dtype, loaded.threads)


@contextmanager
def _refusals() -> Iterator[None]:
    """What a person can mend is one line."""
    try:
        yield
    except (OSError, ValueError, LookupError, WeightsUnavailable) as error:
        typer.echo(f"volteface train: {error}", err=True)
        raise typer.Exit(1) from None


@contextmanager
def _progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error, gone when all is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(name, total=None)
        yield lambda done, of: shown.update(task, completed=done, total=of)
