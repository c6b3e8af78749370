"""`volteface train`: teaching an engine, and fitting the policy that goes with it."""

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from stream.cli import train_generative, training_run
from stream.cli.training_run import Data, Every, Limit, Research, Resume

if TYPE_CHECKING:
    from models.reader import Engine
    from models.training.options import EncoderOptions
    from models.training.policy import Fitted

app = typer.Typer(help="Teach an engine, and fit the policy that goes with it.", no_args_is_help=True)
app.command("alignment")(train_generative.alignment)
app.command("reasoning")(train_generative.reasoning)
app.command("reflection")(train_generative.reflection)

ALPHA = 2  # of LoRA: so many times the rank

Out = Annotated[Path, typer.Option(help="Folder of the run; its adapter is there when it ends.")]
Base = Annotated[Path | None, typer.Option(help="Encoder's folder; default: multilingual-e5-small.")]
Epochs = Annotated[int | None, typer.Option(min=1, help="Times over the data; default: 3.")]
Rate = Annotated[
    float | None, typer.Option("--lr", min=0, help="Peak learning rate; default: 7e-5, with LoRA 5e-4.")
]
Size = Annotated[int | None, typer.Option("--batch", min=1, help="Examples of a step; default: 12.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Of order, chances and new weights; default: 0.")]
File = Annotated[
    Path | None,
    typer.Option("--options", help="TOML over the defaults of models/training/options.py: for ablations."),
]
Rank = Annotated[int | None, typer.Option("--lora", min=1, help="LoRA of this rank; default: every layer.")]
Start = Annotated[
    Path | None, typer.Option("--from", help="Trained adapter to go on from; default: fresh heads.")
]
Heads = Annotated[
    float | None, typer.Option("--heads", min=0.01, help="The heads' rate, times the encoder's; default: 1.")
]
Adapter = Annotated[Path, typer.Argument(help="Folder of an adapter, of an encoder or a language model.")]
Reads = Annotated[Path | None, typer.Option("--base", help="Folder of its model; default: the embedded one.")]
Cap = Annotated[float, typer.Option("--false-flips", min=0, help="False flips in 1,000 turns, at most.")]


@app.command("encoder")
def encoder(
    out: Out,
    data: Data = None,
    base: Base = None,
    epochs: Epochs = None,
    rate: Rate = None,
    batch: Size = None,
    seed: Seed = None,
    file: File = None,
    lora: Rank = None,
    start: Start = None,
    heads: Heads = None,
    resume: Resume = False,
    limit: Limit = None,
    checkpoint: Every = 200,
    research: Research = False,
) -> None:
    """Train the encoder on labelled dialogues; killed at any instant, it resumes to the same weights."""
    asked = {"epochs": epochs, "rate": rate, "batch": batch, "seed": seed, "heads": heads}
    with training_run.refusals():
        options = _options(file, asked, lora, start)
        _train(out, options, tuple(data or ["open"]), (base, start, limit), (resume, research, checkpoint))
    typer.echo(f"trained: {out}; next: volteface train policy {out}")


def _options(
    file: Path | None, asked: dict[str, float | None], lora: int | None, start: Path | None
) -> "EncoderOptions":
    """What the command says, over the file, over the defaults."""
    from models.language.backbone import fingerprint  # noqa: PLC0415
    from models.training.options import LORA_RATE, EncoderOptions  # noqa: PLC0415

    given: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8")) if file else {}
    given |= {name: value for name, value in asked.items() if value is not None}
    if lora is not None:
        given |= {"lora": {"rank": lora, "alpha": ALPHA * lora}}
    if given.get("lora"):
        given.setdefault("rate", LORA_RATE)
    return msgspec.convert({**given, "start": fingerprint(start) if start else None}, EncoderOptions)


