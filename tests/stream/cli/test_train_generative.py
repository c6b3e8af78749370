"""`volteface train reasoning|reflection|alignment` on a small file and a tiny language model."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import typer

from models.training import journal
from stream.cli import train, train_generative
from stream.settings import Settings
from tests.models.language.tiny import make_model
from tests.stream.cli.test_train import invoke, line


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "talk.jsonl"
    rows = [line(f"d{at}", "dev" if at % 2 == 0 else "train") for at in range(4)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("speaker"))


def test_two_stages_a_second_run_and_a_resumed_one(data: Path, base: Path, tmp_path: Path) -> None:
    out, on = tmp_path / "run", tmp_path / "on"
    asked = ("reasoning", "--data", data, "--base", base, "--out", out, "--epochs", 1, "--language", "en")
    result = invoke(*asked)
    assert result.exit_code == 0, result.output
    assert f"VOLTEFACE_ADAPTER={out}" in result.output
    assert {path.name for path in out.iterdir()} == {
        "checkpoint.pt", "adapter_config.json", "metrics.jsonl", "adapter_model.safetensors", "training.json",
    }  # fmt: skip
    assert [figures["epoch"] for figures in journal.read(out, "dev")] == [1]
    assert "holds a run already" in invoke(*asked).output
    assert "another run: seed differ" in invoke(*asked, "--resume", "--seed", 1).output
    assert invoke(*asked, "--resume").exit_code == 0

    fitted = invoke("policy", out, "--data", data, "--base", base, "--language", "en")
    assert fitted.exit_code == 0, fitted.output
    assert (out / "policy.toml").read_text().startswith('name = "run"')
    assert not (out / "calibration.json").exists()

    again = ("reflection", "--from", out, "--data", data, "--base", base, "--out", on, "--judge", 0)
    result = invoke(*again)
    assert result.exit_code == 0, result.output
    assert "+" in json.loads((on / "training.json").read_bytes())["base_revision"]
    assert "run of another kind" in invoke(*again[:-4], "--out", out, "--resume").output


def test_the_papers_form_is_an_option_of_both_stages(data: Path, base: Path, tmp_path: Path) -> None:
    out, on = tmp_path / "run", tmp_path / "on"
    asked = ("--data", data, "--base", base, "--form", "dialogue", "--judge", 0, "--epochs", 1)
    assert invoke("reasoning", *asked, "--out", out).exit_code == 0
    assert invoke("reflection", *asked, "--from", out, "--out", on).exit_code == 0
    for folder in (out, on):
        assert json.loads((folder / "training.json").read_bytes())["options"]["form"] == "dialogue"


def test_what_stages_share_they_ask_alike() -> None:
    asked = {name: options(name) for name in ("alignment", "reasoning", "reflection")}
    assert asked["reflection"] == asked["reasoning"] | {"start": asked["reflection"]["start"]}
    shared = asked["alignment"].keys() & asked["reasoning"].keys()
    assert shared >= {"out", "config", "base", "epochs", "quantize", "seed", "resume", "checkpoint"}
    assert all(asked["alignment"][name] == asked["reasoning"][name] for name in shared)
    for name in asked:
        said = invoke(name, "--help")
        assert said.exit_code == 0
        assert "--checkpoint" in said.output


def options(name: str) -> dict[str, tuple[object, ...]]:
    """A command's options: how each is given, what it falls back to, and its help."""
    command = typer.main.get_command(train.app).commands[name]
    return {
        one.name: (one.opts, one.default, one.required, one.help)
        for one in command.params
        if one.name != "help"
    }


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without a GPU")
def test_what_needs_a_gpu_is_refused_and_leaves_no_run_behind(data: Path, base: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    asked = ("reasoning", "--data", data, "--base", base, "--out", out, "--config", "paper")
    result = invoke(*asked)
    assert result.exit_code == 1
    assert "quantize: int8 needs a GPU" in result.output
    assert "--quantize none" in result.output
    assert not out.exists()
    assert invoke(*asked, "--quantize", "none", "--judge", 0, "--epochs", 1).exit_code == 0
    assert json.loads((out / "training.json").read_bytes())["options"]["accumulation"] == 32


def test_data_without_a_dev_part_leave_no_run_behind(base: Path, tmp_path: Path) -> None:
    data, out = tmp_path / "taught.jsonl", tmp_path / "run"
    data.write_text(json.dumps(line("d1", "train")), encoding="utf-8")
    result = invoke("reasoning", "--data", data, "--base", base, "--out", out)
    assert result.exit_code == 1
    assert "no dialogues in part dev" in result.output
    assert not out.exists()


def test_what_is_no_adapter_cannot_be_gone_on_from(data: Path, base: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    asked = ("--data", data, "--base", base, "--out", out, "--from", tmp_path)
    result = invoke("reflection", *asked)
    assert result.exit_code == 1
    assert f"from: {tmp_path} has no adapter_config.json; name a folder of volteface train" in result.output
    assert not out.exists()


def test_a_folder_without_pairs_is_named(base: Path, tmp_path: Path) -> None:
    result = invoke("alignment", "--pairs", tmp_path, "--base", base, "--out", tmp_path / "run")
    assert result.exit_code == 1
    assert "has no pairs.jsonl" in result.output
    assert not (tmp_path / "run").exists()


def test_a_model_that_settings_name_for_another_reader_is_not_taught(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.language.weights.resolve", lambda weight, **where: weight.name)
    embedded = train_generative.language_model(None, Settings(reader="encoder", model=Path("e5")))
    assert embedded == "SmolLM2-135M-Instruct"
    assert train_generative.language_model(None, Settings(reader="generative", model=base)).folder == base
    assert train_generative.language_model(base, Settings(reader="encoder", model=Path("e5"))).folder == base


def test_an_unspoken_language_is_named(data: Path, base: Path, tmp_path: Path) -> None:
    result = invoke("reasoning", "--data", data, "--base", base, "--out", tmp_path / "o", "--language", "zh")
    assert result.exit_code == 1
    assert "no dialogues in language 'zh' in part train" in result.output


def test_a_projector_is_trained_from_pairs(base: Path, tmp_path: Path) -> None:
    pairs, out = tmp_path / "pairs", tmp_path / "run"
    pairs.mkdir()
    np.save(pairs / "a.npy", np.ones(8, dtype=np.float32))
    (pairs / "pairs.jsonl").write_text('{"id": "a", "vector": "a.npy", "caption": "a dog"}')
    asked = ("alignment", "--pairs", pairs, "--base", base, "--out", out)
    assert invoke(*asked).exit_code == 0
    assert invoke(*asked, "--resume").exit_code == 0
    assert {"projector.json", "projector.safetensors"} <= {path.name for path in out.iterdir()}
