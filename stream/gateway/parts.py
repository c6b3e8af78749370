"""What the routes work with, and how a request reaches it."""

from collections import Counter
from dataclasses import dataclass, field
from typing import cast

from fastapi import Request
from prometheus_client import CollectorRegistry

from stream.gateway.buckets import Buckets, Rate
from stream.gateway.keyring import Keyring
from stream.gateway.metrics import GatewayMetrics
from stream.gateway.names import Names
from stream.gateway.tails import Tails
from stream.gateway.turns_log import TurnsLog
from stream.views.port import Views
from tracker.keys import LIVE


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the gateway takes and holds at most. Times are seconds."""

    body_bytes: int = 1024 * 1024
    body_seconds: float = 10.0
    records: int = 1000  # a request
    rate: Rate = field(default_factory=Rate)
    streams: int = 2000
    streams_a_key: int = 500
    heartbeat: float = 15.0
    slow: float = 10.0  # a page of events that a subscriber takes longer for ends its stream
    stuck: float = 30.0  # and one that takes nothing for so long is cut off


class Parts:
    """The gateway's parts; one a process."""

    def __init__(
        self,
        *,
        run: str = LIVE,
        views: Views,
        log: TurnsLog,
        keyring: Keyring,
        names: Names,
        limits: Limits | None = None,
    ) -> None:
        self.views, self.log, self.keyring, self.names = views, log, keyring, names
        self.limits = limits or Limits()
        self.buckets = Buckets(self.limits.rate)
        self.metrics = GatewayMetrics(CollectorRegistry())
        self.tails = Tails(views, run)
        self.streams: Counter[str] = Counter()  # open ones, by key


def parts(request: Request) -> Parts:
    """The parts that answer a request."""
    return cast(Parts, request.app.state.parts)
