"""What the gateway counts."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class GatewayMetrics:
    """The gateway's own numbers; none of them names a tenant."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.answered = Counter(
            "volteface_gateway_requests", "HTTP answers.", ["route", "method", "status"], registry=registry
        )
        self.seconds = Histogram(
            "volteface_gateway_seconds",
            "Seconds to the answer's beginning.",
            ["route", "method"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.records = Counter(
            "volteface_gateway_records",
            "Records, by whether they were accepted or refused.",
            ["outcome"],
            registry=registry,
        )
        self.streams = Gauge("volteface_gateway_streams", "Open event streams.", registry=registry)
        self.sent = Counter("volteface_gateway_events", "Events sent to subscribers.", registry=registry)
        self.ended = Counter(
            "volteface_gateway_streams_ended",
            "Event streams that ended, by reason: gone, slow, stuck, revoked, closing.",
            ["reason"],
            registry=registry,
        )
