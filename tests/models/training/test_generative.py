import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import torch

from models.language.backbone import load
from models.language.generative import GenerativeEngine
from models.language.settings import InvalidSetting
from models.language.weights import Found
from models.reader import ExplainRequest
from models.training import journal, lora
from models.training.checkpoints import CHECKPOINT
from models.training.examples import examples
from models.training.generative import Tuner
from models.training.lessons import lessons
from models.training.loop import Step
from models.training.reflection import reflections
from models.training.stages import LoraOptions, ReflectionOptions
from models.training.teaching import NothingToLearn
from tests.models.training.flips import RATIONALE, explained
from tests.models.training.tiny_tuning import CPU, OPTIONS, run
from tracker.stances import Expressed, Stance

ROOT = Path(__file__).parents[3]


def killed_at(step: int, found: Found, out: Path) -> int:
    command = [sys.executable, "-m", "tests.models.training.tiny_tuning", found.folder, out, str(step)]
    return subprocess.run(command, cwd=ROOT, timeout=170, check=False, capture_output=True).returncode


@pytest.mark.timeout(600)
def test_killed_and_resumed_it_gives_the_same_weights_bit_for_bit(speaker: Found, tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run(speaker.folder, whole)
    assert killed_at(7, speaker, killed) == -9  # in the second epoch, between two checkpoints
    assert torch.load(killed / CHECKPOINT, weights_only=True)["standing"]["step"] == 6
    run(speaker.folder, killed)
    one, other = (torch.load(folder / CHECKPOINT, weights_only=True) for folder in (whole, killed))
    assert one["standing"] == other["standing"]
    assert all(torch.equal(one["weights"][name], other["weights"][name]) for name in one["weights"])
    for file in (lora.WEIGHTS, lora.CONFIG):
        assert (whole / file).read_bytes() == (killed / file).read_bytes()
    figures = [journal.read(folder, "dev") for folder in (whole, killed)]
    assert figures[0] == figures[1]
    assert [line["epoch"] for line in figures[0]] == [1, 2]


@pytest.fixture(scope="module")
def taught(speaker: Found, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a handful of dialogues were learned by heart."""
    out = tmp_path_factory.mktemp("taught")
    options = msgspec.structs.replace(
        OPTIONS, epochs=32, rate=1e-2, batch=8, accumulation=1, drawn=0.0, foreign=0.0, judged=0,
        lora=LoraOptions(rank=16, alpha=32, dropout=0.0),
    )  # fmt: skip
    seen: list[Step] = []
    Tuner(speaker, out, options, CPU).run(lessons(explained(2)), [], seen.append)
    assert sum(step.loss for step in seen[-5:]) < 0.2 * sum(step.loss for step in seen[:5])
    return out


def test_what_was_learned_by_heart_the_engine_says(speaker: Found, taught: Path) -> None:
    engine = GenerativeEngine(load(speaker, taught, CPU))
    made = examples(explained(2))
    seen = engine.observe([one.request for one in made])
    for one, example in zip(seen, made, strict=True):
        assert max(Expressed, key=one.expressed.__getitem__) is example.labels.expressed
        assert (one.emotion, one.sentiment) == (example.labels.emotion, example.labels.sentiment)
        assert one.marks == ()
    flips = [(one, seen[at]) for at, one in enumerate(made) if one.labels.trigger]
    asked = [ExplainRequest(one.request, said, Stance(str(one.labels.expressed))) for one, said in flips]
    for (one, _), explanation in zip(flips, engine.explain(asked), strict=True):
        assert explanation.trigger.kind is one.labels.trigger
        assert set(explanation.trigger.turns) == one.labels.sources
        assert explanation.rationale == RATIONALE


def test_stage_3_goes_on_from_stage_2(speaker: Found, taught: Path, tmp_path: Path) -> None:
    options = ReflectionOptions(
        quantization="none", rate=1e-3, shape="linear", warmup=0.0, batch=4, accumulation=4, clip=0.3,
        epochs=1, judged=0, lora=LoraOptions(dropout=0.2),
    )  # fmt: skip
    tuner = Tuner(speaker, tmp_path, options, CPU, start=taught)
    begun = {name: values.clone() for name, values in tuner.weights().items()}
    saved = torch.load(taught / CHECKPOINT, weights_only=True)["weights"]
    assert all(torch.equal(begun[name], saved[name]) for name in saved)
    assert {module.p for module in tuner.network.modules() if isinstance(module, torch.nn.Dropout)} == {0.2}
    standing = tuner.run(reflections(explained(2), options, tuner.room), [])
    assert standing.best_epoch == 1
    assert any(not torch.equal(begun[name], values) for name, values in tuner.weights().items())
    assert load(speaker, tmp_path, CPU).revision != load(speaker, taught, CPU).revision


def test_a_folder_without_an_adapter_cannot_be_gone_on_from(speaker: Found, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=r"^from: .* has no adapter_config.json"):
        Tuner(speaker, tmp_path, OPTIONS, CPU, start=tmp_path)


def test_an_adapter_without_weights_is_refused_and_no_hub_is_asked(
    speaker: Found, taught: Path, tmp_path: Path
) -> None:
    (tmp_path / lora.CONFIG).write_bytes((taught / lora.CONFIG).read_bytes())
    with pytest.raises(InvalidSetting, match=r"^from: .* has no adapter_model.safetensors"):
        Tuner(speaker, tmp_path / "on", OPTIONS, CPU, start=tmp_path)


@pytest.mark.parametrize(("file", "found", "changed", "rank"), [
    (lora.CONFIG, b'"r": 16', b'"r": 2', 2),  # as another model's adapter, its weights have other shapes
    (lora.CONFIG, b"{", b"", 16),
    (lora.CONFIG, b'"peft_type"', b'"kind"', 16),
    (lora.WEIGHTS, b"{", b"", 16),
])  # fmt: skip
def test_what_is_no_adapter_of_the_model_is_refused(
    file: str, found: bytes, changed: bytes, rank: int, speaker: Found, taught: Path, tmp_path: Path
) -> None:
    for name in (lora.CONFIG, lora.WEIGHTS):
        (tmp_path / name).write_bytes((taught / name).read_bytes())
    content = (tmp_path / file).read_bytes()
    assert found in content
    (tmp_path / file).write_bytes(content.replace(found, changed, 1))
    options = msgspec.structs.replace(OPTIONS, lora=LoraOptions(rank=rank, alpha=32))
    with pytest.raises(InvalidSetting, match=r"^from: .* is no adapter of .*; name a folder of"):
        Tuner(speaker, tmp_path / "on", options, CPU, start=tmp_path)


@pytest.mark.parametrize("other", [{"rank": 8}, {"alpha": 16}])
def test_an_adapter_of_another_rank_is_not_gone_on_from(
    other: dict[str, int], speaker: Found, taught: Path, tmp_path: Path
) -> None:
    options = msgspec.structs.replace(OPTIONS, lora=LoraOptions(**({"rank": 16, "alpha": 32} | other)))
    told = f"its rank 16 and alpha 32 are not {options.lora.rank} and {options.lora.alpha}; name a folder of"
    with pytest.raises(InvalidSetting, match=f"^from: .* is no adapter of .* to go on from: {told}"):
        Tuner(speaker, tmp_path, options, CPU, start=taught)


def test_lora_is_on_every_linear_layer_and_on_nothing_else(speaker: Found, tmp_path: Path) -> None:
    tuner = Tuner(speaker, tmp_path, OPTIONS, CPU)
    names = {name.split(".lora_")[0].rsplit(".", 1)[-1] for name in tuner.weights()}
    assert names == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}


def test_dialogues_that_are_too_long_teach_nothing(speaker: Found, tmp_path: Path) -> None:
    short = msgspec.structs.replace(OPTIONS, form="dialogue", longest=10, judged=0)
    with pytest.raises(NothingToLearn, match="in 10 tokens"):
        Tuner(speaker, tmp_path, short, CPU).run(lessons(explained(2), "dialogue"), [])
