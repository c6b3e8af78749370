"""A reader for tenants of whose turns nothing may be quoted: what it says of them has no rationale.

Only what is kept and sent must be without words: the reader is shown them all the same.
"""

from collections.abc import Sequence

import msgspec

from models.reader import ExplainRequest, ObserveRequest, ProposeRequest, Reader
from tracker.observations import Explanation, Observation
from tracker.proposals import Proposal


class Wordless:
    """Passes everything on, but for the rationales of some tenants."""

    def __init__(self, inner: Reader, tenants: frozenset[str]) -> None:
        self._inner, self._tenants = inner, tenants

    async def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        """One observation a request, in order."""
        return await self._inner.observe(requests)

    async def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        """One explanation a request, in order."""
        answers = await self._inner.explain(requests)
        return [
            msgspec.structs.replace(answer, rationale="")
            if request.observed.tenant in self._tenants
            else answer
            for request, answer in zip(requests, answers, strict=True)
        ]

    async def propose(self, requests: Sequence[ProposeRequest]) -> list[Proposal]:
        """One proposal a request, in order."""
        return await self._inner.propose(requests)

    async def proposes(self) -> bool:
        """Whether its engine finds targets."""
        return await self._inner.proposes()

    async def close(self) -> None:
        """Give back threads and connections."""
        await self._inner.close()
