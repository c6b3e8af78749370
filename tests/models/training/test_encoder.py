import subprocess
import sys
from pathlib import Path

import pytest
import torch

from models.encoder import adapter
from models.encoder.adapter import Lora
from models.encoder.engine import EncoderEngine
from models.encoder.loading import load
from models.language.backbone import Placement
from models.language.weights import Found
from models.training import journal
from models.training.checkpoints import CHECKPOINT
from models.training.encoder import Trainer, rate
from models.training.examples import examples
from models.training.judging import judge
from models.training.loop import Step
from models.training.options import EncoderOptions
from tests.models.training.talks import corpus

ROOT = Path(__file__).parents[3]
CPU = Placement("cpu", "float32", threads=1)


def run(found: Found, out: Path, *kill_at: int) -> int:
    command = [sys.executable, "-m", "tests.models.training.tiny_run", found.folder, out, *map(str, kill_at)]
    return subprocess.run(command, cwd=ROOT, timeout=170, check=False, capture_output=True).returncode


@pytest.mark.timeout(600)
def test_killed_and_resumed_it_gives_the_same_weights_bit_for_bit(found: Found, tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert run(found, whole) == 0
    assert run(found, killed, 12) == -9  # between two checkpoints
    assert run(found, killed, 25) == -9  # in the second epoch
    assert run(found, killed) == 0
    one, other = (torch.load(folder / CHECKPOINT, weights_only=True) for folder in (whole, killed))
    assert one["standing"] == other["standing"]
    assert all(torch.equal(one["weights"][name], other["weights"][name]) for name in one["weights"])
    for file in (adapter.WEIGHTS, adapter.CONFIG):
        assert (whole / file).read_bytes() == (killed / file).read_bytes()
    figures = [journal.read(folder, "dev") for folder in (whole, killed)]
    assert figures[0] == figures[1]
    assert [line["epoch"] for line in figures[0]] == [1, 2]


@pytest.mark.parametrize("lora", [None, Lora(8, 16)])
def test_it_learns_and_the_adapter_it_leaves_reads_as_it_did(
    found: Found, out: Path, lora: Lora | None
) -> None:
    options = EncoderOptions(epochs=12, batch=4, rate=2e-3, tokens=96, lora=lora)
    out.mkdir()
    trainer = Trainer(found, out, options, CPU)
    seen: list[Step] = []
    dev = corpus(8, "dev")
    standing = trainer.run(examples(corpus(24)), dev, seen.append)
    assert seen[-1].step == seen[-1].steps == standing.step
    assert sum(step.loss for step in seen[-5:]) < 0.5 * sum(step.loss for step in seen[:5])
    assert standing.best > 0.5
    figures = judge(dev, EncoderEngine(load(found, out, CPU)))
    assert figures["flip_exact_f1"] == pytest.approx(standing.best, abs=0.15)  # fp16, and LoRA merged


def test_without_dev_the_last_epoch_stays(found: Found, out: Path) -> None:
    out.mkdir()
    trainer = Trainer(found, out, EncoderOptions(epochs=2, batch=8, tokens=96), CPU)
    assert trainer.run(examples(corpus(4)), []).best_epoch == 2
    assert (out / adapter.WEIGHTS).exists()


def test_a_run_goes_on_from_an_adapter(found: Found, out: Path, tmp_path: Path) -> None:
    out.mkdir()
    first = Trainer(found, out, EncoderOptions(epochs=6, batch=4, rate=2e-3, tokens=96), CPU)
    reached = first.run(examples(corpus(24)), corpus(8, "dev")).best
    options = EncoderOptions(epochs=1, batch=4, rate=1e-6, heads=10.0, tokens=96)
    again = Trainer(found, tmp_path, options, CPU, start=out)
    assert again.run(examples(corpus(24)), corpus(8, "dev")).best == pytest.approx(reached, abs=0.15)


def test_the_heads_learn_at_a_rate_of_their_own(found: Found, tmp_path: Path) -> None:
    options = EncoderOptions(batch=4, tokens=96, rate=1e-3, heads=10.0, warmup=0.0, epochs=1)
    trainer = Trainer(found, tmp_path, options, CPU)
    before = {name: values.clone() for name, values in adapter.trainable(trainer.network).items()}
    trainer.run(examples(corpus(2))[:4], [])
    moved = {
        name: (values - before[name]).abs().max().item()
        for name, values in adapter.trainable(trainer.network).items()
    }
    heads = max(change for name, change in moved.items() if not name.startswith("encoder."))
    encoder = max(change for name, change in moved.items() if name.startswith("encoder."))
    assert heads == pytest.approx(10 * encoder, rel=0.1)  # Adam's first step is the rate itself


def test_the_rate_goes_up_and_down_in_lines() -> None:
    options = EncoderOptions(rate=1.0, warmup=0.1)
    rates = [rate(step, 100, options) for step in range(100)]
    assert rates[:10] == pytest.approx([0.1 * step for step in range(1, 11)])
    assert rates[10:] == pytest.approx([(100 - step) / 90 for step in range(10, 100)])
