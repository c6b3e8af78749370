"""Readers by language: the `[[readers]]` tables of the settings file, each over the top-level settings.

A table has `languages` and, where they differ from the top level, `reader`, `model`, `adapter`, `policy` and
the like. Each reader is judged by a policy of its own: thresholds fitted to one say nothing about another.
A table for "*" stands for all languages that no other names: without it the top-level settings read these,
and every such event is marked `fallback`.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from models import shipped
from models.language.settings import TALKING
from stream.options import Option, SettingsError, Source, kind_of, taken
from stream.sources import meant, read_toml
from tracker.observations import primary
from tracker.policy import Policy

if TYPE_CHECKING:
    from stream.settings import Settings

KEY = "readers"
LANGUAGES = "languages"
OTHERS = "*"
POLICY = "policy"
CRITIC = "critic"
TAKEN = ("reader", CRITIC, "model", "adapter", POLICY, "device", "dtype", "threads", "batch_tokens")
REMOTE = "remote_"  # begins the settings of engine `remote`: each may differ by language
EXEMPTIONS = ("exempt_holders", "exempt_kinds")  # decided before a turn is read, so by one policy for all

Tags = Annotated[
    tuple[Annotated[str, msgspec.Meta(pattern=r"\A(\*|[A-Za-z]{2,8}([_-][A-Za-z0-9]{1,8})*)\Z")], ...],
    msgspec.Meta(min_length=1),
]


class Route(msgspec.Struct, frozen=True):
    """Languages, by primary subtag, and what of the settings is another for their reader."""

    languages: tuple[str, ...]
    given: Mapping[str, Any] = {}

    def __repr__(self) -> str:
        """Without values, as settings themselves: a remote server's key may be among them."""
        return f"Route({', '.join(self.languages)})"

    def __str__(self) -> str:
        """For people: who is read, and the stamp of the policy that judges it, once that is known."""
        languages, policy = ", ".join(self.languages), self.given.get(POLICY)
        return f"{languages} by policy {policy.stamp}" if policy else languages

    def __rich_repr__(self) -> list[tuple[str, object]]:
        """As __repr__ for rich, which would ask msgspec's own method."""
        return [("languages", self.languages)]


def read(tables: object, folder: Path, options: Iterable[Option]) -> tuple[Route, ...]:
    """The routes of a settings file in that folder. Raises SettingsError for the first wrong field."""
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise SettingsError(KEY, Source.FILE, kind_of(tables), "write each as a table, [[readers]]")
    known = {one.key: one for one in options if one.key in TAKEN or one.key.startswith(REMOTE)}
    known[POLICY] = msgspec.structs.replace(known[POLICY], reads=_thresholds)
    routes = tuple(_route(f"{KEY}[{at}]", table, folder, known) for at, table in enumerate(tables))
    _check_once([language for route in routes for language in route.languages])
    return routes


def check_critics(top: str, routes: Sequence[Route]) -> None:
    """Raises SettingsError for a table that asks for a critic whose reader cannot be talked to."""
    for at, route in enumerate(routes):
        reader = route.given.get("reader", top)
        if route.given.get(CRITIC) and reader not in TALKING:
            got, remedy = (
                f"true with reader {reader}",
                f"leave it out, or set reader to {' or '.join(TALKING)}",
            )
            raise SettingsError(f"{KEY}[{at}].{CRITIC}", Source.FILE, got, remedy)


def judged(settings: "Settings", *, explicit: bool) -> tuple[Route, ...]:
    """The routes of settings, each with its reader's policy; `explicit`: the operator set the top's.

    A route's own policy goes before its adapter's, this before the top's. A top policy that nobody set came
    with the top's adapter, and is for no other. Raises SettingsError.
    """
    routes = []
    for at, route in enumerate(settings.readers):
        policy = route.given.get(POLICY) or _comes_with(f"{KEY}[{at}].{POLICY}", settings, route, explicit)
        exempt = {name: getattr(settings.policy, name) for name in EXEMPTIONS}
        given = {**route.given, POLICY: msgspec.structs.replace(policy, **exempt)}
        routes.append(Route(route.languages, given))
    return tuple(routes)


