"""Who may import whom, and that the tracker is pure: no I/O, no clock, no chance, no heavy library."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sources import parsed

ROOT = Path(__file__).parent.parent
PACKAGES = ("tracker", "models", "stream")
FILES = {name: sorted((ROOT / name).rglob("*.py")) for name in (*PACKAGES, "deploy")}
TRACKER = FILES["tracker"]
HEAVY = ("torch", "faust", "redis", "aiohttp", "transformers")
IMPURE_MODULES = frozenset(
    {"asyncio", "io", "logging", "multiprocessing", "os", "pathlib", "random", "secrets", "shutil", "socket"}
    | {"subprocess", "tempfile", "threading", "time", "uuid"}
)
IMPURE_CALLS = frozenset({"open", "input", "print", "now", "utcnow", "today", "uuid1", "uuid4", "getenv"})


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _imported(path: Path) -> Iterator[str]:
    """The full names of the modules that a file imports, wherever in it."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = path.relative_to(ROOT).parts[: -node.level] if node.level else ()
            yield ".".join((*package, *([node.module] if node.module else [])))


def _roots(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in _imported(path)}


def _called(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call):
            yield node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


@pytest.mark.parametrize("path", TRACKER, ids=_name)
def test_tracker_imports_the_standard_library_msgspec_and_itself(path: Path) -> None:
    assert _roots(path) - {"tracker", "msgspec"} <= sys.stdlib_module_names - IMPURE_MODULES


@pytest.mark.parametrize("path", TRACKER, ids=_name)
def test_tracker_asks_no_clock_no_chance_and_no_file(path: Path) -> None:
    assert not IMPURE_CALLS & set(_called(path))


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_what_stands_left_of_it(package: str) -> None:
    right = set(PACKAGES[PACKAGES.index(package) + 1 :])
    wrong = {_name(path): found for path in FILES[package] if (found := _roots(path) & right)}
    assert not wrong


@pytest.mark.parametrize("package", FILES)
def test_nothing_imports_tests(package: str) -> None:
    assert [_name(path) for path in FILES[package] if _roots(path) & {"tests", "conftest", "pytest"}] == []


def test_the_tracker_runs_without_any_heavy_library() -> None:
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in TRACKER]
    code = (
        f"import importlib, sys; [importlib.import_module(name) for name in {modules}];"
        f" print(sorted(set({HEAVY}) & set(sys.modules)))"
    )
    found = subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True, timeout=60)
    assert found.strip() == "[]"
