"""`volteface train alignment|reasoning|reflection`: the three stages of the generative reader's training."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from stream.cli import training_run
from stream.cli.training_run import Data, Every, Limit, Research, Resume

if TYPE_CHECKING:
    from models.datasets.dialogue import Dialogue
    from models.language.weights import Found
    from models.training.generative import Tuner
    from models.training.lessons import Lesson
    from stream.settings import Settings

    Lessons = Callable[[Sequence[Dialogue], Tuner], Sequence[Lesson]]

Out = Annotated[Path, typer.Option(help="Folder of the run; what it learned is there when it ends.")]
Language = Annotated[str | None, typer.Option(help="Dialogues of this language alone: en, zh, es.")]
Named = Annotated[
    Literal["small", "paper"],
    typer.Option("--config", help="small: the embedded model; paper: 7B, Table 8."),
]
Base = Annotated[Path | None, typer.Option(help="Language model's folder; default: the embedded one.")]
Epochs = Annotated[int | None, typer.Option(min=1, help="Times over the data; default: the config's.")]
Judged = Annotated[int | None, typer.Option(min=0, help="Dev dialogues read after each epoch; 0: none.")]
Quantize = Annotated[
    Literal["none", "fp16", "int8", "nf4"] | None,
    typer.Option(help="none: no GPU needed; default: the config's."),
]
Shape = Annotated[
    Literal["served", "dialogue"],
    typer.Option(help="served: what a stream is asked; dialogue: the paper's prompts."),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of order, chances and new weights.")]
From = Annotated[Path, typer.Option("--from", help="Adapter of stage 2, a folder of train reasoning.")]
Pairs = Annotated[Path, typer.Option(help="Folder with pairs.jsonl: id, vector (a file), caption.")]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What every stage is asked."""

    out: Out
    config: Named = "small"
    base: Base = None
    epochs: Epochs = None
    quantize: Quantize = None
    seed: Seed = 0
    resume: Resume = False
    checkpoint: Every = 50

    def options(self, stage: str, **changes: Any) -> Any:
        """The config's options of a stage, but for what was asked for; with `none`, nothing needs a GPU."""
        from models.training.stages import CONFIGS  # noqa: PLC0415  # late, as below

        asked = {"epochs": self.epochs, "quantization": self.quantize} | changes
        if self.quantize == "none":
            asked["optimizer"] = "adamw"
        given = {name: value for name, value in asked.items() if value is not None}
        return msgspec.structs.replace(getattr(CONFIGS[self.config], stage), seed=self.seed, **given)


@dataclass(frozen=True, kw_only=True)
class Tuning(Stage):
    """What stages 2 and 3 are asked besides."""

    data: Data = None
    language: Language = None
    limit: Limit = None
    judge: Judged = None
    form: Shape = "served"
    research: Research = False

    @property
    def sources(self) -> tuple[str, ...]:
        """Where dialogues come from."""
        return tuple(self.data or ["open"])


@training_run.taking(Stage)
def alignment(asked: Stage, pairs: Pairs) -> None:
    """Stage 1: teach a projector what media vectors show; the language model stays as it is."""
    with training_run.refusals():
        _align(asked, pairs, asked.options("alignment"))
    typer.echo(f"trained: {asked.out}")


@training_run.taking(Tuning)
def reasoning(asked: Tuning) -> None:
    """Stage 2: teach a language model to read turns; killed, it resumes to the same weights."""
    from models.training.lessons import lessons  # noqa: PLC0415

    with training_run.refusals():
        options = asked.options("reasoning", judged=asked.judge, form=asked.form)
        _tune(asked, options, lambda said, tuner: lessons(said, options.form))


@training_run.taking(Tuning)
def reflection(asked: Tuning, start: From) -> None:
    """Stage 3: teach stage 2's adapter to find and mend errors (Corrupt-and-Correct)."""
    from models.training.reflection import reflections  # noqa: PLC0415

    with training_run.refusals():
        options = asked.options("reflection", judged=asked.judge, form=asked.form)
        _tune(asked, options, lambda said, tuner: reflections(said, options, tuner.room), start)


def _align(asked: Stage, pairs: Path, options: Any) -> None:
    # Imported late, here and below: torch takes seconds, and no other command needs training.
    from models.training import checkpoints, teaching  # noqa: PLC0415
    from models.training import pairs as media  # noqa: PLC0415
    from models.training.alignment import Aligner  # noqa: PLC0415

    taught, loaded = media.pairs(pairs), training_run.settings()
    found = language_model(asked.base, loaded)
    aligner = Aligner(found, asked.out, options, len(taught[0].numbers), training_run.placement(loaded))
    run = checkpoints.Run(
        options=options, base_revision=found.revision, data=(str(pairs),), examples=teaching.digest(taught)
    )
    checkpoints.begin(asked.out, run, resume=asked.resume)
    with training_run.progress("alignment") as watch:
        aligner.run(taught, lambda step: watch(step.step, step.steps), asked.checkpoint)


def _tune(asked: Tuning, options: Any, lessons: "Lessons", start: Path | None = None) -> None:
    from models.language.backbone import fingerprint  # noqa: PLC0415
    from models.training import checkpoints, teaching  # noqa: PLC0415
    from models.training.generative import Tuner  # noqa: PLC0415

    loaded = training_run.settings()
    found = language_model(asked.base, loaded)
    # All before the folder is made: what cannot be done leaves no run behind.
    said = _dialogues(asked, "train")
    dev = _dialogues(_drawing(asked, options.judged), "dev") if options.judged else []
    tuner = Tuner(found, asked.out, options, training_run.placement(loaded), start)
    taught = lessons(said, tuner)
    revision = found.revision if start is None else f"{found.revision}+{fingerprint(start)}"
    run = checkpoints.Run(
        options=options, base_revision=revision, data=asked.sources, examples=teaching.digest(taught)
    )
    checkpoints.begin(asked.out, run, resume=asked.resume)
    with training_run.progress("training") as watch:
        tuner.run(
            taught,
            [one for one in dev if one.proposition],
            lambda step: watch(step.step, step.steps),
            asked.checkpoint,
        )
    typer.echo(f"trained: {asked.out}; next: volteface train policy {asked.out}")
    typer.echo(f"read with it: VOLTEFACE_READER=generative VOLTEFACE_ADAPTER={asked.out}")


def _drawing(asked: Tuning, most: int) -> Tuning:
    """The same, of fewer dialogues: drawn, not the first ones, which are all of one language."""
    return replace(asked, limit=min(most, asked.limit or most))


def _dialogues(asked: Tuning, part: str) -> "list[Dialogue]":
    from models.training import teaching  # noqa: PLC0415

    return teaching.dialogues(
        asked.sources, part, language=asked.language, research=asked.research, limit=asked.limit
    )


def language_model(base: Path | None, loaded: "Settings") -> "Found":
    """The language model asked for, the one that settings name for the generative reader, or the embedded."""
    from models.language.backbone import local  # noqa: PLC0415
    from models.language.weights import SMOLLM2, resolve  # noqa: PLC0415

    path = base or (loaded.model if loaded.reader == "generative" else None)  # another reader's is no such
    return local(path) if path else resolve(SMOLLM2, cache=loaded.cache, hub=loaded.hub)
