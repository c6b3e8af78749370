"""`/livez`, `/readyz` and `/metrics`, for supervisors, balancers and Prometheus; they ask for no key."""

import asyncio
from importlib import metadata

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from pydantic import BaseModel

from stream.database.engine import DatabaseUnavailable
from stream.gateway import documents
from stream.gateway.parts import Parts, parts
from stream.gateway.problems import Kind, Problem, retry_after

router = APIRouter(tags=["operations"])

VERSION = metadata.version("volteface")
ASK_SECONDS = 2.0
_UNAVAILABLE: documents.Answers = {503: documents.answers(503)[503]}


class State(BaseModel):
    """How the gateway is."""

    status: str
    version: str


@router.get("/livez", summary="Whether the process answers")
async def live() -> State:
    """Answered by the event loop itself: who gets no answer should end the process."""
    return State(status="alive", version=VERSION)


@router.get("/readyz", summary="Whether requests are served", responses=_UNAVAILABLE)
async def ready(request: Request) -> State:
    """Whether database and broker, as far as the last turns told, answer."""
    own = parts(request)
    if own.tails.closing:
        raise Problem(Kind.BUSY, "the gateway ends", headers=retry_after())
    if not await _answers(own):
        raise Problem(Kind.DATABASE_AWAY, "the database does not answer", headers=retry_after())
    if own.log.away:
        raise Problem(Kind.BROKER_AWAY, "the last turns were not confirmed", headers=retry_after())
    return State(status="ready", version=VERSION)


async def _answers(own: Parts) -> bool:
    try:
        async with asyncio.timeout(ASK_SECONDS):
            await own.views.latest("")
    except (DatabaseUnavailable, TimeoutError):
        return False
    return True


@router.get("/metrics", summary="Numbers for Prometheus", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """What the gateway counts, in Prometheus' text format."""
    text = generate_latest(parts(request).metrics.registry)
    return Response(text, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})
