"""The role over HTTP: `GET /live`, `/ready` and `/metrics`, answered by its own event loop."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from stream.addresses import listening
from stream.alerts.vitals import Vitals
from stream.probes import STOP_SECONDS, VERSION, PortTaken

log = structlog.get_logger(__name__)


@asynccontextmanager
async def serving(address: str | None, vitals: Vitals) -> AsyncIterator[None]:
    """Answers at `host:port` for as long as the block runs; nowhere where it is None. Raises PortTaken."""
    if address is None:
        yield
        return
    runner = web.AppRunner(make_app(vitals), access_log=None, shutdown_timeout=STOP_SECONDS)
    await runner.setup()
    try:
        host, port = listening(address)
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            said = f"cannot listen on {address}: {error.strerror}; free that port, or set another"
            raise PortTaken(f"VOLTEFACE_PROBES: {said}") from error
        log.info("probes.listening", host=host, port=port)
        yield
    finally:
        await runner.cleanup()


def make_app(vitals: Vitals) -> web.Application:
    """The application."""
    registry = CollectorRegistry()
    registry.register(_Collector(vitals))

    async def live(_: web.Request) -> web.Response:
        return web.json_response({"status": "alive"})

    async def ready(_: web.Request) -> web.Response:
        state = {"status": vitals.state, "version": VERSION, "paused": vitals.paused}
        return web.json_response(state, status=200 if vitals.state == "ready" else 503)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(
            body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4}
        )

    app = web.Application()
    app.router.add_get("/live", live)
    app.router.add_get("/ready", ready)
    app.router.add_get("/metrics", metrics)
    return app


class _Collector:
    """The numbers of now."""

    def __init__(self, vitals: Vitals) -> None:
        self._vitals = vitals

    def collect(self) -> Iterable[Metric]:
        """As prometheus_client asks for them."""
        vitals = self._vitals
        yield CounterMetricFamily("volteface_alerts_events", "Events read.", vitals.read)
        yield _counted("skipped", "Events skipped, by reason.", ["reason"], _alone(vitals.skipped))
        yield _counted("raised", "Alerts raised, by rule.", ["rule", "severity"], vitals.raised)
        yield _counted("withdrawn", "Alerts withdrawn, by rule.", ["rule"], _alone(vitals.withdrawn))
        yield _counted("pauses", "Pauses, by the part that was away.", ["part"], _alone(vitals.pauses))
        ready = GaugeMetricFamily("volteface_alerts_ready", "1 where the role is ready.")
        ready.add_metric([], float(vitals.state == "ready"))
        yield ready
        lag = GaugeMetricFamily(
            "volteface_alerts_partition_lag", "Events that are not read.", labels=["partition"]
        )
        for partition, behind in sorted(vitals.lag.items()):
            lag.add_metric([str(partition)], behind)
        yield lag


def _alone(counts: Counter[str]) -> dict[tuple[str, ...], int]:
    return {(label,): count for label, count in counts.items()}


def _counted(
    name: str, text: str, labels: list[str], counts: dict[tuple[str, ...], int]
) -> CounterMetricFamily:
    family = CounterMetricFamily(f"volteface_alerts_{name}", text, labels=labels)
    for values, count in sorted(counts.items()):
        family.add_metric(values, count)
    return family
