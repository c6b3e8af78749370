import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from models.language.registry import Built, InvalidSetting, ReaderSettings, build_engine
from models.language.rule import RuleEngine


def test_rule_needs_no_weights() -> None:
    assert isinstance(build_engine(ReaderSettings(engine="rule")), RuleEngine)


def test_generative_reads_the_folder_that_is_named(tiny_folder: Path) -> None:
    from models.language.generative import GenerativeEngine

    settings = ReaderSettings(path=tiny_folder, device="cpu", threads=1, budget_tokens=256)
    assert isinstance(build_engine(settings), GenerativeEngine)


def test_an_unknown_engine_is_named_with_the_known_ones() -> None:
    with pytest.raises(
        InvalidSetting, match=r"^engine: no engine 'oracle'; use one of encoder, generative, remote, rule$"
    ):
        build_engine(ReaderSettings(engine="oracle"))


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"threads": 0}, "threads"),
        ({"dtype": "int3"}, "dtype"),
        ({"budget_tokens": 1}, "budget_tokens"),
        ({"enigne": "rule"}, "enigne"),
    ],
)
def test_settings_from_a_file_are_checked(given: dict[str, object], named: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=named):
        msgspec.convert(given, ReaderSettings)


def test_rule_starts_without_torch() -> None:
    code = (
        "import sys; from models.language.registry import *; build_engine(ReaderSettings(engine='rule'));"
        "sys.exit(any(name in sys.modules for name in ('torch', 'transformers', 'huggingface_hub')))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def tiny_settings(folder: Path, **given: object) -> ReaderSettings:
    settings = ReaderSettings(path=folder, device="cpu", threads=1, budget_tokens=256)
    return msgspec.structs.replace(settings, **given)


def test_critic_and_cartographer_talk_with_the_engines_own_model(
    tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from models.language import generative
    from models.reader import Proposer
    from models.reasoning.incremental import ReasoningEngine

    loaded, load = [], generative.backbone_from
    monkeypatch.setattr(generative, "backbone_from", lambda asked: loaded.append(asked) or load(asked))
    built: dict[ReaderSettings, Built] = {}
    plain = build_engine(tiny_settings(tiny_folder), built)
    critical = build_engine(tiny_settings(tiny_folder, critic=True), built)
    finding = build_engine(tiny_settings(tiny_folder, critic=True, finds=True), built)
    assert isinstance(plain, generative.GenerativeEngine)
    assert isinstance(critical, ReasoningEngine)
    assert not isinstance(critical, Proposer)
    assert isinstance(finding, Proposer)
    assert loaded == [tiny_settings(tiny_folder)]


@pytest.mark.parametrize(("engine", "asked", "field"), [
    ("rule", {"critic": True}, "critic"), ("encoder", {"finds": True}, "targets"),
])  # fmt: skip
def test_an_engine_that_cannot_be_talked_to_reasons_about_nothing(
    engine: str, asked: dict[str, bool], field: str
) -> None:
    with pytest.raises(
        InvalidSetting, match=f"^{field}: engine {engine} cannot be talked to; use generative"
    ):
        build_engine(ReaderSettings(engine=engine, **asked))


def test_a_model_too_small_to_reason_with_is_named(
    tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from models.language.backbone import Backbone

    monkeypatch.setattr(Backbone, "positions", 800)
    with pytest.raises(InvalidSetting, match=r"^model: .* leave no room for a dialogue"):
        build_engine(tiny_settings(tiny_folder, critic=True))


def test_a_server_is_talked_to_over_the_engines_own_client() -> None:
    from models.reader import Proposer

    settings = ReaderSettings(
        engine="remote", remote_url="http://127.0.0.1:9/v1", remote_model="m", critic=True, finds=True
    )
    engine = build_engine(settings)
    try:
        assert isinstance(engine, Proposer)
        assert engine._cartographer._chat._client is engine._engine._engine._client
    finally:
        engine.close()
