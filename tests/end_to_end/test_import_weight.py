"""What must be quick is quick: no command imports torch before it needs a model."""

import subprocess
import sys
import time

import pytest

from tests.end_to_end.harness import ROOT

HEAVY = ("torch", "transformers", "peft")
HELP_SECONDS = 2.0


def run(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("module", ["stream.cli.main", "stream.roles", "stream.app"])
def test_importing_the_command_line_imports_no_model_library(module: str) -> None:
    assert run("-c", f"import sys, {module}; print(sorted(set({HEAVY}) & set(sys.modules)))").strip() == "[]"


def test_help_is_there_soon() -> None:
    took = []
    for _ in range(3):  # the machine may be busy once
        began = time.monotonic()
        assert "replay" in run("-m", "stream.cli.main", "--help")
        took.append(time.monotonic() - began)
    assert min(took) < HELP_SECONDS
