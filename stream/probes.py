"""The agent over HTTP: `GET /live`, `/ready` and `/metrics`, for supervisors, balancers and Prometheus.

All three are answered by the agent's own event loop. So `/live` needs no judgement: where something blocks
the loop, it does not answer, and whoever asks should end the process.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from importlib import metadata

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from stream.addresses import listening
from stream.watchdog import Watchdog

log = structlog.get_logger(__name__)

VERSION = metadata.version("volteface")
STOP_SECONDS = 0.5


class PortTaken(OSError):
    """Nothing can listen where VOLTEFACE_PROBES says."""


@asynccontextmanager
async def serving(address: str | None, watchdog: Watchdog) -> AsyncIterator[None]:
    """Answers at `host:port` for as long as the block runs; nowhere where it is None. Raises PortTaken."""
    if address is None:
        yield
        return
    runner = web.AppRunner(make_app(watchdog), access_log=None, shutdown_timeout=STOP_SECONDS)
    await runner.setup()
    try:
        host, port = listening(address)
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            remedy = "free that port, or set another"
            raise PortTaken(
                f"VOLTEFACE_PROBES: cannot listen on {address}: {error.strerror}; {remedy}"
            ) from error
        log.info("probes.listening", host=host, port=port)
        yield
    finally:
        await runner.cleanup()


def make_app(watchdog: Watchdog) -> web.Application:
    """The application."""
    registry = CollectorRegistry()
    registry.register(_Collector(watchdog))

    async def live(_: web.Request) -> web.Response:
        return web.json_response({"status": "alive"})

    async def ready(_: web.Request) -> web.Response:
        return web.json_response(_state(watchdog), status=503 if watchdog.ill else 200)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(
            body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4}
        )

    app = web.Application()
    app.router.add_get("/live", live)
    app.router.add_get("/ready", ready)
    app.router.add_get("/metrics", metrics)
    return app


def _state(watchdog: Watchdog) -> dict[str, object]:
    paused = watchdog.paused
    return {
        "status": watchdog.ill or "ready",
        "version": VERSION,
        "paused": paused and {"part": paused.part, "seconds": round(watchdog.since(paused), 1)},
        "partitions": {
            str(number): {
                "verdict": judged.verdict,
                "due": judged.due,
                "lag": judged.lag,
                "seconds": round(judged.seconds, 1),
            }
            for (_, number), judged in sorted((watchdog.judged or {}).items())
        },
    }


class _Collector:
    """The numbers of now; those of a partition go with it."""

    def __init__(self, watchdog: Watchdog) -> None:
        self._watchdog = watchdog

    def collect(self) -> Iterable[Metric]:
        """As prometheus_client asks for them."""
        vitals = self._watchdog.vitals
        yield CounterMetricFamily("volteface_agent_finished", "Records finished.", vitals.finished)
        yield _counted("volteface_agent_refused", "Records refused, by reason.", "reason", vitals.refused)
        yield _counted("volteface_agent_pauses", "Pauses, by the part that was away.", "part", vitals.pauses)
        ready = GaugeMetricFamily("volteface_agent_ready", "1 where the agent is ready.")
        ready.add_metric([], float(self._watchdog.ill is None))
        yield ready
        yield from self._partitions()

    def _partitions(self) -> Iterable[Metric]:
        lag = _gauge("lag", "Offsets from the first unfinished record to the log's end.")
        still = _gauge("still_seconds", "Seconds since what is due went on; 0 where nothing is.")
        uncommitted = _gauge("uncommitted_seconds", "Seconds since the last commit, where one is due.")
        for (_, number), judged in sorted((self._watchdog.judged or {}).items()):
            labels = [str(number)]
            if judged.lag is not None:
                lag.add_metric(labels, judged.lag)
            still.add_metric(labels, judged.seconds)
            uncommitted.add_metric(labels, judged.uncommitted)
        yield from (lag, still, uncommitted)


def _gauge(name: str, text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"volteface_agent_partition_{name}", text, labels=["partition"])


def _counted(name: str, text: str, label: str, counts: dict[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=[label])
    for value, count in sorted(counts.items()):
        family.add_metric([value], count)
    return family