def policies(settings: "Settings") -> tuple[Policy, dict[str, Policy]]:
    """The default reader's policy, and those of the languages that have a reader of their own."""
    default, by_language, _ = chosen(settings)
    return default.policy, {language: one.policy for language, one in by_language.items()}


def engines(top: str, routes: Iterable[Route]) -> set[str]:
    """The engines that read, given the top-level one; a table for all others takes its place."""
    replaced = any(OTHERS in route.languages for route in routes)
    return {route.given.get("reader", top) for route in routes} | (set() if replaced else {top})


def over(settings: "Settings", route: Route) -> "Settings":
    """The settings of a route's reader; another engine or model has neither model nor adapter of the top."""
    reader, model = route.given.get("reader", settings.reader), route.given.get("model")
    bare: dict[str, Any] = {}
    if reader != settings.reader or model is not None:
        bare = {"model": None, "adapter": shipped.ADAPTERS.get(reader) if model is None else None}
    return msgspec.structs.replace(settings, **(bare | dict(route.given)), readers=())


def chosen(settings: "Settings") -> tuple["Settings", dict[str, "Settings"], bool]:
    """The default's settings, each language's, and whether the default is to read all other languages."""
    by_language = {language: over(settings, one) for one in settings.readers for language in one.languages}
    alone = msgspec.structs.replace(settings, readers=())
    default = by_language.pop(OTHERS, None)
    return default or alone, by_language, default is not None or not by_language


def _route(name: str, table: Mapping[str, Any], folder: Path, known: Mapping[str, Option]) -> Route:
    given, names = {}, (LANGUAGES, *known)
    for key, raw in table.items():
        if key == LANGUAGES:
            continue
        if key not in known:
            raise SettingsError(
                f"{name}.{key}",
                Source.FILE,
                "unknown key",
                meant(key, names, f"use one of {', '.join(names)}"),
            )
        try:
            given[key] = taken(known[key], raw, Source.FILE, folder)
        except SettingsError as error:
            raise SettingsError(f"{name}.{key}", Source.FILE, error.got, error.remedy) from None
    return Route(_languages(f"{name}.{LANGUAGES}", table.get(LANGUAGES)), given)


def _thresholds(path: Path) -> Policy:
    """The policy of a reader by language. Raises OSError, ValueError."""
    given = read_toml(path, dict[str, Any])
    for key in EXEMPTIONS:
        if key in given:
            raise ValueError(f"{key} holds for all readers, so it belongs in the top-level policy")
    return read_toml(path, Policy)


def _comes_with(name: str, settings: "Settings", route: Route, explicit: bool) -> Policy:
    """The policy of a route that names none."""
    adapter = over(settings, route).adapter
    if adapter == settings.adapter:
        return settings.policy
    if adapter is None or not (file := adapter / shipped.POLICY).is_file():
        return settings.policy if explicit else Policy()
    try:
        return _thresholds(file)
    except (OSError, ValueError) as error:
        remedy = f"mend {file}, or set a policy of its own: {error}"
        raise SettingsError(name, Source.DEFAULT, "the adapter's", remedy) from None


def _languages(name: str, raw: object) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(map(primary, msgspec.convert(raw, Tags))))
    except msgspec.ValidationError:
        got = "unset" if raw is None else kind_of(raw)
        remedy = 'list the languages it reads, such as ["en", "zh"], or ["*"] for all others'
        raise SettingsError(name, Source.FILE, got, remedy) from None


def _check_once(languages: Sequence[str]) -> None:
    for language in dict.fromkeys(languages):
        if languages.count(language) > 1:
            got = f"{language} stands in two tables"
            raise SettingsError(f"{KEY}.{LANGUAGES}", Source.FILE, got, "name each language once")
