"""The worker's routes: bodies in, answers or problem documents out. No batches, no threads."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from typing import Protocol, TypeVar

import msgspec
import structlog
from aiohttp import web
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from models.execution import EngineFailed, RequestsRejected
from models.reader import ExplainRequest, ObserveRequest, ProposeRequest, ReaderUnavailable
from models.tracebacks import frames
from models.worker import wire
from models.worker.metrics import WorkerMetrics
from models.worker.wire import Reason, Refusal
from tracker.observations import Explanation, Observation
from tracker.proposals import Proposal

T = TypeVar("T")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_CLIENT_GONE = "499"
_RETRY_AFTER = 1.0
_OBSERVE = msgspec.json.Decoder(wire.ObserveCall)
_EXPLAIN = msgspec.json.Decoder(wire.ExplainCall)
_PROPOSE = msgspec.json.Decoder(wire.ProposeCall)
_BY_STATUS = {404: Reason.NOT_FOUND, 405: Reason.METHOD_NOT_ALLOWED, 413: Reason.TOO_LARGE}

_log = structlog.get_logger(__name__)


class Service(Protocol):
    """What the routes ask."""

    async def observe(self, requests: list[ObserveRequest]) -> list[Observation]:
        """One observation a request. Raises Refusal, RequestsRejected or ReaderUnavailable."""
        ...

    async def explain(self, requests: list[ExplainRequest]) -> list[Explanation]:
        """One explanation a request. Raises as `observe` does."""
        ...

    async def propose(self, requests: list[ProposeRequest]) -> list[Proposal]:
        """One proposal a request. Raises as `observe` does."""
        ...

    @property
    def ill(self) -> Reason | None:
        """Why a call would be refused now, if it would."""
        ...


@dataclass(frozen=True, kw_only=True)
class BodyLimits:
    """What a call may bring at most, and in how many seconds."""

    bytes: int = wire.MAX_BODY_BYTES
    requests: int = wire.MAX_REQUESTS
    seconds: float = 10.0


def make_app(service: Service, limits: BodyLimits, metrics: WorkerMetrics) -> web.Application:
    """The application."""
    routes = _Routes(service, limits, metrics)
    app = web.Application(client_max_size=limits.bytes, middlewares=[routes.measured, routes.explained])
    app.router.add_post(wire.OBSERVE, routes.observe)
    app.router.add_post(wire.EXPLAIN, routes.explain)
    app.router.add_post(wire.PROPOSE, routes.propose)
    app.router.add_get("/healthz", routes.health)
    app.router.add_get("/readyz", routes.readiness)
    app.router.add_get("/metrics", routes.metrics)
    return app


class _Routes:
    def __init__(self, service: Service, limits: BodyLimits, metrics: WorkerMetrics) -> None:
        self._service = service
        self._limits = limits
        self._metrics = metrics

    async def observe(self, request: web.Request) -> web.Response:
        requests = (await self._body(request, _OBSERVE)).requests
        self._check_count(len(requests))
        return self._answer(wire.ObserveAnswer(await self._service.observe(requests)))

    async def explain(self, request: web.Request) -> web.Response:
        requests = (await self._body(request, _EXPLAIN)).requests
        self._check_count(len(requests))
        return self._answer(wire.ExplainAnswer(await self._service.explain(requests)))

    async def propose(self, request: web.Request) -> web.Response:
        requests = (await self._body(request, _PROPOSE)).requests
        self._check_count(len(requests))
        return self._answer(wire.ProposeAnswer(await self._service.propose(requests)))

    async def health(self, _: web.Request) -> web.Response:
        return web.json_response({"status": "alive"})

    async def readiness(self, _: web.Request) -> web.Response:
        if reason := self._service.ill:
            raise Refusal(reason, "not ready", retry_after=_RETRY_AFTER)
        return web.json_response({"status": "ready"})

    async def metrics(self, _: web.Request) -> web.Response:
        text = generate_latest(self._metrics.registry)
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

    @web.middleware
    async def measured(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        started, status = monotonic(), _CLIENT_GONE
        resource = request.match_info.route.resource
        route = resource.canonical if resource else "none"
        try:
            response = await handler(request)
            status = str(response.status)
            return response
        finally:
            self._metrics.answered.labels(route, status).inc()
            if request.method == "POST":
                self._metrics.seconds.labels("call").observe(monotonic() - started)

    @web.middleware
    async def explained(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except (Refusal, RequestsRejected, ReaderUnavailable) as error:
            return _problem(_refusal(error))
        except web.HTTPException as error:
            if error.status not in _BY_STATUS:
                raise
            return _problem(Refusal(_BY_STATUS[error.status], error.reason))
        except Exception as error:
            _log.error("worker.call_failed", error=type(error).__name__, frames=frames(error))
            return _problem(Refusal(Reason.INTERNAL, type(error).__name__))

    async def _body(self, request: web.Request, decoder: msgspec.json.Decoder[T]) -> T:
        if (request.content_length or 0) > self._limits.bytes:
            raise Refusal(Reason.TOO_LARGE, f"a body has at most {self._limits.bytes} bytes")
        try:
            async with asyncio.timeout(self._limits.seconds):
                raw = await request.read()
        except TimeoutError:
            raise Refusal(Reason.SLOW_BODY, f"no whole body within {self._limits.seconds} s") from None
        except web.RequestPayloadError as error:
            raise Refusal(Reason.BROKEN_BODY, str(error)) from None
        with self._metrics.timed("decode"):
            return _decoded(raw, decoder)

    def _check_count(self, requests: int) -> None:
        if requests > self._limits.requests:
            raise Refusal(Reason.TOO_LARGE, f"{requests} requests, at most {self._limits.requests}")

    def _answer(self, answer: msgspec.Struct) -> web.Response:
        with self._metrics.timed("encode"):
            return web.Response(body=msgspec.json.encode(answer), content_type=wire.JSON)


def _decoded(raw: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        raise Refusal(Reason.INVALID, str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal(Reason.NOT_JSON, str(error)) from None


def _refusal(error: Refusal | RequestsRejected | ReaderUnavailable) -> Refusal:
    match error:
        case Refusal():
            return error
        case RequestsRejected():
            return Refusal(Reason.REJECTED, str(error), indexes=error.indexes)
        case EngineFailed():
            return Refusal(Reason.ENGINE_FAILED, str(error))
    return Refusal(Reason.ENGINE_UNAVAILABLE, str(error), retry_after=error.retry_after)


def _problem(refusal: Refusal) -> web.Response:
    problem = refusal.problem
    response = web.Response(
        status=problem.status, body=msgspec.json.encode(problem), content_type=wire.PROBLEM_JSON
    )
    if refusal.retry_after is not None:
        response.headers["Retry-After"] = str(max(math.ceil(refusal.retry_after), 1))
    if refusal.reason is Reason.DRAINING:
        response.force_close()  # a kept connection would bring the next call here as well
    return response
