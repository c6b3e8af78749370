"""`POST /v1/turns`: one record or many, each accepted or refused."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Header, Request, Response
from starlette.requests import ClientDisconnect

from stream.gateway import documents, turns
from stream.gateway.access import WritesTurns
from stream.gateway.keyring import Access
from stream.gateway.parts import Parts, parts
from stream.gateway.problems import Document, Kind, Problem, answer, refused
from stream.gateway.shapes import TurnsAnswer
from tracker.records import Record, Refused, record_id

router = APIRouter(tags=["turns"])

IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=255,
        description="Makes the ids of records that bring none: the same request may be sent again.",
    ),
]

_ONE_OR_MANY = "send one record, or a list of at least one"


class _Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    index: int
    status: str
    id: str | None = None
    conversation: str | None = None
    problem: Document | None = None


@router.post(
    "/v1/turns",
    status_code=202,
    summary="Send turns, edits, deletes and clears",
    openapi_extra=documents.body(documents.TURNS),
    responses={202: {"model": TurnsAnswer}, **documents.answers(400, 408, 413, 422)},
)
async def post_turns(
    request: Request, access: WritesTurns, idempotency_key: IdempotencyKey = None
) -> Response:
    """Write records to their conversations' log.

    The answer says for each record, in order, whether it was accepted or refused, and why. Where none was
    accepted, that is a problem document: of the record, if one was sent, else with `records`. A record that
    was accepted before may be sent again: it is applied once.
    """
    own = parts(request)
    raws, many = await _divided(request, own)
    idents = turns.idents(access.principal, "turns", idempotency_key, len(raws))
    found = [_read(own, access, raw, ident) for raw, ident in zip(raws, idents, strict=True)]
    accepted = [record for record in found if not isinstance(record, Refused)]
    if accepted:
        await own.log.append(accepted)
    own.metrics.records.labels("accepted").inc(len(accepted))
    own.metrics.records.labels("refused").inc(len(found) - len(accepted))
    return _answer(found, len(accepted), many)


async def _divided(request: Request, own: Parts) -> tuple[list[bytes], bool]:
    try:
        raws, many = turns.divided(await request.body())
    except turns.NotJson as error:
        remedy = "send one JSON document, as UTF-8"
        raise Problem(Kind.NOT_JSON, str(error), field="body", remedy=remedy) from None
    except ClientDisconnect:
        raise Problem(Kind.BAD_REQUEST, "the body broke off") from None
    if not raws:
        raise Problem(Kind.INVALID, "an empty list", field="body", remedy=_ONE_OR_MANY)
    if len(raws) > own.limits.records:
        said = f"{len(raws)} records, at most {own.limits.records}"
        raise Problem(Kind.TOO_LARGE, said, field="body", remedy="send them in several requests")
    return raws, many


def _read(own: Parts, access: Access, raw: bytes, ident: str) -> Record | Refused:
    try:
        return own.names.concealed(turns.record(raw, access.tenant, ident))
    except Refused as refusal:
        return refusal


def _answer(found: Sequence[Record | Refused], accepted: int, many: bool) -> Response:
    told = [_told(index, record) for index, record in enumerate(found)]
    if accepted:
        body: dict[str, Any] = {"accepted": accepted, "refused": len(found) - accepted, "records": told}
        return Response(msgspec.json.encode(body), 202, media_type="application/json")
    if not many and told[0].problem is not None:
        return answer(told[0].problem)
    remedy = "mend each of `records` as its problem says"
    problem = Problem(Kind.REFUSED, f"{len(told)} records were refused", remedy=remedy, records=told)
    return answer(problem.document)


def _told(index: int, found: Record | Refused) -> _Told:
    if isinstance(found, Refused):
        return _Told(index=index, status="refused", problem=refused(found))
    return _Told(index=index, status="accepted", id=record_id(found), conversation=found.conversation)
