"""The policy: what turns an observation into a stance. It decides; the machine moves."""

import hashlib
from typing import Annotated

import msgspec

from tracker.observations import Observation
from tracker.records import HolderKind
from tracker.stances import Expressed, Stance

Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


class Threshold(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an expressed position needs: a probability, and a margin over the next position."""

    probability: Share = 0.5
    margin: Share = 0.0


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Thresholds and exemptions; read from TOML, stamped on every event as `name@digest`."""

    name: str = "default"
    establish: Threshold = Threshold(0.5)
    flip: Threshold = Threshold(0.5)
    relevance: Share = 0.0  # below it a turn persists the state
    exempt_holders: frozenset[str] = frozenset()
    exempt_kinds: frozenset[HolderKind] = frozenset({HolderKind.BOT, HolderKind.SYSTEM})

    @property
    def stamp(self) -> str:
        """The policy's name and a digest of all that it says."""
        return (
            f"{self.name}@{hashlib.sha256(msgspec.json.encode(self, order='deterministic')).hexdigest()[:8]}"
        )

    def exempts(self, holder: str, kind: HolderKind) -> bool:
        """Whether a holder's turns are read at all."""
        return holder in self.exempt_holders or kind in self.exempt_kinds


def decide(before: Stance, observation: Observation, policy: Policy) -> Stance:
    """The stance after the observation: what was expressed where it is sure enough, else the state before.

    A tie for the first place is never sure, whatever the margin.
    """
    if observation.relevance < policy.relevance:
        return before
    (first, probability), (_, second) = observation.expressed.ranked()[:2]
    if first is Expressed.NONE or probability == second:
        return before
    needed = policy.establish if before is Stance.UNKNOWN else policy.flip
    sure = probability >= needed.probability and probability - second >= needed.margin
    return Stance(first.value) if sure else before