def _train(
    out: Path,
    options: "EncoderOptions",
    data: tuple[str, ...],
    drawn: tuple[Path | None, Path | None, int | None],
    how: tuple[bool, bool, int],
) -> None:
    # Imported late, here and below: torch takes seconds, and no other command needs training.
    from models.encoder.weights import base as encoder_base  # noqa: PLC0415
    from models.training import checkpoints, teaching  # noqa: PLC0415
    from models.training.encoder import Trainer  # noqa: PLC0415
    from models.training.examples import examples  # noqa: PLC0415

    (path, start, limit), (resume, research, every) = drawn, how
    loaded = training_run.settings()
    found = encoder_base(path or loaded.model, loaded.cache)
    taught = examples(teaching.dialogues(data, "train", research=research, limit=limit))
    dev = [one for one in teaching.dialogues(data, "dev", research=research, limit=limit) if one.proposition]
    asked = checkpoints.Run(
        options=options, base_revision=found.revision, data=data, examples=teaching.digest(taught)
    )
    checkpoints.begin(out, asked, resume=resume)
    trainer = Trainer(found, out, options, training_run.placement(loaded), start)
    with training_run.progress("training") as watch:
        trainer.run(taught, dev, lambda step: watch(step.step, step.steps), every)


@app.command("average")
def average(
    adapters: Annotated[list[Path], typer.Argument(help="Folders of runs that went on from one another.")],
    out: Annotated[Path, typer.Option(help="Folder of the mean.")],
) -> None:
    """Average the weights of encoder adapters into one; fit its thresholds with policy."""
    from models.training import averaging  # noqa: PLC0415

    with training_run.refusals():
        averaging.average(adapters, out)
    typer.echo(f"stored: {out}; next: volteface train policy {out}")


@app.command("policy")
def policy(
    adapter: Adapter,
    data: Data = None,
    base: Reads = None,
    cap: Cap = 30.0,
    limit: Limit = None,
    language: train_generative.Language = None,
    research: Research = False,
) -> None:
    """Fit temperatures and thresholds on the dev part, and store them beside the adapter."""
    with training_run.refusals():
        fitted = _fit(adapter, tuple(data or ["open"]), (base, limit, language), cap, research)
    for name, value in fitted.figures.values.items():
        typer.echo(f"{name:32}{value:8.3f}")
    stored = adapter / "policy.toml"
    typer.echo(f"stored: {stored}; in force wherever a reader has this adapter and no policy of its own")


def _fit(
    adapter: Path,
    data: tuple[str, ...],
    drawn: tuple[Path | None, int | None, str | None],
    cap: float,
    research: bool,
) -> "Fitted":
    from models.training import policy as fitting  # noqa: PLC0415
    from models.training import teaching  # noqa: PLC0415

    path, limit, language = drawn
    engine = _engine(adapter, path)
    said = teaching.dialogues(data, "dev", language=language, research=research, limit=limit)
    dev = [one for one in said if one.proposition]
    with training_run.progress("fitting") as watch:
        fitted = fitting.fit(engine, dev, name=adapter.name, cap=cap, watch=watch)
    fitting.save(fitted, adapter)
    return fitted


def _engine(adapter: Path, path: Path | None) -> "Engine":
    """Whatever the adapter is of, on the model in a folder, or on the embedded one."""
    from models.encoder import loading  # noqa: PLC0415
    from models.encoder.engine import EncoderEngine  # noqa: PLC0415
    from models.encoder.weights import base as encoder_base  # noqa: PLC0415
    from models.language import backbone  # noqa: PLC0415
    from models.language.generative import GenerativeEngine  # noqa: PLC0415
    from models.training.lora import CONFIG  # noqa: PLC0415

    loaded = training_run.settings()
    placement = training_run.placement(loaded)
    if (adapter / CONFIG).exists():
        found = train_generative.language_model(path, loaded)
        return GenerativeEngine(backbone.load(found, adapter, placement))
    return EncoderEngine(loading.load(encoder_base(path or loaded.model, loaded.cache), adapter, placement))
