from pathlib import Path

import msgspec
import pytest
import torch
from torch import nn

from models.training import checkpoints, journal
from models.training.checkpoints import Run, RunMismatch, Standing
from models.training.journal import Journal, Means
from models.training.options import EncoderOptions

RUN = Run(options=EncoderOptions(), base_revision="1", data=("open",), examples="abc")


def test_a_folder_holds_one_run(tmp_path: Path) -> None:
    checkpoints.begin(tmp_path / "run", RUN, resume=False)
    checkpoints.begin(tmp_path / "run", RUN, resume=True)
    with pytest.raises(RunMismatch, match="resume it, or name another"):
        checkpoints.begin(tmp_path / "run", RUN, resume=False)
    other = msgspec.structs.replace(RUN, options=EncoderOptions(seed=1, batch=2), examples="abd")
    with pytest.raises(RunMismatch, match="another run: examples, batch, seed differ"):
        checkpoints.begin(tmp_path / "run", other, resume=True)


def test_resuming_what_never_began_begins(tmp_path: Path) -> None:
    checkpoints.begin(tmp_path / "run", RUN, resume=True)
    layer = nn.Linear(2, 2)
    assert checkpoints.restore(tmp_path / "run", layer, torch.optim.AdamW(layer.parameters())) == Standing()


def test_all_comes_back(tmp_path: Path) -> None:
    layer = nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(layer.parameters())
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    checkpoints.save(
        tmp_path, Standing(step=3, best=0.5, best_epoch=1), dict(layer.named_parameters()), optimizer
    )
    again = nn.Linear(2, 2)
    restored = torch.optim.AdamW(again.parameters())
    assert checkpoints.restore(tmp_path, again, restored) == Standing(step=3, best=0.5, best_epoch=1)
    assert torch.equal(again.weight, layer.weight)
    assert torch.equal(restored.state[again.weight]["exp_avg"], optimizer.state[layer.weight]["exp_avg"])
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.pt"]


def test_a_journal_goes_back_to_its_checkpoint(tmp_path: Path) -> None:
    first = Journal(tmp_path, 0)
    for step in (10, 20, 30):
        first.write("train", step, loss=1.0 / step)
    with (tmp_path / journal.FILE).open("ab") as file:
        file.write(b'{"kind": "train", "st')  # as a kill leaves it
    Journal(tmp_path, 20).write("dev", 20, f1=0.5)
    assert [line["step"] for line in journal.read(tmp_path, "train")] == [10, 20]
    assert journal.read(tmp_path, "dev") == [{"kind": "dev", "step": 20, "f1": 0.5}]


def test_means_begin_anew_when_taken() -> None:
    means = Means()
    for loss in (1.0, 3.0):
        means.add({"loss": loss})
    assert means.take() == {"loss": 2.0}
    means.add({"loss": 5.0})
    assert means.take() == {"loss": 5.0}
