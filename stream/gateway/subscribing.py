"""`GET /v1/flips` and `GET /v1/events`: as they come (server-sent events), or those there are (pages)."""

from functools import partial
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Header, Query, Request, Response

from stream.database.engine import DatabaseUnavailable
from stream.gateway import documents, streams
from stream.gateway.access import ReadsEvents
from stream.gateway.keyring import Access
from stream.gateway.parts import Parts, parts
from stream.gateway.problems import Kind, Problem, retry_after
from stream.gateway.shapes import EventPage, Limit, Name, Position
from stream.gateway.tails import ALERTS
from stream.views.port import PAGE, Filter, StoredEvent
from tracker.events import EventType
from tracker.stances import TriggerKind

router = APIRouter(tags=["events"])

JSON = "application/json"
_KINDS = {kind.rpartition(".")[2]: frozenset({kind.value}) for kind in EventType} | {"alert": ALERTS}
_PATTERN = f"^({'|'.join(_KINDS)})$"
_MOST_LAST_ID = 2**53

_STREAMED: dict[str, Any] = {
    "description": "A page of events, or the events as they come.",
    "content": {streams.MEDIA_TYPE: {"schema": {"type": "string"}}},
    "model": EventPage,
}
_ANSWERS: documents.Answers = {200: _STREAMED, **documents.answers(400, 406, 422)}


async def _where(
    request: Request,
    access: ReadsEvents,
    conversation: Annotated[Name | None, Query()] = None,
    holder: Annotated[Name | None, Query()] = None,
    target: Annotated[Name | None, Query(description="A target's id.")] = None,
    trigger: Annotated[TriggerKind | None, Query(description="What moved the holder.")] = None,
    kind: Annotated[
        list[Annotated[str, Query(pattern=_PATTERN)]],
        Query(max_length=len(_KINDS), description="Events' kinds."),
    ] = [],  # noqa: B006 - FastAPI copies it
) -> Filter:
    named = holder and parts(request).names.holder(access.tenant, holder)
    types = frozenset[str]().union(*(_KINDS[one] for one in kind))
    return Filter(conversation=conversation, holder=named, target=target, trigger=trigger, types=types)


class Asked:
    """Where to begin, and how much."""

    def __init__(
        self,
        after: Annotated[
            Position | None,
            Query(description="Only events behind this position, oldest first; a stream begins there."),
        ] = None,
        before: Annotated[
            Position | None, Query(description="Only events before it; not for streams.")
        ] = None,
        limit: Annotated[Limit, Query()] = PAGE,
        last_event_id: Annotated[
            str | None, Header(description="The last SSE id seen: the stream goes on behind it.")
        ] = None,
        accept: Annotated[str, Header(description=f"{streams.MEDIA_TYPE} or {JSON}.")] = JSON,
    ) -> None:
        self.after, self.before, self.limit = after, before, limit
        self.last_event_id, self.accept = last_event_id, accept

    @property
    def position(self) -> int | None:
        """Where a stream begins. Raises Problem."""
        if not self.last_event_id:
            return self.after
        if self.last_event_id.isascii() and self.last_event_id.isdecimal():
            position = int(self.last_event_id[:20])
            if position < _MOST_LAST_ID:
                return position
        remedy = "send an SSE id of these events, or leave it out and set after=0 for all that is kept"
        raise Problem(
            Kind.BAD_REQUEST, "no id that this gateway gives", field="header.last-event-id", remedy=remedy
        )


Where = Annotated[Filter, Depends(_where)]
Wanted = Annotated[Asked, Depends()]


@router.get("/v1/flips", responses=_ANSWERS, response_model=None, summary="Flips, and retractions of flips")
async def flips(request: Request, access: ReadsEvents, where: Where, asked: Wanted) -> Response:
    """Who changed their mind, about what, and what moved them: live, or as pages of what is kept.

    Live (`Accept: text/event-stream`), an event's SSE id is its position; with `Last-Event-ID` a stream goes
    on behind it. It begins now unless told otherwise.
    """
    return await _events(request, access, msgspec.structs.replace(where, flips=True), asked)


@router.get("/v1/events", responses=_ANSWERS, response_model=None, summary="All events")
async def events(request: Request, access: ReadsEvents, where: Where, asked: Wanted) -> Response:
    """As `/v1/flips`, with every event."""
    return await _events(request, access, where, asked)


async def _events(request: Request, access: Access, where: Filter, asked: Asked) -> Response:
    own = parts(request)
    if preferred(asked.accept) == JSON:
        return await _page(own, access, where, asked)
    _require_room(own, access)
    begin = await streams.beginning(own, access.tenant, asked.position)
    still = partial(_still, own, request.headers.get("authorization", "").partition(" ")[2].strip())
    return streams.EventStream(own, access.tenant, access.key, where, begin, still)


async def _page(own: Parts, access: Access, where: Filter, asked: Asked) -> Response:
    found = await own.views.events(
        access.tenant, where, after=asked.after, before=asked.before, limit=asked.limit
    )
    body: dict[str, Any] = {
        "events": [_row(event) for event in found],
        "next": found[-1].position if len(found) == asked.limit else None,
    }
    return Response(msgspec.json.encode(body), media_type=JSON)


def _row(event: StoredEvent) -> dict[str, Any]:
    return {
        "position": event.position,
        "retracted_by": event.retracted_by,
        "event": msgspec.Raw(event.body),
    }


def _require_room(own: Parts, access: Access) -> None:
    if own.streams[access.key] >= own.limits.streams_a_key:
        said = f"the key has {own.limits.streams_a_key} streams open"
        raise Problem(Kind.TOO_MANY_REQUESTS, said, remedy="close one first", headers=retry_after())
    if own.streams.total() >= own.limits.streams or own.tails.closing:
        raise Problem(Kind.BUSY, "no stream more can be opened", headers=retry_after())


async def _still(own: Parts, text: str) -> bool:
    """Whether a stream's key still holds; while the database is away it does."""
    try:
        return await own.keyring.access(text) is not None
    except DatabaseUnavailable:
        return True


def preferred(accept: str) -> str:
    """Which of the two media types an Accept header (RFC 9110, 12.5.1) prefers. Raises Problem."""
    weights = dict(map(_weighed, accept.split(",")))
    best = {
        offered: next(
            (weights[name] for name in (offered, f"{offered.partition('/')[0]}/*", "*/*") if name in weights),
            0.0,
        )
        for offered in (JSON, streams.MEDIA_TYPE)
    }
    chosen = max(best, key=lambda offered: best[offered])
    if not best[chosen]:
        remedy = f"accept {streams.MEDIA_TYPE} or {JSON}"
        raise Problem(Kind.NOT_ACCEPTABLE, "neither is accepted", field="header.accept", remedy=remedy)
    return chosen


def _weighed(part: str) -> tuple[str, float]:
    name, *parameters = (word.strip().lower() for word in part.split(";"))
    given = next((word[2:] for word in parameters if word.startswith("q=")), "1")
    try:
        weight = float(given)
    except ValueError:
        weight = 0.0
    return name, min(max(weight, 0.0), 1.0)
