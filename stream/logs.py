"""Structured logs on stderr: one pipeline for our own loggers and for those of Faust, aiokafka and the rest.

What a person wrote, or who wrote it, is not logged: the guard drops such fields at info and above, and no
value is rendered by its repr, since a record's repr holds all of it.
"""

import datetime as dt
import json
import logging
import sys
from pathlib import Path
from typing import Any

import msgspec
import orjson
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from stream.settings import Settings

PRIVATE = frozenset({"text", "holder", "display_name", "rationale", "proposition"})

_HANDLER = "volteface"
# These bring handlers of their own; the last are Faust's services, which log by the module of their class.
_ADOPTED = ("faust", "mode", "aiokafka", "aiohttp", "stream.transport")
_PLAIN = (str, int, float, type(None), dt.date, Path, BaseException)


def configure(settings: Settings) -> None:
    """Route all logs to one handler on stderr, at the settings' level and format; again at will."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *_shared(), _handed_over],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,  # a cached logger would not see a second call
    )
    root = logging.getLogger()
    for old in [handler for handler in root.handlers if handler.get_name() == _HANDLER]:
        root.removeHandler(old)
    root.addHandler(_handler(settings.log_format == "console"))
    root.setLevel(level)
    _adopt(level)


def quiet(settings: Settings) -> None:
    """As `configure`, for a command whose one line says all that a person needs of a part that is away."""
    configure(msgspec.structs.replace(settings, log_level="error"))
    for name in ("aiokafka", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def guarded(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Drop private fields, at any depth, from all that is logged at info and above."""
    if event.get("level") == "debug":
        return event
    error = {"exc_info": event["exc_info"]} if "exc_info" in event else {}
    return {key: _public(value) for key, value in event.items() if key not in PRIVATE} | error


_handed_over: Processor = structlog.stdlib.ProcessorFormatter.wrap_for_formatter


def _shared() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def _handler(console: bool) -> logging.Handler:
    handler = logging.StreamHandler(sys.stderr)
    handler.set_name(_HANDLER)
    keep = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[keep, guarded, *_renderers(console)],
            foreign_pre_chain=_shared(),
        )
    )
    return handler


def _renderers(console: bool) -> list[Processor]:
    if not console:
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(serializer=_dumps)]
    # Not rich's tracebacks, which print the locals: texts and names among them.
    plain = structlog.dev.plain_traceback
    return [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]


def _adopt(level: int) -> None:
    for name in _ADOPTED:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
        # Their info is a line for each part and request; ours is what an operator reads.
        logger.setLevel(logging.WARNING if level == logging.INFO else level)
    # It quotes what a client sent that is no HTTP: half of a turn, where a chunk breaks. Calls log their own.
    logging.getLogger("aiohttp.server").setLevel(level if level == logging.DEBUG else logging.CRITICAL)


def _public(value: Any) -> Any:
    """The value without private fields; an object of which nothing is known shrinks to its type's name."""
    if isinstance(value, dict):
        return {key: _public(item) for key, item in value.items() if key not in PRIVATE}
    if isinstance(value, list | tuple | set | frozenset):
        return [_public(item) for item in value]
    return value if isinstance(value, _PLAIN) else f"<{type(value).__name__}>"


def _dumps(event: EventDict, **_: Any) -> str:
    try:
        return orjson.dumps(event, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except orjson.JSONEncodeError:  # half surrogates and very large numbers, which JSON can escape or hold
        return json.dumps(event, default=str)
