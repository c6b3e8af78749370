"""The machine that a benchmark ran on, as far as it explains the figures."""

import importlib.metadata
import os
import platform
import sys
from pathlib import Path

PACKAGES = ("torch", "transformers", "faust-streaming", "aiokafka", "redis", "msgspec", "numpy")


def described() -> dict[str, str | int | float]:
    """Processor, cores, memory, load, system, and versions."""
    return {
        "cpu": _field("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "memory": _field("/proc/meminfo", "MemTotal") or "unknown",
        "load": round(os.getloadavg()[0], 2),  # before the first benchmark: above 0 means others work here
        "system": platform.platform(),
        "python": sys.version.split()[0],
        **{name: importlib.metadata.version(name) for name in PACKAGES},
    }


def memory(name: str) -> float:
    """MB of this process by one of the kernel's names: VmRSS is resident now, VmHWM at most so far."""
    return int(_field("/proc/self/status", name).partition(" ")[0] or 0) / 1024


def _field(path: str, name: str) -> str:
    """A field of one of proc's files; "" where there is none."""
    file = Path(path)
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    found = (line.partition(":")[2].strip() for line in lines if line.startswith(name))
    return next(found, "")
