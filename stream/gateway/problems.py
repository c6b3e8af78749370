"""Every error as an RFC 9457 problem document: what kind, which field, how to mend it; never a value."""

import enum
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import structlog
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from stream.database.engine import DatabaseUnavailable
from stream.gateway.turns_log import LogUnavailable
from stream.tenants import NoKey
from tracker.records import Refused

log = structlog.get_logger(__name__)

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 2


class Kind(enum.Enum):
    """The kinds of problems that are no record's: `urn:volteface:problem:<kind>`, with status and title."""

    BAD_REQUEST = 400, "The request cannot be read."
    NOT_JSON = 400, "The body is no JSON."
    UNAUTHORIZED = 401, "No key that holds came with the request."
    FORBIDDEN = 403, "The key has not the scope for this."
    NOT_FOUND = 404, "There is no such thing."
    METHOD_NOT_ALLOWED = 405, "This address does not take that method."
    NOT_ACCEPTABLE = 406, "None of the media types asked for is served here."
    SLOW_BODY = 408, "The body did not come in time."
    TOO_LARGE = 413, "The body is too large."
    INVALID = 422, "The request says something that is not allowed."
    REFUSED = 422, "No record was accepted."
    TOO_MANY_REQUESTS = 429, "The key has asked too often."
    INTERNAL = 500, "The gateway failed; its log says more."
    BROKER_AWAY = 503, "The broker does not confirm."
    DATABASE_AWAY = 503, "The database does not answer."
    NO_PSEUDONYMS = 503, "The tenant's holders have no pseudonyms, and no record may name them."
    BUSY = 503, "The gateway has as much to do as it can."

    @property
    def status(self) -> int:
        """The HTTP status."""
        return int(self.value[0])

    @property
    def title(self) -> str:
        """What is said of every problem of this kind."""
        return str(self.value[1])


_BY_STATUS = {
    kind.status: kind
    for kind in (
        Kind.BAD_REQUEST, Kind.UNAUTHORIZED, Kind.FORBIDDEN, Kind.NOT_FOUND, Kind.METHOD_NOT_ALLOWED,
        Kind.SLOW_BODY, Kind.TOO_LARGE, Kind.INVALID, Kind.INTERNAL,
    )
}  # fmt: skip
_REMEDIES = {
    400: "send one JSON document, as UTF-8, with Content-Type: application/json",
    404: "see /docs for the addresses there are",
    405: "see /docs for its methods",
    413: "send fewer records at once",
}


class Document(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A problem document; `field` is where the fault is, `remedy` what to do."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    remedy: str | None = None
    errors: Sequence["Fault"] = ()  # where several fields are wrong: all of them
    records: Sequence[Any] = ()  # where no record was accepted: each one's answer


class Fault(msgspec.Struct, frozen=True):
    """One field that is wrong."""

    field: str
    detail: str


class Problem(HTTPException):
    """Ends a request with a problem document."""

    def __init__(
        self,
        kind: Kind,
        detail: str,
        *,
        field: str | None = None,
        remedy: str | None = None,
        headers: Mapping[str, str] | None = None,
        records: Sequence[Any] = (),
    ) -> None:
        self.document = Document(
            type=f"urn:volteface:problem:{kind.name.lower()}",
            title=kind.title,
            status=kind.status,
            detail=detail,
            field=field,
            remedy=remedy,
            records=records,
        )
        super().__init__(kind.status, detail, dict(headers or {}))


def refused(refusal: Refused) -> Document:
    """The problem of a record that is not taken; its type ends with the reason's stable word."""
    return Document(
        type=f"urn:volteface:problem:{refusal.reason}",
        title="The record is refused.",
        status=422,
        detail=f"{refusal.field}: {refusal.got}",
        field=refusal.field,
        remedy=refusal.remedy,
    )


def retry_after(seconds: float = RETRY_SECONDS) -> dict[str, str]:
    """The header that says when to come again: whole seconds, at least one."""
    return {"Retry-After": str(max(1, -int(-seconds // 1)))}


def answer(document: Document, headers: Mapping[str, str] | None = None) -> Response:
    """A problem document as a response."""
    return Response(msgspec.json.encode(document), document.status, headers=headers, media_type=MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Have the application answer every error with a problem document."""
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(Refused, _of_refusal)
    app.add_exception_handler(DatabaseUnavailable, _of_database)
    app.add_exception_handler(LogUnavailable, _of_log)
    app.add_exception_handler(NoKey, _of_pseudonyms)
    app.add_exception_handler(Exception, _of_failure)


async def _of_http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error, Problem):
        return answer(error.document, error.headers)
    kind = _BY_STATUS.get(error.status_code, Kind.BAD_REQUEST)
    told = Problem(kind, kind.title, remedy=_REMEDIES.get(error.status_code), headers=error.headers)
    return answer(msgspec.structs.replace(told.document, status=error.status_code), error.headers)


async def _of_validation(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if any(one["type"] == "json_invalid" for one in found):
        return answer(Problem(Kind.NOT_JSON, "the body is no JSON", remedy=_REMEDIES[400]).document)
    faults = [Fault(_place(one["loc"]), str(one["msg"])) for one in found]
    first = faults[0]
    told = Problem(Kind.INVALID, f"{first.field}: {first.detail}", field=first.field, remedy=first.detail)
    several = faults if len(faults) > 1 else ()
    return answer(msgspec.structs.replace(told.document, errors=several))


def _place(parts: Sequence[str | int]) -> str:
    """Where a fault is, as a record's refusal says it: `media[0].uri`; `query.limit` outside of the body."""
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).lstrip(".")
    return where.removeprefix("body.")


async def _of_refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return answer(refused(error))


async def _of_database(_: Request, error: Exception) -> Response:
    log.warning("gateway.database_away", error=str(error))
    told = Problem(Kind.DATABASE_AWAY, "the database does not answer", remedy="send the same again soon")
    return answer(told.document, retry_after())


async def _of_log(_: Request, error: Exception) -> Response:
    remedy = "send the same again, ids and all: what was taken already is not taken twice"
    return answer(Problem(Kind.BROKER_AWAY, "not all was confirmed", remedy=remedy).document, retry_after())


async def _of_pseudonyms(_: Request, error: Exception) -> Response:
    log.error("gateway.no_pseudonyms", error=str(error))
    told = Problem(
        Kind.NO_PSEUDONYMS, "the tenant's key of pseudonyms is missing", remedy="tell the operator"
    )
    return answer(told.document, retry_after())


async def _of_failure(_: Request, error: Exception) -> Response:
    return answer(Problem(Kind.INTERNAL, type(error).__name__).document)
