"""`volteface eval` on a small file, by engine `rule`."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from models.evaluation.patience import Patient
from models.language.rule import RuleEngine
from models.language.settings import ReaderSettings
from models.reader import Engine, ObserveRequest, ReaderUnavailable
from models.reasoning.dialogue import WholeDialogue
from models.reasoning.roles import Roles
from models.reasoning.room import Room
from models.routing import RoutedEngine
from stream import evaluating
from stream.cli.evaluate import evaluate
from stream.settings import Settings, load
from tests.models.language.scripted import ScriptedChat
from tracker.observations import Observation
from tracker.policy import Policy, Threshold

LABELS = {"emotion": "neutral", "sentiment": "neutral"}
KEPT = {"report.json", "tables.txt", "predictions-rule.jsonl", "predictions-majority.jsonl"}


def line(ident: str, split: str, language: str = "en") -> dict[str, object]:
    """a supports, b says nothing, a opposes because of b; in the benchmark's full form."""
    stances = ["support", "unknown", "oppose"]
    turns = [
        {"i": index, "speaker": speaker, "reply_to": None, "text": text, "media": None, **LABELS,
         "expressed": "none" if stance == "unknown" else stance, "stance": stance, "flip": index == 2,
         "trigger": None, "trigger_turns": [], "rationale": None}
        for index, (speaker, text, stance) in enumerate(zip("aba", ["+1", "hm", "-1"], stances, strict=True))
    ]  # fmt: skip
    turns[2] |= {"trigger": "factual_logical", "trigger_turns": [1], "rationale": "it says so"}
    about = {"domain": "Work", "register": "team chat", "proposition": "whether x", "speakers": ["a", "b"]}
    return {"id": ident, "language": language, "split": split, **about, "turns": turns}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "talk.jsonl"
    rows = [line("d1", "test"), line("d2", "test", "zh"), line("d3", "train"), line("d4", "dev")]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def invoke(*arguments: object) -> Result:
    app = typer.Typer()
    app.command()(evaluate)
    environment = {"VOLTEFACE_READER": "rule", "VOLTEFACE_CONFIG": "", "COLUMNS": "240"}
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env=environment)


def test_figures_files_and_tables(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = invoke("--data", data, "--out", out, "--baseline", "majority", "--bootstrap", 20, "--seed", 7)
    assert result.exit_code == 0, result.output
    assert {path.name for path in out.iterdir()} >= KEPT
    made = json.loads((out / "report.json").read_bytes())
    assert (made["split"], made["resampling"]) == ("test", {"times": 20, "seed": 7, "level": 0.95})
    rule, majority = made["systems"]
    assert (rule["name"], majority["name"]) == ("rule", "majority")
    assert rule["parts"]["all"]["live"]["flip_trigger_turn_f1"]["value"] == 1.0
    assert majority["parts"]["all"]["live"]["flip_any_f1"]["value"] == 0.0
    assert "language=zh" in result.stdout
    first = json.loads((out / "predictions-rule.jsonl").read_bytes().splitlines()[0])
    assert [turn["stance"] for turn in first["turns"]] == ["support", "unknown", "oppose"]


def test_the_default_baselines_and_none(data: Path) -> None:
    shown = invoke("--data", data, "--bootstrap", 5).stdout
    assert all(name in shown for name in ("persistence", "majority", "lexicon"))
    assert "majority" not in invoke("--data", data, "--bootstrap", 5, "--baseline", "none").stdout


def test_embeddings_judge_without_a_server(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = invoke(
        "--data", data, "--out", out, "--bootstrap", 5, "--baseline", "none", "--judge", "embeddings"
    )
    assert result.exit_code == 0, result.output
    assert json.loads((out / "report.json").read_bytes())["judge"] == "multilingual-e5-small, cosine >= 0.92"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--judge", "oracle"), "oracle"),
        (("--data", "/nowhere"), "/nowhere"),
        (("--reader", "oracle"), "VOLTEFACE_READER"),
    ],
)
def test_what_cannot_be_done_is_said(data: Path, arguments: tuple[str, ...], said: str) -> None:
    result = invoke("--data", data, *arguments)
    assert result.exit_code != 0
    assert said in result.output
    assert "Traceback" not in result.output


