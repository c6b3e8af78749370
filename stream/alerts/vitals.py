"""What the alerts' role shows of itself: counted by the role, read by whoever watches it."""

from collections import Counter
from collections.abc import Iterable

from tracker.alert_events import AlertEvent, AlertType


class Vitals:
    """Since the start of this process."""

    def __init__(self) -> None:
        self.read = 0  # events
        self.skipped: Counter[str] = Counter()  # events, by reason
        self.raised: Counter[tuple[str, ...]] = Counter()  # alerts, by rule and severity
        self.withdrawn: Counter[str] = Counter()  # alerts, by rule
        self.pauses: Counter[str] = Counter()  # by part
        self.paused: str | None = None  # the part that is away
        self.joined = False  # whether the group has shared its partitions out to it
        self.lag: dict[int, int] = {}  # events that are not read, by partition

    @property
    def state(self) -> str:
        """`ready`, or what it waits for."""
        if not self.joined:
            return "joining"
        return "paused" if self.paused else "ready"

    def finish(self, events: int, alerts: Iterable[AlertEvent]) -> None:
        """So many events are read, and what they made is delivered."""
        self.read += events
        for alert in alerts:
            if alert.type is AlertType.RAISED:
                self.raised[alert.data.rule, alert.data.severity.value] += 1
            else:
                self.withdrawn[alert.data.rule] += 1

    def pause(self, part: str) -> None:
        """A part does not answer, once more or for the first time."""
        self.pauses[part] += 1
        self.paused = part
