"""Measures Volteface on this machine.

python -m tests.benchmarks [--quick] [--only NAME ...] [--json FILE]
python -m tests.benchmarks --only soak [--minutes N] [--broker NAME] [--agents N] [--reader NAME]
"""

import argparse
import importlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

import msgspec
from rich.console import Console

from tests.benchmarks import machine, report
from tests.benchmarks.measuring import Result
from tests.benchmarks.plan import LEAST_MINUTES, MINUTES, BrokerName, Plan, ReaderName

NAMES = (
    "store",
    "agent_throughput",
    "turn_cost",
    "prefix_cache",
    "label_scoring",
    "reasoning",
    "engine_cost",
)
ALONE = ("soak",)  # takes half an hour, so only where it is asked for


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what was asked for, show it, and write it where it was asked for."""
    asked = _parser().parse_args(arguments)
    plan = Plan(asked.quick, asked.minutes, asked.broker, asked.agents, asked.reader)
    console, described = Console(), machine.described()
    results: list[Result] = []
    for name in asked.only or NAMES:
        with console.status(f"measuring {name}"):
            results.append(_measured(name, plan))
    report.show(console, described, results)
    if asked.json is not None:
        report.write(asked.json, described, results, quick=asked.quick)


def _measured(name: str, plan: Plan) -> Result:
    # Imported late: not every benchmark needs torch, which takes seconds and memory.
    run: Callable[[Plan], Result] = importlib.import_module(f"tests.benchmarks.{name}").run
    start = time.perf_counter()
    result = run(plan)
    return msgspec.structs.replace(result, seconds=time.perf_counter() - start)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and records: a look, no result")
    parser.add_argument(
        "--only", action="append", choices=(*NAMES, *ALONE), help="one benchmark; may be repeated"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything there as well")
    soak = parser.add_argument_group("soak")
    soak.add_argument("--minutes", type=float, help=f"at least {LEAST_MINUTES:g}; default {MINUTES:g}")
    soak.add_argument("--broker", choices=get_args(BrokerName), default="kafka", help="default kafka")
    soak.add_argument("--agents", type=int, choices=(1, 2), default=1, help="default 1")
    soak.add_argument("--reader", choices=get_args(ReaderName), default="rule", help="default rule")
    return parser


if __name__ == "__main__":
    main()
