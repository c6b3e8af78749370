import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from models.language.registry import InvalidSetting, ReaderSettings, build_engine
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
