"""`volteface train alignment|reasoning|reflection`: the three stages of the generative reader's training."""

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import typer

from stream.cli import training_run

if TYPE_CHECKING:
    from models.datasets.dialogue import Dialogue
    from models.language.weights import Found
    from models.training.stages import ReasoningOptions, ReflectionOptions
    from stream.settings import Settings


class Config(enum.StrEnum):
    """Whose settings."""

    small = "small"
    paper = "paper"


class Precision(enum.StrEnum):
    """What the frozen weights are held in."""

    none = "none"
    fp16 = "fp16"
    int8 = "int8"
    nf4 = "nf4"


class Form(enum.StrEnum):
    """What stage 2 teaches."""

    served = "served"
    dialogue = "dialogue"


Out = Annotated[Path, typer.Option(help="Folder of the run; what it learned is there when it ends.")]
Data = Annotated[
    list[str] | None, typer.Option(help="Repeat: open, a benchmark's path, NAME=PATH. Default: open.")
]
Language = Annotated[str | None, typer.Option(help="Dialogues of this language alone: en, zh, es.")]
Named = Annotated[Config, typer.Option("--config", help="small: the embedded model; paper: 7B, Table 8.")]
Base = Annotated[Path | None, typer.Option(help="Language model's folder; default: the embedded one.")]
Epochs = Annotated[int | None, typer.Option(min=1, help="Times over the data; default: the config's.")]
Limit = Annotated[int | None, typer.Option(min=1, help="At most so many dialogues of each part.")]
Judged = Annotated[int | None, typer.Option(min=0, help="Dev dialogues read after each epoch; 0: none.")]
Quantize = Annotated[Precision | None, typer.Option(help="none: no GPU needed; default: the config's.")]
Shape = Annotated[Form, typer.Option(help="served: what the engine asks; dialogue: the paper's path.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of order, chances and new weights.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where the folder's run was stopped.")]
Every = Annotated[int, typer.Option("--checkpoint", min=1, help="Steps between checkpoints.")]
Research = Annotated[
    bool, typer.Option("--research", help="Also sources whose licence forbids what is shipped.")
]
From = Annotated[Path, typer.Option("--from", help="Adapter of stage 2, a folder of train reasoning.")]
Pairs = Annotated[Path, typer.Option(help="Folder with pairs.jsonl: id, vector (a file), caption.")]


class _Asked(NamedTuple):
    """What both stages of tuning are asked."""

    out: Path
    data: tuple[str, ...]
    language: str | None
    base: Path | None
    limit: int | None
    resume: bool
    every: int
    research: bool


def alignment(
    pairs: Pairs,
    out: Out,
    config: Named = Config.small,
    base: Base = None,
    epochs: Epochs = None,
    quantize: Quantize = None,
    seed: Seed = 0,
    resume: Resume = False,
    checkpoint: Every = 50,
) -> None:
    """Stage 1: teach a projector what media vectors show; the language model stays as it is."""
    with training_run.refusals():
        options = _chosen(config, "alignment", quantize, epochs=epochs, seed=seed)
        _align(pairs, out, base, options, resume, checkpoint)
    typer.echo(f"trained: {out}")


def reasoning(
    out: Out,
    data: Data = None,
    language: Language = None,
    config: Named = Config.small,
    base: Base = None,
    epochs: Epochs = None,
    limit: Limit = None,
    judge: Judged = None,
    form: Shape = Form.served,
    quantize: Quantize = None,
    seed: Seed = 0,
    resume: Resume = False,
    checkpoint: Every = 50,
    research: Research = False,
) -> None:
    """Stage 2: teach a language model to read turns; killed, it resumes to the same weights."""
    asked = _Asked(out, tuple(data or ["open"]), language, base, limit, resume, checkpoint, research)
    with training_run.refusals():
        changes = {"epochs": epochs, "judged": judge, "form": form.value, "seed": seed}
        _reason(asked, _chosen(config, "reasoning", quantize, **changes))
    typer.echo(f"trained: {out}; next: VOLTEFACE_READER=generative VOLTEFACE_ADAPTER={out}")


