from pathlib import Path

import msgspec
import pytest
import torch
from safetensors.torch import load_file, save_file

from models.encoder.adapter import CONFIG, WEIGHTS, AdapterConfig, Lora, read_config
from models.language.settings import InvalidSetting
from models.training.averaging import average

BASE = AdapterConfig(base="e5", base_revision="1")


def adapter(folder: Path, *values: float, config: AdapterConfig = BASE, name: str = "w") -> Path:
    folder.mkdir()
    save_file({name: torch.tensor(values, dtype=torch.float16)}, folder / WEIGHTS)
    (folder / CONFIG).write_bytes(msgspec.json.encode(config))
    return folder


def test_every_tensor_is_the_mean_and_keeps_its_format(tmp_path: Path) -> None:
    parts = [
        adapter(tmp_path / "a", 1.0, 2.0),
        adapter(tmp_path / "b", 3.0, 2.0),
        adapter(tmp_path / "c", 5.0, 5.0),
    ]
    average(parts, tmp_path / "out")
    found = load_file(tmp_path / "out" / WEIGHTS)["w"]
    assert found.dtype is torch.float16
    assert found.tolist() == [3.0, 3.0]
    assert read_config(tmp_path / "out") == BASE


def test_large_weights_of_fp16_do_not_overflow_on_the_way(tmp_path: Path) -> None:
    average([adapter(tmp_path / "a", 60_000.0), adapter(tmp_path / "b", 60_000.0)], tmp_path / "out")
    assert load_file(tmp_path / "out" / WEIGHTS)["w"].tolist() == [60_000.0]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"config": AdapterConfig(base="e5", base_revision="2")}, "stands on 2"),
        ({"config": AdapterConfig(base="e5", base_revision="1", sides=True)}, "its sides True"),
        ({"config": AdapterConfig(base="e5", base_revision="1", lora=Lora(8, 16))}, "is LoRA's"),
        ({"name": "v"}, "other tensors"),
    ],
)
def test_what_has_no_mean_is_refused_by_name(tmp_path: Path, other: dict[str, object], said: str) -> None:
    parts = [adapter(tmp_path / "a", 1.0), adapter(tmp_path / "b", 1.0, **other)]  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match=said):
        average(parts, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_one_alone_and_a_folder_that_is_taken_are_refused(tmp_path: Path) -> None:
    one = adapter(tmp_path / "a", 1.0)
    with pytest.raises(InvalidSetting, match="at least two"):
        average([one], tmp_path / "out")
    with pytest.raises(FileExistsError, match="name a new folder"):
        average([one, one], one)
