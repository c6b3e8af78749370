"""Alert rules from a TOML file, checked whole: every wrong field is named with its remedy."""

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from stream.options import kind_of
from stream.sources import meant, read_toml
from tracker.alert_rules import KINDS, MOST_COUNT, MOST_REACH, MOST_TURNS, Kind, Rule, Severity
from tracker.stances import DEFINITE, Emotion, TriggerKind

MOST_RULES = 100
KEY = "rules"

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_DURATION = re.compile(r"\A(?P<number>\d{1,7})(?P<unit>[smhd])\Z")
_ROLES = frozenset({"exempt_roles", "exempt_kinds", "roles", "holder_kinds"})
_NO_ROLES = (
    "events carry no role: exempt roles by the policy's exempt_kinds (VOLTEFACE_POLICY), whose turns are "
    "then not read at all, or name holders in exempt_holders"
)
_DURATION_IS = f'write a whole number and s, m, h or d, as "10m", up to {MOST_REACH.days}d'
_PATTERNS = 'list globs, as ["support-*"]'
_EXPECTED = {
    "name": "give a name of its own: 1 to 64 of a-z, 0-9 and -, as against-the-plan",
    "kind": f"set one of {', '.join(Kind)}",
    "severity": f"set one of {', '.join(Severity)}",
    "cooldown": _DURATION_IS,
    "within": _DURATION_IS,
    "count": f"set a whole number of flips, from 2 to {MOST_COUNT}",
    "holders": f"set a whole number of holders, from 2 to {MOST_COUNT}",
    "turns": f"set a whole number of turns, from 1 to {MOST_TURNS}",
    "exempt_rooms": _PATTERNS,
    "exempt_holders": _PATTERNS,
    "tenants": 'list tenants by name, as ["default"]',
    "rooms": _PATTERNS,
    "targets": 'list ids, as ["t-5b0c9a7d1e22"]',
    "propositions": 'list globs of the text, as ["*nuclear power*"]',
    "from": f"list some of {', '.join(sorted(DEFINITE))}",
    "to": f"list some of {', '.join(sorted(DEFINITE))}",
    "emotions": f"list some of {', '.join(Emotion)}",
    "triggers": f"list some of {', '.join(TriggerKind)}",
    "confidence": "set a number from 0 to 1",
}


class RulesError(ValueError):
    """Rules that cannot be taken: what is wrong with each field, and its remedy."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problems))


def read(path: Path) -> tuple[Rule, ...]:
    """The rules of a file. Raises RulesError, and OSError where it cannot be read."""
    try:
        given = read_toml(path, dict[str, Any])
    except ValueError as error:
        raise RulesError([f"the file: no TOML; mend it: {error}"]) from None
    return parse(given)


def parse(given: Mapping[str, Any]) -> tuple[Rule, ...]:
    """The rules of a file's table. Raises RulesError, which names all that is wrong."""
    problems = [f"{key}: unknown key; {meant(key, [KEY], 'remove it')}" for key in given if key != KEY]
    tables = given.get(KEY, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise RulesError([*problems, f"{KEY}: {kind_of(tables)}; write each rule as a table, [[{KEY}]]"])
    if not 1 <= len(tables) <= MOST_RULES:
        problems.append(f"{KEY}: {len(tables)} of them; write 1 to {MOST_RULES} tables, [[{KEY}]]")
    rules = [_rule(f"{KEY}[{at}]", table, problems) for at, table in enumerate(tables)]
    problems += _repeated([table.get("name") for table in tables])
    if problems:
        raise RulesError(problems)
    return tuple(rule for rule in rules if rule is not None)


def _rule(at: str, table: Mapping[str, Any], problems: list[str]) -> Rule | None:
    """The rule of a table; None where its problems were told."""
    kind, before = table.get("kind"), len(problems)
    if kind not in list(Kind):
        problems.append(f"{at}.kind: {_found(kind)}; {_EXPECTED['kind']}")
        return None
    of = KINDS[Kind(kind)]
    fields = {field.encode_name: field for field in msgspec.structs.fields(of)}
    values: dict[str, Any] = {}
    for key, raw in table.items():
        if key in fields:
            problems += _taken(at, fields[key], raw, values)
        elif key != "kind":
            problems.append(f"{at}.{key}: unknown key; {_unknown(key, Kind(kind), [*fields])}")
    lacking = [name for name, field in fields.items() if field.required and name not in table]
    problems += [f"{at}.{name}: missing; {_EXPECTED[name]}" for name in lacking]
    if len(problems) > before:
        return None
    try:
        return of(**values)
    except ValueError as error:
        problems.append(f"{at}: {kind} without an end; {error}")
        return None


def _taken(at: str, field: msgspec.structs.FieldInfo, raw: object, values: dict[str, Any]) -> Iterator[str]:
    """Put the field's value, or tell what is wrong with it."""
    key = field.encode_name
    try:
        value: Any = _duration(raw) if _is_duration(key) else msgspec.convert(raw, field.type)
        if key in {"from", "to"} and not DEFINITE.issuperset(value):
            raise ValueError
        if value == () or (key == "within" and not value):
            raise ValueError
    except ValueError:  # msgspec's, too
        yield f"{at}.{key}: {_found(raw)}; {_EXPECTED[key]}"
    else:
        values[field.name] = value


def _is_duration(key: str) -> bool:
    return _EXPECTED[key] is _DURATION_IS


def _duration(raw: object) -> dt.timedelta:
    found = _DURATION.match(raw) if isinstance(raw, str) else None
    if found is None:
        raise ValueError
    duration = dt.timedelta(**{_UNITS[found["unit"]]: int(found["number"])})
    if duration > MOST_REACH:
        raise ValueError
    return duration


def _found(raw: object) -> str:
    return "missing" if raw is None else kind_of(raw)


def _unknown(key: str, kind: Kind, known: Sequence[str]) -> str:
    if key in _ROLES:
        return _NO_ROLES
    return meant(key, known, f"a rule of kind {kind} has {', '.join(['kind', *known])}")


def _repeated(names: Sequence[object]) -> Iterator[str]:
    for at, name in enumerate(names):
        if isinstance(name, str) and name in names[:at]:
            yield f"{KEY}[{at}].name: that of rules[{names.index(name)}]; {_EXPECTED['name']}"
