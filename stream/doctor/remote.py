"""The servers of engine `remote`: whether each answers, takes the key and has the model."""

import asyncio
from collections.abc import Iterator

import aiohttp
import msgspec

from stream.addresses import masked
from stream.doctor.calls import CALL_SECONDS, get
from stream.doctor.checks import Check, failed, ok, skipped, warning
from stream.routes import chosen
from stream.settings import Settings

LIST_BYTES = 1024 * 1024
NAMED = 5  # models that are told of where the one asked for is missing
NAME = "remote server"


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


async def examine(settings: Settings) -> list[Check]:
    """Every server that a reader of this process would ask; none is asked to read anything."""
    asked = [*_asked(settings)]
    if settings.worker is not None or not asked:
        why = "the worker reads" if settings.worker is not None else "no reader asks one"
        return [skipped(NAME, why)]
    return list(await asyncio.gather(*map(_examined, asked)))


def _asked(settings: Settings) -> Iterator[Settings]:
    default, by_language, _ = chosen(settings)
    seen = set()
    for one in (default, *by_language.values()):
        where = (one.remote_url, one.remote_model, one.remote_key)
        if one.reader == "remote" and where not in seen:
            seen.add(where)
            yield one


async def _examined(settings: Settings) -> Check:
    if not settings.remote_url or not settings.remote_model:
        lacking = "VOLTEFACE_REMOTE_MODEL" if settings.remote_url else "VOLTEFACE_REMOTE_URL"
        return failed(NAME, f"{lacking} is unset", f"set {lacking}, or choose another VOLTEFACE_READER")
    where = masked(settings.remote_url)
    try:
        url = f"{settings.remote_url.rstrip('/')}/models"
        status, body = await get(url, LIST_BYTES, settings.remote_key)
    except TimeoutError:
        return failed(NAME, f"{where}: no answer within {CALL_SECONDS:g} s", "look whether it runs")
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return failed(NAME, f"{where}: {type(error).__name__}", "start it, or set VOLTEFACE_REMOTE_URL")
    return _judged(where, settings.remote_model, status, body)


def _judged(where: str, model: str, status: int, body: bytes) -> Check:
    if status in (401, 403):
        return failed(NAME, f"{where}: it refuses the key ({status})", "set VOLTEFACE_REMOTE_KEY")
    if status != 200:
        remedy = "set VOLTEFACE_REMOTE_URL to an OpenAI-compatible server's address, up to /v1"
        return failed(NAME, f"{where}: status {status}", remedy)
    try:
        names = [one.id for one in msgspec.json.decode(body, type=_Models).data]
    except (msgspec.DecodeError, UnicodeDecodeError):
        return warning(NAME, f"{where}: it lists no models", "look whether it is OpenAI-compatible")
    if model in names:
        return ok(NAME, f"{where}: it has {model}")
    others = ", ".join(names[:NAMED]) or "none"
    return warning(NAME, f"{where}: it lists no {model}, but {others}", "set VOLTEFACE_REMOTE_MODEL")
