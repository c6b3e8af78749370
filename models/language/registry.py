"""From settings to an engine: the one place that knows every engine by name."""

from collections.abc import Callable

from models.language.rule import RuleEngine
from models.language.settings import InvalidSetting, ReaderSettings
from models.reader import Engine

__all__ = ["ENGINES", "InvalidSetting", "ReaderSettings", "build_engine"]


def build_engine(settings: ReaderSettings) -> Engine:
    """The engine that settings ask for. Raises InvalidSetting or WeightsUnavailable."""
    build = ENGINES.get(settings.engine)
    if build is None:
        raise InvalidSetting("engine", f"no engine {settings.engine!r}", f"use one of {', '.join(ENGINES)}")
    return build(settings)


def _encoder(settings: ReaderSettings) -> Engine:
    from models.encoder.engine import from_settings  # noqa: PLC0415  # late, as below

    return from_settings(settings)


def _rule(settings: ReaderSettings) -> Engine:
    return RuleEngine()


def _generative(settings: ReaderSettings) -> Engine:
    # Imported late: torch and transformers take seconds, and engine `rule` must start at once.
    from models.language.generative import from_settings  # noqa: PLC0415

    return from_settings(settings)


def _remote(settings: ReaderSettings) -> Engine:
    from models.remote.engine import from_settings  # noqa: PLC0415  # late, as above

    return from_settings(settings)


ENGINES: dict[str, Callable[[ReaderSettings], Engine]] = {
    "encoder": _encoder,
    "generative": _generative,
    "remote": _remote,
    "rule": _rule,
}
