"""How the soak is run, and which part of it is judged."""

from typing import Literal

from tests.benchmarks.measuring import Scale

BrokerName = Literal["kafka", "tansu"]
ReaderName = Literal["rule", "encoder", "generative"]

MINUTES, QUICK_MINUTES = 30.0, 3.0
LEAST_MINUTES = 2.0
LEAST_WARM_UP = 60.0
SAMPLES = 120  # at least, where they are not closer than a second
LONGEST_PERIOD = 5.0


class Plan(Scale, frozen=True):
    """A scale with what the soak alone asks for."""

    asked_minutes: float | None = None
    broker: BrokerName = "kafka"
    agents: int = 1
    reader: ReaderName = "rule"

    @property
    def seconds(self) -> float:
        """How long it is fed."""
        minutes = self.asked_minutes or (QUICK_MINUTES if self.quick else MINUTES)
        return 60 * max(LEAST_MINUTES, minutes)

    @property
    def warm_up(self) -> float:
        """Seconds of its beginning that are not judged: a fifth, and at least a minute."""
        return max(LEAST_WARM_UP, self.seconds / 5)

    @property
    def period(self) -> float:
        """Seconds between two looks."""
        return min(LONGEST_PERIOD, max(1.0, self.seconds / SAMPLES))
