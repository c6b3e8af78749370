"""What a check is. It knows nothing of what is checked."""

import enum
from collections.abc import Callable, Iterable
from typing import Any

import msgspec


class Status(enum.StrEnum):
    """How a check ended; only `failed` makes doctor's exit status 1."""

    OK = "ok"
    WARNING = "warning"  # it works, but not as it should in production
    FAILED = "failed"
    SKIPPED = "skipped"  # does not apply here, or could not be looked at


class Check(msgspec.Struct, frozen=True):
    """One thing looked at: how it is, what was found, and what to set or run where it is wrong."""

    name: str
    status: Status
    found: str
    remedy: str = ""

    def __post_init__(self) -> None:
        """A complaint without a remedy is a defect of the check."""
        if self.status in (Status.WARNING, Status.FAILED) and not self.remedy:
            raise ValueError(f"{self.name}: {self.status} without a remedy")


def ok(name: str, found: str) -> Check:
    """All is as it should be."""
    return Check(name, Status.OK, found)


def warning(name: str, found: str, remedy: str) -> Check:
    """It works, but something is lost or weaker."""
    return Check(name, Status.WARNING, found, remedy)


def failed(name: str, found: str, remedy: str) -> Check:
    """It does not work."""
    return Check(name, Status.FAILED, found, remedy)


def skipped(name: str, found: str, remedy: str = "") -> Check:
    """Nothing to check, or no way to look."""
    return Check(name, Status.SKIPPED, found, remedy)


def broken(name: str, error: Exception) -> Check:
    """A check that itself failed: what it was to find is not known."""
    return failed(name, f"this check broke: {error!r}", "report it as a defect of volteface doctor")


def evaluated(checks: Iterable[Callable[..., Check]], *facts: Any) -> list[Check]:
    """Every check's answer on the same facts; one that breaks hides no other."""
    return [_evaluated(check, facts) for check in checks]


def _evaluated(check: Callable[..., Check], facts: tuple[Any, ...]) -> Check:
    try:
        return check(*facts)
    except Exception as error:  # the others must still be seen
        return broken(check.__name__, error)
