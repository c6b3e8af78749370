"""Alert rules from TOML: what ships is taken, and all that is wrong is named with its remedy."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from stream.alerts import rules
from stream.alerts.rules import MOST_RULES, RulesError
from tracker.alert_rules import BurstRule, FlipBackRule, FlipRule, Kind, Severity
from tracker.stances import Emotion, Stance

SHIPPED = Path(__file__).parents[3] / "deploy" / "alerts" / "rules.toml"
FLIP: dict[str, Any] = {"name": "a", "kind": "flip"}
BURST: dict[str, Any] = {"name": "b", "kind": "burst", "count": 3, "within": "10m"}


def problems(*tables: object, **rest: object) -> list[str]:
    with pytest.raises(RulesError) as error:
        rules.parse({"rules": [*tables], **rest})
    return [*error.value.problems]


def test_the_rules_that_ship_have_every_kind() -> None:
    found = rules.read(SHIPPED)
    assert {rule.kind for rule in found} == set(Kind)
    assert {rule.severity for rule in found} == set(Severity)


def test_every_field_is_read(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(
        """
        [[rules]]
        name = "all"
        kind = "flip"
        severity = "critical"
        cooldown = "0s"
        exempt_rooms = ["test-*"]
        exempt_holders = ["bot-*"]
        tenants = ["acme"]
        rooms = ["r*"]
        targets = ["t-1"]
        propositions = ["*plan*"]
        from = ["support", "neutral"]
        to = ["oppose"]
        emotions = ["anger", "fear"]
        triggers = ["social_influence"]
        confidence = 0.5
        [[rules]]
        name = "back"
        kind = "flip_back"
        turns = 5
        within = "2d"
        """,
        encoding="utf-8",
    )
    first, back = rules.read(file)
    assert isinstance(first, FlipRule)
    assert (first.before, first.after) == ((Stance.SUPPORT, Stance.NEUTRAL), (Stance.OPPOSE,))
    assert first.emotions == (Emotion.ANGER, Emotion.FEAR)
    assert (first.exempt_rooms, first.exempt_holders, first.tenants) == (("test-*",), ("bot-*",), ("acme",))
    assert isinstance(back, FlipBackRule)
    assert (back.turns, back.within, back.silence) == (5, dt.timedelta(days=2), dt.timedelta())


@pytest.mark.parametrize(
    ("written", "meant"),
    [("90s", dt.timedelta(seconds=90)), ("10m", dt.timedelta(minutes=10)), ("24h", dt.timedelta(days=1))],
)
def test_a_counting_rule_is_silent_as_long_as_it_looks_back(written: str, meant: dt.timedelta) -> None:
    [rule] = rules.parse({"rules": [BURST | {"within": written}]})
    assert isinstance(rule, BurstRule)
    assert (rule.within, rule.silence) == (meant, meant)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"name": "A b"}, "rules[0].name: string of 3 characters; give a name of its own"),
        ({"kind": "flop"}, "rules[0].kind: string of 4 characters; set one of flip, burst"),
        ({"kind": ["flip"]}, "rules[0].kind: array; set one of flip, burst"),
        ({"severity": "high"}, "rules[0].severity: string of 4 characters; set one of info, warning"),
        ({"cooldown": 10}, 'rules[0].cooldown: integer; write a whole number and s, m, h or d, as "10m"'),
        ({"cooldown": "31d"}, "rules[0].cooldown: string of 3 characters; write a whole number"),
        ({"cooldown": "10"}, "rules[0].cooldown: string of 2 characters; write a whole number"),
        ({"exempt_rooms": "test-*"}, "rules[0].exempt_rooms: string of 6 characters; list globs"),
        ({"exempt_holders": [1]}, "rules[0].exempt_holders: array; list globs"),
        ({"rooms": []}, "rules[0].rooms: array; list globs"),
        ({"rooms": [""]}, "rules[0].rooms: array; list globs"),
        ({"from": ["unknown"]}, "rules[0].from: array; list some of neutral, oppose, support"),
        ({"to": "oppose"}, "rules[0].to: string of 6 characters; list some of neutral, oppose, support"),
        ({"emotions": ["rage"]}, "rules[0].emotions: array; list some of anger, disgust"),
        ({"triggers": ["money"]}, "rules[0].triggers: array; list some of factual_logical"),
        ({"confidence": 2}, "rules[0].confidence: integer; set a number from 0 to 1"),
        ({"emotion": ["anger"]}, "rules[0].emotion: unknown key; did you mean emotions?"),
        ({"zzz": 1}, "rules[0].zzz: unknown key; a rule of kind flip has kind, name, severity"),
        ({"within": "1h"}, "rules[0].within: unknown key; a rule of kind flip has kind, name"),
        (
            {"exempt_roles": ["bot"]},
            "rules[0].exempt_roles: unknown key; events carry no role: exempt roles by",
        ),
    ],
    ids=str,
)
def test_a_wrong_field_is_named_with_its_remedy(table: dict[str, object], said: str) -> None:
    [problem] = problems(FLIP | table)
    assert problem.startswith(said)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "rules[0].kind: missing; set one of flip, burst"),
        ({"kind": "flip"}, "rules[0].name: missing; give a name of its own"),
        (BURST | {"count": 1}, "rules[0].count: integer; set a whole number of flips, from 2 to 100"),
        (BURST | {"count": 3.5}, "rules[0].count: number; set a whole number of flips, from 2 to 100"),
        (BURST | {"within": "0m"}, "rules[0].within: string of 2 characters; write a whole number"),
        ({"name": "c", "kind": "same_way", "within": "1h"}, "rules[0].holders: missing; set a whole number"),
        (
            {"name": "d", "kind": "flip_back"},
            "rules[0]: flip_back without an end; give turns, within or both",
        ),
        (
            {"name": "d", "kind": "flip_back", "turns": 0},
            "rules[0].turns: integer; set a whole number of turns",
        ),
    ],
    ids=str,
)
def test_what_a_kind_needs_is_asked_for(table: dict[str, object], said: str) -> None:
    [problem] = problems(table)
    assert problem.startswith(said)


def test_all_problems_are_told_at_once() -> None:
    told = problems(FLIP | {"to": []}, BURST | {"count": 0, "x": 1}, FLIP, rule=[])
    assert [problem.partition(": ")[0] for problem in told] == [
        "rule", "rules[0].to", "rules[1].count", "rules[1].x", "rules[2].name",
    ]  # fmt: skip
    assert told[0].endswith("did you mean rules?")
    assert "that of rules[0]" in told[-1]


@pytest.mark.parametrize(
    "tables", [[], [FLIP | {"name": f"n-{at}"} for at in range(MOST_RULES + 1)]], ids=len
)
def test_too_few_and_too_many_are_refused(tables: list[dict[str, object]]) -> None:
    assert problems(*tables) == [f"rules: {len(tables)} of them; write 1 to 100 tables, [[rules]]"]


def test_rules_are_tables() -> None:
    with pytest.raises(RulesError, match=r"rules: string of 1 character; write each rule as a table"):
        rules.parse({"rules": "a"})
    with pytest.raises(RulesError, match=r"rules: array; write each rule as a table"):
        rules.parse({"rules": [1]})


def test_a_file_that_is_no_toml_says_where(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text("[[rules]\n", encoding="utf-8")
    with pytest.raises(RulesError, match=r"no TOML; mend it: .*line 1"):
        rules.read(file)
    with pytest.raises(FileNotFoundError):
        rules.read(tmp_path / "none.toml")
