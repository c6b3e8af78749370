"""What README says of secured servers, so that the tests try that and nothing else."""

import re
from pathlib import Path

_README = Path(__file__).parents[2] / "README.md"
_RIGHTS = re.compile(r"^kafka-acls\.sh .+ --(topic|group) (volteface\S) (--operation .+)$", re.MULTILINE)
_RULE = re.compile(r"^ACL SETUSER volteface (.+)$", re.MULTILINE)


def rule(password: str) -> str:
    """The rule of Redis' user, for this password and for the prefixes of tests."""
    [found] = _RULE.findall(_README.read_text(encoding="utf-8"))
    return found.replace(">PASSWORD", f">{password}").replace("~volteface:*", "~test-*")


def commands() -> set[str]:
    """The commands that the rule allows."""
    return {word[1:] for word in rule("").split() if word.startswith("+")}


def rights() -> dict[str, tuple[str, tuple[str, ...]]]:
    """What a user of Kafka may do: by kind of resource the prefix of tests, and operations."""
    found = _RIGHTS.findall(_README.read_text(encoding="utf-8"))
    return {kind: ("test-", tuple(words.split()[1::2])) for kind, _, words in found}
