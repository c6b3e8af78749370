"""The house's own rules: style, types, sizes, and that what README says is what CI runs."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sources import parsed

ROOT = Path(__file__).parent.parent
PACKAGES = ("tracker", "models", "stream", "deploy")
LONGEST_MODULE, LONGEST_FUNCTION = 500, 40


def _commands() -> list[str]:
    return re.findall(r"```sh\n(.+?)\n```", (ROOT / "README.md").read_text(encoding="utf-8"))


def test_ci_runs_the_readmes_second_command() -> None:
    assert _commands()[1] in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_the_readmes_first_command_runs_the_demo() -> None:
    assert _commands()[0].endswith("volteface demo")


@pytest.mark.parametrize(
    "command",
    [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]],
    ids=["ruff-check", "ruff-format", "mypy"],
)
@pytest.mark.timeout(600)
def test_style_and_types(command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, timeout=590, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _modules() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("path", _modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_and_functions_stay_small(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert source.count("\n") <= LONGEST_MODULE
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= LONGEST_FUNCTION, f"{node.name}: {lines} lines"
