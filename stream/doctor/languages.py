"""Which engine reads which language in this process, and whether each has what it needs."""

import importlib.metadata

import msgspec

from stream.doctor.checks import Check, evaluated, failed, ok, skipped, warning
from stream.doctor.reading import adapter, weights
from stream.routes import Route, chosen, over
from stream.settings import Settings

DETECTOR = "py3langid"


def examine(settings: Settings) -> list[Check]:
    """The routes, what tells languages apart, and the weights and adapter of each route."""
    parts = [check for route in settings.readers for check in _route(settings, route)]
    return [*evaluated([readers, detector], settings), *parts]


def readers(settings: Settings) -> Check:
    """Who reads which language."""
    if settings.worker is not None:
        return skipped("languages", "the worker reads, by the settings it was started with")
    default, routes, reads_all = chosen(settings)
    named = [f"{language}: {one.reader}" for language, one in sorted(routes.items())]
    found = ", ".join((*named, f"{'all others' if named else 'all'}: {default.reader}"))
    if reads_all:
        return ok("languages", found)
    remedy = 'to declare who reads all others, add a [[readers]] table with languages = ["*"]'
    return warning("languages", f"{found}, whose events are marked fallback", remedy)


def detector(settings: Settings) -> Check:
    """What tells the language of a turn whose platform does not."""
    if settings.reader == "rule" and not settings.readers:
        return skipped("language detector", "engine rule asks for no language")
    try:
        return ok("language detector", f"{DETECTOR} {importlib.metadata.version(DETECTOR)}")
    except importlib.metadata.PackageNotFoundError:
        return failed("language detector", f"no {DETECTOR}", f"run: pip install {DETECTOR}")


def _route(settings: Settings, route: Route) -> list[Check]:
    names = ", ".join(route.languages)
    checks = evaluated([weights, adapter], over(settings, route))
    return [msgspec.structs.replace(one, name=f"{one.name} for {names}") for one in checks]