def test_a_reader_that_stays_away_is_named_and_nothing_is_written(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Away(RuleEngine):
        def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
            raise ReaderUnavailable("the remote server: status 503")

    def engine(settings: Settings) -> Callable[[], Engine]:
        return lambda: RoutedEngine({"zh": Away()}, RuleEngine(), lambda turn, window: turn.language or "und")

    monkeypatch.setattr("stream.roles.engine_factory", engine)
    monkeypatch.setattr("stream.evaluating.Patient", partial(Patient, sleep=lambda seconds: None))
    result = invoke("--data", data, "--out", tmp_path / "out", "--baseline", "none", "--bootstrap", 5)
    assert result.exit_code == 1
    told = "volteface eval: rule gave no answer for turns in zh, asked 6 times: the remote server: status 503"
    assert told in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_the_report_names_the_policy_of_every_reader(tmp_path: Path, data: Path) -> None:
    (tmp_path / "strict.toml").write_text('name = "strict"\n[flip]\nprobability = 0.9\n')
    config = tmp_path / "volteface.toml"
    config.write_text('reader = "rule"\n[[readers]]\nlanguages = ["zh"]\npolicy = "strict.toml"\n')
    (measured,) = evaluating.systems(load({"VOLTEFACE_CONFIG": str(config)}), [], str(data))
    strict = Policy(name="strict", flip=Threshold(0.9))
    assert measured.policy == f"{Policy().stamp}, zh: {strict.stamp}"


def test_an_empty_part_is_said(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps(line("d1", "train")), encoding="utf-8")
    assert "no dialogues with a proposition in part test" in invoke("--data", path).output


def test_no_plots_without_matplotlib_but_all_else(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*arguments: object) -> None:
        raise ImportError("No module named 'matplotlib'")

    monkeypatch.setattr("models.evaluation.plots.draw", missing)
    result = invoke("--data", data, "--out", tmp_path / "out", "--baseline", "majority", "--bootstrap", 5)
    assert result.exit_code == 0
    assert "volteface[train]" in result.output
    assert {path.name for path in (tmp_path / "out").iterdir()} == KEPT


def test_a_limit_draws_the_same_dialogues_from_all_languages() -> None:
    found = evaluating.dialogues("open", "test", 30)
    assert found == evaluating.dialogues("open", "test", 30)
    assert {dialogue.language for dialogue in found} == {"en", "zh", "es"}
    assert evaluating.dialogues("open", "test", 10) == found[:10]


def test_the_untuned_backbone_has_no_adapter() -> None:
    tuned = Settings(reader="generative", adapter=Path("lora-en"))
    names = [system.name for system in evaluating.systems(tuned, ["untuned"], "open")]
    assert names == ["generative-lora-en", "untuned"]
    bare = Settings(reader="generative")
    assert [system.name for system in evaluating.systems(bare, ["untuned"], "open")] == ["generative"]


def test_priors_come_from_the_training_part(data: Path) -> None:
    assert evaluating.priors(str(data)).expressed.value in {"support", "oppose"}
    assert evaluating.priors("/nowhere").expressed.value == "support"


def test_the_whole_dialogue_form_stands_in_the_same_table(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = ScriptedChat({"stand after": ["support", "unknown", "oppose"] * 2, "Which turn": "2"})
    roles = Roles(chat, Room(5000, whole=True))
    monkeypatch.setattr("models.reasoning.dialogue.from_settings", lambda asked: WholeDialogue(roles))
    out = tmp_path / "out"
    result = invoke("--data", data, "--form", "whole", "--baseline", "none", "--out", out, "--bootstrap", 5)
    assert result.exit_code == 0, result.output
    rule, whole = json.loads((out / "report.json").read_bytes())["systems"]
    assert (rule["name"], whole["name"]) == ("rule", "whole-dialogue")
    assert whole["policy"].startswith("likeliest@")
    assert whole["parts"]["all"]["live"]["flip_trigger_turn_f1"]["value"] == 1.0
    assert whole["parts"]["all"]["live"]["expressed_brier"]["value"] is None


def test_the_whole_dialogue_form_is_on_the_generative_readers_backbone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[ReaderSettings] = []
    monkeypatch.setattr("models.reasoning.dialogue.from_settings", lambda asked: made.append(asked) or Roles)
    monkeypatch.setattr(Roles, "run", None, raising=False)
    own = Settings(reader="generative", model=Path("m"), adapter=Path("lora"))
    other = Settings(reader="encoder", model=Path("e5"), adapter=Path("heads"))
    for asked in (own, other):
        evaluating.systems(asked, [], "open", whole=True)[1].load()
    assert [(one.engine, one.path, one.adapter) for one in made] == [
        ("generative", Path("m"), Path("lora")),
        ("generative", None, None),
    ]
