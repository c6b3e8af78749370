"""Settings of a test, and checks by name."""

from collections.abc import Iterable

from stream.doctor import Check
from stream.settings import Settings, load


def settings(**values: object) -> Settings:
    return load({f"VOLTEFACE_{name.upper()}": str(value) for name, value in values.items()})


def by_name(checks: Iterable[Check]) -> dict[str, Check]:
    found = {check.name: check for check in checks}
    assert all(check.remedy for check in found.values() if check.status in {"warning", "failed"})
    return found
