"""A reader whose every answer is told: what takes many of them in a row does not hang."""

from collections.abc import Callable, Sequence

from models.reader import ExplainRequest, ObserveRequest, ProposeRequest, Reader
from tracker.observations import Explanation, Observation
from tracker.proposals import Proposal


class Answering:
    """Passes everything on, and tells each answer."""

    def __init__(self, inner: Reader, tell: Callable[[], None]) -> None:
        self._inner, self._tell = inner, tell

    async def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        """One observation a request, in order."""
        answers = await self._inner.observe(requests)
        self._tell()
        return answers

    async def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """One explanation a request, in order."""
        answers = await self._inner.explain(requests)
        self._tell()
        return answers

    async def propose(self, requests: Sequence[ProposeRequest]) -> list[Proposal]:
        """One proposal a request, in order."""
        answers = await self._inner.propose(requests)
        self._tell()
        return answers

    async def proposes(self) -> bool:
        """Whether its engine finds targets."""
        return await self._inner.proposes()

    async def close(self) -> None:
        """Give back threads and connections."""
        await self._inner.close()
