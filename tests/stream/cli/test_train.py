"""`volteface train` on a small file and a tiny encoder."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from models.training import journal
from stream.cli.train import app
from tests.models.encoder.tiny import make_encoder

LABELS = {"emotion": "joy", "sentiment": "positive", "media": None}
FLIP = {"trigger": "factual_logical", "trigger_turns": [1], "rationale": "it says so"}
TEXTS = ("yes", "1 2 3", "never")
NO_FLIP = {"trigger": None, "trigger_turns": [], "rationale": None}


def line(ident: str, split: str) -> dict[str, object]:
    """a supports, b says nothing, a opposes because of b."""
    stances = ["support", "unknown", "oppose"]
    turns = [
        {"i": at, "speaker": speaker, "reply_to": None, "text": text, **LABELS, "stance": stance,
         "expressed": "none" if stance == "unknown" else stance, "flip": at == 2,
         **(FLIP if at == 2 else NO_FLIP)}
        for at, (speaker, text, stance) in enumerate(zip("aba", TEXTS, stances, strict=True))
    ]  # fmt: skip
    about = {"domain": "Work", "register": "team chat", "proposition": "get a dog", "speakers": ["a", "b"]}
    return {"id": ident, "language": "en", "split": split, **about, "turns": turns}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "talk.jsonl"
    rows = [line(f"d{at}", "dev" if at % 4 == 0 else "train") for at in range(12)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return make_encoder(tmp_path / "encoder")


def invoke(*arguments: object) -> Result:
    environment = {
        "VOLTEFACE_CONFIG": "",
        "VOLTEFACE_DEVICE": "cpu",
        "VOLTEFACE_DTYPE": "float32",
        "VOLTEFACE_THREADS": "1",
    }
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env=environment)


def test_a_run_a_second_one_a_resumed_one_and_its_policy(data: Path, base: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    asked = ("encoder", "--data", data, "--base", base, "--out", out, "--epochs", 2, "--batch", 4)
    result = invoke(*asked)
    assert result.exit_code == 0, result.output
    assert f"volteface train policy {out}" in result.output
    assert {path.name for path in out.iterdir()} == {
        "checkpoint.pt", "config.json", "metrics.jsonl", "model.safetensors", "training.json",
    }  # fmt: skip
    assert [figures["epoch"] for figures in journal.read(out, "dev")] == [1, 2]
    weights = (out / "model.safetensors").read_bytes()

    again = invoke(*asked)
    assert again.exit_code == 1
    assert "holds a run already" in again.output
    other = invoke(*asked, "--resume", "--seed", 1)
    assert "another run: seed differ" in other.output
    assert invoke(*asked, "--resume").exit_code == 0
    assert (out / "model.safetensors").read_bytes() == weights

    fitted = invoke("policy", out, "--data", data, "--base", base)
    assert fitted.exit_code == 0, fitted.output
    assert f"stored: {out / 'policy.toml'}" in fitted.output
    assert "flip_exact_f1" in fitted.output
    assert json.loads((out / "calibration.json").read_bytes())["expressed"] > 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"--data": "/nowhere"}, "/nowhere"),
        ({"--data": "mt-csd=/nowhere"}, "not for what is shipped"),
        ({"--data": "oracle=/nowhere"}, "no source 'oracle'"),
        ({"--base": "/nowhere"}, "holds no model"),
    ],
)
def test_what_cannot_be_done_is_said(
    data: Path, base: Path, tmp_path: Path, changes: dict[str, str], said: str
) -> None:
    options = {"--data": data, "--base": base, "--out": tmp_path / "run"} | changes
    result = invoke("encoder", *(part for pair in options.items() for part in pair))
    assert result.exit_code == 1
    assert said in result.output
    assert "Traceback" not in result.output


def test_a_policy_of_nothing_is_refused(data: Path, base: Path, tmp_path: Path) -> None:
    result = invoke("policy", tmp_path, "--data", data, "--base", base)
    assert result.exit_code == 1
    assert "volteface train encoder" in result.output


def test_lora_is_one_option(data: Path, base: Path, tmp_path: Path) -> None:
    out = tmp_path / "lora"
    asked = ("--data", data, "--base", base, "--out", out, "--epochs", 1, "--lora", 4)
    assert invoke("encoder", *asked).exit_code == 0
    assert json.loads((out / "config.json").read_bytes())["lora"] == {"rank": 4, "alpha": 8}
    assert json.loads((out / "training.json").read_bytes())["options"]["rate"] == 5e-4


def test_options_come_from_a_file_and_the_command_has_the_last_word(
    data: Path, base: Path, tmp_path: Path
) -> None:
    file, out = tmp_path / "ablation.toml", tmp_path / "run"
    file.write_text("turned = 0.0\nepochs = 2\nbatch = 5\n[weights]\nsides = 0.0\n", encoding="utf-8")
    asked = ("encoder", "--data", data, "--base", base, "--out", out, "--options", file, "--epochs", 1)
    assert invoke(*asked).exit_code == 0
    options = json.loads((out / "training.json").read_bytes())["options"]
    assert (options["turned"], options["epochs"], options["batch"]) == (0.0, 1, 5)
    assert (options["weights"]["sides"], options["weights"]["expressed"]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("turnd = 0.1", "turnd"),
        ("turned = 2.0", "$.turned"),
        ("[weights]\nsides = 'much'", "$.weights.sides"),
        ("turned =", "Invalid value"),
    ],
)
def test_a_wrong_options_file_says_where(text: str, said: str, data: Path, tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(text, encoding="utf-8")
    result = invoke("encoder", "--data", data, "--out", tmp_path / "run", "--options", file)
    assert result.exit_code == 1
    assert said in result.output
    assert not (tmp_path / "run").exists()