def reflection(
    out: Out,
    start: From,
    data: Data = None,
    language: Language = None,
    config: Named = Config.small,
    base: Base = None,
    epochs: Epochs = None,
    limit: Limit = None,
    judge: Judged = None,
    quantize: Quantize = None,
    seed: Seed = 0,
    resume: Resume = False,
    checkpoint: Every = 50,
    research: Research = False,
) -> None:
    """Stage 3: teach stage 2's adapter to find and mend errors (Corrupt-and-Correct)."""
    asked = _Asked(out, tuple(data or ["open"]), language, base, limit, resume, checkpoint, research)
    with training_run.refusals():
        changes = {"epochs": epochs, "judged": judge, "seed": seed}
        _reflect(asked, start, _chosen(config, "reflection", quantize, **changes))
    typer.echo(f"trained: {out}; next: VOLTEFACE_READER=generative VOLTEFACE_ADAPTER={out}")


def _chosen(config: Config, stage: str, quantize: Precision | None, **changes: Any) -> Any:
    """The config's options of a stage, but for what was asked for. Asked for none, nothing needs a GPU."""
    from models.training.stages import CONFIGS  # noqa: PLC0415  # late, as below

    asked: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
    if quantize is not None:
        asked["quantization"] = quantize.value
    if quantize is Precision.none:
        asked["optimizer"] = "adamw"
    return msgspec.structs.replace(getattr(CONFIGS[config.value], stage), **asked)


def _align(pairs: Path, out: Path, base: Path | None, options: Any, resume: bool, every: int) -> None:
    # Imported late, here and below: torch takes seconds, and no other command needs training.
    from models.training import checkpoints, teaching  # noqa: PLC0415
    from models.training import pairs as media  # noqa: PLC0415
    from models.training.alignment import Aligner  # noqa: PLC0415

    taught, loaded = media.pairs(pairs), training_run.settings()
    found = _found(base, loaded)
    aligner = Aligner(found, out, options, len(taught[0].numbers), training_run.placement(loaded))
    run = checkpoints.Run(
        options=options, base_revision=found.revision, data=(str(pairs),), examples=teaching.digest(taught)
    )
    checkpoints.begin(out, run, resume=resume)
    with training_run.progress("alignment") as watch:
        aligner.run(taught, lambda step: watch(step.step, step.steps), every)


def _reason(asked: _Asked, options: "ReasoningOptions") -> None:
    from models.training.lessons import lessons  # noqa: PLC0415

    _tune(asked, options, lessons(_dialogues(asked, "train"), options.form), None)


def _reflect(asked: _Asked, start: Path, options: "ReflectionOptions") -> None:
    from models.training.corruption import reflections  # noqa: PLC0415

    _tune(asked, options, reflections(_dialogues(asked, "train"), options.above, options.seed), start)


def _tune(asked: _Asked, options: Any, taught: Any, start: Path | None) -> None:
    from models.language.backbone import fingerprint  # noqa: PLC0415
    from models.training import checkpoints, teaching  # noqa: PLC0415
    from models.training.generative import Tuner  # noqa: PLC0415

    loaded = training_run.settings()
    found = _found(asked.base, loaded)
    # Both before the folder is made: what cannot be done leaves no run behind.
    dev = _dialogues(_drawing(asked, options.judged), "dev") if options.judged else []
    tuner = Tuner(found, asked.out, options, training_run.placement(loaded), start)
    revision = found.revision if start is None else f"{found.revision}+{fingerprint(start)}"
    run = checkpoints.Run(
        options=options, base_revision=revision, data=asked.data, examples=teaching.digest(taught)
    )
    checkpoints.begin(asked.out, run, resume=asked.resume)
    with training_run.progress("training") as watch:
        said = [one for one in dev if one.proposition]
        tuner.run(taught, said, lambda step: watch(step.step, step.steps), asked.every)


def _drawing(asked: _Asked, most: int) -> _Asked:
    """The same, of fewer dialogues: drawn, not the first ones, which are all of one language."""
    return asked._replace(limit=min(most, asked.limit or most))


def _dialogues(asked: _Asked, part: str) -> "list[Dialogue]":
    from models.training import teaching  # noqa: PLC0415

    drawn = {"language": asked.language, "research": asked.research, "limit": asked.limit}
    return teaching.dialogues(asked.data, part, **drawn)  # type: ignore[arg-type]  # of several types


def _found(base: Path | None, loaded: "Settings") -> "Found":
    """The language model asked for, the one that settings name for the generative reader, or the embedded."""
    from models.language.backbone import local  # noqa: PLC0415
    from models.language.weights import SMOLLM2, resolve  # noqa: PLC0415

    path = base or (loaded.model if loaded.reader == "generative" else None)  # another reader's is no such
    return local(path) if path else resolve(SMOLLM2, cache=loaded.cache, hub=loaded.hub)
