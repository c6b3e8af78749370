"""A reader that answers from journal entries what was read before, and asks another only for the rest."""

from collections.abc import Iterable, Sequence

from models.reader import ExplainRequest, ObserveRequest, ProposeRequest, Reader
from stream.store.port import ConversationKey
from tracker.ledger import JournalEntry, LedgerEntry
from tracker.observations import Explanation, Observation
from tracker.proposals import Proposal
from tracker.stances import Stance

_Asked = tuple[ConversationKey, str, int, str, str, Stance]  # a turn's revision for a target, under a state
_Told = tuple[ConversationKey, str, int, str, Stance]  # its flip, and from which state


class RecallingReader:
    """Answers for records that are applied once more, at most one of each conversation.

    With their own journal entries alone no answer can be that to another question: a turn may have been read
    again under the same state by a correction, and a lost course of things may have read it otherwise.
    It closes nothing: the real reader belongs to whoever made it.
    """

    def __init__(self, inner: Reader, entries: Iterable[JournalEntry]) -> None:
        """`entries`: those of the records, one of each conversation."""
        self._inner = inner
        self._observations: dict[_Asked, Observation] = {}
        self._explanations: dict[_Told, Explanation] = {}
        self._found: set[ConversationKey] = set()  # conversations that waited for found targets then
        for journal in entries:
            owner = ConversationKey(journal.tenant, journal.conversation)
            for entry in (journal.entry, *journal.changed):
                self._learn(owner, entry)
            if journal.header.awaited:
                self._found.add(owner)

    def _learn(self, owner: ConversationKey, entry: LedgerEntry) -> None:
        for one, under in zip(entry.observations, entry.folded_under, strict=True):
            asked = (owner, one.turn, one.revision, one.holder, one.target, one.read_under)
            self._observations[asked] = one
            if (told := entry.explanation(one.target)) is not None:
                self._explanations[owner, one.turn, one.revision, one.target, under] = told

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
        """None where none was found then; else asked anew, since what was found stands in no journal."""
        asking = [request for request in requests if _owner(request) in self._found]
        fresh = iter(await self._inner.propose(asking) if asking else ())
        return [next(fresh) if _owner(request) in self._found else _nothing(request) for request in requests]

    async def proposes(self) -> bool:
        """Whether the real reader finds targets."""
        return await self._inner.proposes()

    async def close(self) -> None:
        """Nothing to give back."""


def _owner(request: ObserveRequest | ProposeRequest) -> ConversationKey:
    return ConversationKey(request.tenant, request.conversation)


def _asked(request: ObserveRequest) -> _Asked:
    turn = request.turn
    return _owner(request), turn.turn, request.revision, turn.holder, request.target, request.state


def _told(request: ExplainRequest) -> _Told:
    seen = request.observed
    return _owner(seen), seen.turn.turn, seen.revision, seen.target, seen.state


def _nothing(request: ProposeRequest) -> Proposal:
    return Proposal(request.conversation, request.turns[-1].turn)
