"""All checks, side by side: each part has its time, and one that fails or hangs hides no other."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from stream.doctor import broker, installation, languages, reading, redis, remote
from stream.doctor.checks import Check, Status, broken, failed, ok, skipped, warning
from stream.options import SettingsError
from stream.settings import SETTINGS, Row, Settings, lenient, survey
from stream.sources import CONFIG, misspelt

PART_SECONDS = 9.0  # above the sum of any part's own limits: it ends what they do not foresee


@dataclass(frozen=True, slots=True)
class Report:
    """What was found, and every setting."""

    checks: tuple[Check, ...]
    settings: tuple[Row, ...]

    def count(self, status: Status) -> int:
        """How many checks ended so."""
        return sum(check.status is status for check in self.checks)


@dataclass(frozen=True, slots=True)
class Part:
    """Checks that share their facts, and the settings that they stand on."""

    name: str
    examine: Callable[[Settings], Awaitable[list[Check]]]
    needs: tuple[str, ...] = ()


async def _installation(_: Settings) -> list[Check]:
    return await asyncio.to_thread(installation.examine)


async def _reading(settings: Settings) -> list[Check]:
    found = await asyncio.to_thread(reading.examine, settings)
    return [*found, *await asyncio.to_thread(languages.examine, settings)]


_REMOTE = tuple(option.key for option in SETTINGS if option.key.startswith("remote_"))
_BROKER = tuple(option.key for option in SETTINGS if option.key.startswith("broker"))
PARTS = (
    Part("installation", _installation),
    Part("broker", broker.examine, (*_BROKER, "run", "topic_prefix", "reach_days", "partitions")),
    Part("redis", redis.examine, ("redis", "redis_cafile")),
    Part("worker", reading.worker, ("worker", "targets")),
    Part("remote server", remote.examine, ("worker", "reader", "readers", *_REMOTE)),
    Part("reader", _reading, ("worker", "reader", "model", "adapter", "rooms", "readers", "targets")),
)


async def examine(environment: Mapping[str, str] | None = None, parts: tuple[Part, ...] = PARTS) -> Report:
    """Every check, for an environment (default: the process's)."""
    given = os.environ if environment is None else environment
    rows = survey(given)
    problems = {row.key: row.problem for row in rows if row.problem}
    # A wrong value's place is held by its default, which no check that needs it will see.
    settings = lenient(given)
    found = await asyncio.gather(*(_examined(part, settings, problems) for part in parts))
    return Report((*_of_settings(rows, given), *(check for checks in found for check in checks)), rows)


async def _examined(part: Part, settings: Settings, problems: Mapping[str, SettingsError]) -> list[Check]:
    if wrong := _in_the_way(part, problems):
        return [skipped(part.name, f"not looked at, since {wrong} is wrong", f"mend {wrong} first")]
    try:
        async with asyncio.timeout(PART_SECONDS):
            return await part.examine(settings)
    except TimeoutError:
        found = f"no answer within {PART_SECONDS:g} s"
        return [failed(part.name, found, "look whether this machine or its network is overloaded")]
    except Exception as error:  # the others must still be seen
        return [broken(part.name, error)]


def _in_the_way(part: Part, problems: Mapping[str, SettingsError]) -> str | None:
    """The wrong setting that this part stands on; a file that cannot be read may hold any of them."""
    if part.needs and (file := problems.get("config")) and file.setting == CONFIG:
        return file.setting
    return next((problems[key].setting for key in part.needs if key in problems), None)


def _of_settings(rows: tuple[Row, ...], environment: Mapping[str, str]) -> list[Check]:
    wrong = [row.problem for row in rows if row.problem]
    checks = [
        failed(f"setting {each.setting}", f"{each.got}, from {each.source}", each.remedy) for each in wrong
    ]
    for name, meant in misspelt(SETTINGS, environment).items():
        checks.append(warning(f"variable {name}", "is no setting", f"did you mean {meant}?"))
    return checks or [ok("settings", f"{len(rows)}, listed below")]
