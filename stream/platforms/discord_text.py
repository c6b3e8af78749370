"""Discord's content as people read it.

https://docs.discord.com/developers/reference#message-formatting
"""

import re
from collections.abc import Mapping

_MARK = re.compile(
    r"<(?:@!?(?P<user>\d+)|@&(?P<role>\d+)|#(?P<channel>\d+)|a?:(?P<emoji>\w+):\d+|t:(?P<time>-?\d+)(?::\w)?)>"
)


def readable(content: str, names: Mapping[str, str | None]) -> str:
    """Without Discord's signs; `names` are those of the people who are mentioned, by id."""
    return _MARK.sub(lambda found: _shown(found, names), content)


def _shown(mark: re.Match[str], names: Mapping[str, str | None]) -> str:
    if mark["user"]:
        return f"@{names.get(mark['user']) or mark['user']}"
    if mark["emoji"]:
        return f":{mark['emoji']}:"
    return f"#{mark['channel']}" if mark["channel"] else f"@{mark['role']}" if mark["role"] else mark["time"]


def quoted(content: str) -> str:
    """Another's words, as a forwarded message is."""
    return "\n".join(f"> {line}" for line in content.split("\n")) if content else ""
