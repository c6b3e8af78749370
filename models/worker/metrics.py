"""What a worker and its clients count. Each is given its registry: two in one process never clash."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info

from models.remote import spent
from tracker.observations import Model

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_REQUESTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_TOKENS = (64, 256, 1024, 2048, 4096, 8192, 16384, 32768)


class WorkerMetrics:
    """The worker's own numbers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.answered = Counter(
            "volteface_worker_requests", "HTTP answers.", ["route", "status"], registry=registry
        )
        self.dropped = Counter(
            "volteface_worker_dropped",
            "Calls whose client went away or whose time ran out before their answer.",
            ["kind"],
            registry=registry,
        )
        self.batch_requests = Histogram(
            "volteface_worker_batch_requests",
            "Requests a batch.",
            ["kind"],
            buckets=_REQUESTS,
            registry=registry,
        )
        self.batch_tokens = Histogram(
            "volteface_worker_batch_tokens", "Tokens a batch.", ["kind"], buckets=_TOKENS, registry=registry
        )
        self.seconds = Histogram(
            "volteface_worker_seconds",
            "Seconds by stage: decode, queue, engine, encode, call (all of them and the waiting).",
            ["stage"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._depth = Gauge("volteface_worker_queue_depth", "Requests that wait.", registry=registry)
        self._engine = Info("volteface_worker_engine", "The engine that is served.", registry=registry)
        for counter in spent.COUNTERS:
            registry.register(counter)

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Adds the block's seconds to a stage."""
        started = monotonic()
        try:
            yield
        finally:
            self.seconds.labels(stage).observe(monotonic() - started)

    def watch_depth(self, depth: Callable[[], int]) -> None:
        """Takes the queue's depth from `depth` whenever it is asked for."""
        self._depth.set_function(depth)

    def name_engine(self, engine: object) -> None:
        """Says which engine is served: its class, and its `model` where it has one."""
        model = getattr(engine, "model", None)
        known = (
            {"name": model.name, "revision": model.revision, "language": model.language}
            if isinstance(model, Model)
            else {}
        )
        self._engine.info({"engine": type(engine).__name__, **known})


class ReaderMetrics:
    """What a worker's clients count; one a registry, shared by its readers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.attempts = Counter(
            "volteface_reader_attempts",
            "Attempts to ask a worker, by how they ended: answered, refused, failed, cancelled.",
            ["outcome"],
            registry=registry,
        )
        self.wrong_answers = Counter(
            "volteface_reader_wrong_answers",
            "Answers that were malformed or not those of the requests.",
            registry=registry,
        )
        self.circuit_opened = Counter(
            "volteface_reader_circuit_opened", "Times that a circuit opened.", registry=registry
        )
