"""Measures Volteface on this machine.

python -m tests.benchmarks [--quick] [--only NAME ...] [--json FILE]
"""

import argparse
import importlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from rich.console import Console

from tests.benchmarks import machine, report
from tests.benchmarks.measuring import Result, Scale

NAMES = (
    "store",
    "agent_throughput",
    "turn_cost",
    "prefix_cache",
    "label_scoring",
    "reasoning",
    "engine_cost",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what was asked for, show it, and write it where it was asked for."""
    asked = _parser().parse_args(arguments)
    console, described = Console(), machine.described()
    results: list[Result] = []
    for name in asked.only or NAMES:
        with console.status(f"measuring {name}"):
            results.append(_measured(name, Scale(asked.quick)))
    report.show(console, described, results)
    if asked.json is not None:
        report.write(asked.json, described, results, quick=asked.quick)


def _measured(name: str, scale: Scale) -> Result:
    # Imported late: not every benchmark needs torch, which takes seconds and memory.
    run: Callable[[Scale], Result] = importlib.import_module(f"tests.benchmarks.{name}").run
    start = time.perf_counter()
    result = run(scale)
    return msgspec.structs.replace(result, seconds=time.perf_counter() - start)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and records: a look, no result")
    parser.add_argument("--only", action="append", choices=NAMES, help="one benchmark; may be repeated")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there as well")
    return parser


if __name__ == "__main__":
    main()
