"""A reader that answers from the journal what was read before, and asks the real one only for the rest."""

from collections.abc import Sequence

from models.reader import ExplainRequest, ObserveRequest, ProposeRequest, Reader
from tracker.ledger import JournalEntry, LedgerEntry
from tracker.observations import Explanation, Observation
from tracker.proposals import Proposal
from tracker.stances import Stance

_Asked = tuple[str, str, str, int, str, str, Stance]  # a turn's revision for a target, under a state
_Told = tuple[str, str, str, str, Stance]  # a turn's flip toward a target, and from which state


class RecallingReader:
    """Gives the observations and explanations of journal entries again: what was folded, refined or not.

    It closes nothing: the real reader belongs to whoever made it.
    """

    def __init__(self, inner: Reader, entries: Sequence[JournalEntry]) -> None:
        """`entries` in the journal's order: what was read first counts, since later ones may be `stale`."""
        self._inner = inner
        self._observations: dict[_Asked, Observation] = {}
        self._explanations: dict[_Told, Explanation] = {}
        for entry in entries:
            self._learn(entry, entry.entry)
        for entry in entries:
            for changed in entry.changed:
                self._learn(entry, changed)

    def _learn(self, journal: JournalEntry, entry: LedgerEntry) -> None:
        owner = journal.tenant, journal.conversation
        for one, under in zip(entry.observations, entry.folded_under, strict=True):
            asked = (*owner, one.turn, one.revision, one.holder, one.target, one.read_under)
            self._observations.setdefault(asked, one)
            if (told := entry.explanation(one.target)) is not None:
                self._explanations.setdefault((*owner, told.turn, told.target, under), told)

    async def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        """One observation a request, in order; the model is asked for those that nothing was kept of."""
        kept = [self._observations.get(_asked(request)) for request in requests]
        missing = [request for request, one in zip(requests, kept, strict=True) if one is None]
        fresh = iter(await self._inner.observe(missing) if missing else ())
        return [next(fresh) if one is None else one for one in kept]

    async def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """One explanation a request, in order; the model is asked for those that nothing was kept of."""
        kept = [self._explanations.get(_told(request)) for request in requests]
        missing = [request for request, one in zip(requests, kept, strict=True) if one is None]
        fresh = iter(await self._inner.explain(missing) if missing else ())
        return [next(fresh) if one is None else one for one in kept]

    async def propose(self, requests: Sequence[ProposeRequest]) -> list[Proposal]:
        """Asked anew: a proposal stands on the log as a record, and in no journal."""
        return await self._inner.propose(requests)

    async def proposes(self) -> bool:
        """Whether the real reader finds targets."""
        return await self._inner.proposes()

    async def close(self) -> None:
        """Nothing to give back."""


def _asked(request: ObserveRequest) -> _Asked:
    turn = request.turn
    owner = request.tenant, request.conversation
    return (*owner, turn.turn, request.revision, turn.holder, request.target, request.state)


def _told(request: ExplainRequest) -> _Told:
    observed = request.observed
    return observed.tenant, observed.conversation, observed.turn.turn, observed.target, observed.state
