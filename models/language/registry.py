"""From settings to an engine: the one place that knows every engine by name."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from models.language.rule import RuleEngine
from models.language.settings import TALKING, InvalidSetting, ReaderSettings
from models.reader import Engine

if TYPE_CHECKING:
    from models.language.backbone import Backbone
    from models.reasoning.roles import Roles

__all__ = ["ENGINES", "Built", "InvalidSetting", "ReaderSettings", "build_engine"]


class Built(NamedTuple):
    """An engine and, where its model can be talked to, what makes the roles of Thought-of-Stance on it."""

    engine: Engine
    roles: "Callable[[], Roles] | None" = None


def build_engine(settings: ReaderSettings, built: dict[ReaderSettings, Built] | None = None) -> Engine:
    """The engine that settings ask for, with critic and Cartographer where they do.

    `built`: what others were made of; a model that stands there is not loaded again. Raises InvalidSetting or
    WeightsUnavailable.
    """
    _check_talks(settings)
    plain, known = (
        msgspec.structs.replace(settings, critic=False, finds=False),
        {} if built is None else built,
    )
    if plain not in known:
        known[plain] = _built(plain)
    engine, roles = known[plain]
    return engine if settings == plain or roles is None else _reasoning(engine, roles, settings)


def _built(settings: ReaderSettings) -> Built:
    build = ENGINES.get(settings.engine)
    if build is None:
        raise InvalidSetting("engine", f"no engine {settings.engine!r}", f"use one of {', '.join(ENGINES)}")
    return build(settings)


def _check_talks(settings: ReaderSettings) -> None:
    asked = settings.critic or settings.finds
    if asked and settings.engine in ENGINES and settings.engine not in TALKING:
        got, remedy = f"engine {settings.engine} cannot be talked to", f"use {' or '.join(TALKING)}"
        raise InvalidSetting("critic" if settings.critic else "targets", got, remedy)


def _reasoning(engine: Engine, roles: "Callable[[], Roles]", settings: ReaderSettings) -> Engine:
    from models.reasoning.cartographer import Cartographer  # noqa: PLC0415  # late, as below
    from models.reasoning.finding import FindingEngine  # noqa: PLC0415
    from models.reasoning.incremental import ReasoningEngine  # noqa: PLC0415

    playing = roles()
    if settings.critic:
        engine = ReasoningEngine(engine, playing)
    return FindingEngine(engine, Cartographer(playing.chat, playing.room)) if settings.finds else engine


def _encoder(settings: ReaderSettings) -> Built:
    from models.encoder.engine import from_settings  # noqa: PLC0415  # late, as below

    return Built(from_settings(settings))


def _rule(settings: ReaderSettings) -> Built:
    return Built(RuleEngine())


def _generative(settings: ReaderSettings) -> Built:
    # Imported late: torch and transformers take seconds, and engine `rule` must start at once.
    from models.language.generative import backbone_from, on  # noqa: PLC0415

    backbone = backbone_from(settings)
    return Built(on(backbone, settings), partial(_local_roles, backbone, settings))


def _local_roles(backbone: "Backbone", settings: ReaderSettings) -> "Roles":
    from models.language.local_chat import LocalChat  # noqa: PLC0415
    from models.reasoning.prompts import INSTRUCTIONS  # noqa: PLC0415
    from models.reasoning.roles import Roles  # noqa: PLC0415
    from models.reasoning.room import within  # noqa: PLC0415

    chat = LocalChat(backbone, settings.batch_tokens)
    try:
        room = within(settings.budget_tokens, chat.room(INSTRUCTIONS), chat.count)
    except ValueError as error:
        raise InvalidSetting(
            "model", str(error), "use one of a longer context, or no critic and no Cartographer"
        ) from None
    return Roles(chat, room)


def _remote(settings: ReaderSettings) -> Built:
    from models.reasoning.roles import Roles  # noqa: PLC0415  # late, as above
    from models.reasoning.room import Room  # noqa: PLC0415
    from models.remote.chat import RemoteChat  # noqa: PLC0415
    from models.remote.engine import BUDGET, RemoteEngine, client_from  # noqa: PLC0415

    client = client_from(settings)  # one for both, so that its limits hold for all that is asked
    return Built(RemoteEngine(client), lambda: Roles(RemoteChat(client), Room(BUDGET)))


ENGINES: dict[str, Callable[[ReaderSettings], Built]] = {
    "encoder": _encoder,
    "generative": _generative,
    "remote": _remote,
    "rule": _rule,
}
