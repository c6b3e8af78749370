"""A batch's way: load, read wave by wave, fold, explain flips, commit. No Kafka here.

Conversations whose next record takes the ledger leave the waves; they are gone on with when the others are
committed. What a bound or an outage leaves over stays unfinished, and what was done until then is committed.
"""

import datetime as dt
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import structlog

from models.reader import Reader, ReaderUnavailable
from stream import isolation, refolds, waves
from stream.chain import Chain, Item, Refusal, grouped, need
from stream.store.port import ConversationKey, Loaded, Need, Outbox, Store
from tracker.conversation import Rules
from tracker.targets import first

log = structlog.get_logger(__name__)

COMMIT_ATTEMPTS = 5

Rooms = Callable[[str, str], tuple[str, ...]]  # the propositions that settings give (tenant, conversation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """How much of a batch is done before what is done is committed."""

    waves: int = 64
    seconds: float = 10.0


@dataclass(slots=True)
class Processed:
    """What came of a batch. `unfinished` are indices, in order; `outage` says why, where a part is down."""

    refusals: list[Refusal] = field(default_factory=list)
    outboxes: dict[ConversationKey, Outbox] = field(default_factory=dict)
    unfinished: list[int] = field(default_factory=list)
    outage: ReaderUnavailable | None = None


class CommitContended(Exception):
    """Another writer kept moving a conversation's version: two agents on one partition."""


def no_rooms(tenant: str, conversation: str) -> tuple[str, ...]:
    """No conversation has targets from settings."""
    return ()


class Processor:
    """Applies batches of records to a run's conversations."""

    def __init__(
        self,
        store: Store,
        reader: Reader,
        rules: Rules,
        *,
        rooms: Rooms = no_rooms,
        live: bool = False,
        bound: Bound | None = None,
        attempts: int = isolation.ATTEMPTS,
    ) -> None:
        """`attempts`: how often a record may break the engine alone before it is refused."""
        self._store, self._reader, self._rules, self._attempts = store, reader, rules, attempts
        self._rooms, self._live, self._bound = rooms, live, bound or Bound()

    async def process(self, items: Sequence[Item]) -> Processed:
        """Apply the items; each is then applied, repeated, refused or unfinished.

        Raises StoreUnavailable and CommitContended: then the whole batch may be given again.
        """
        result = Processed()
        pending = grouped(items)
        deadline = time.monotonic() + self._bound.seconds
        for _ in range(COMMIT_ATTEMPTS):
            chains = await self._start(pending)
            outage = await self._waves(chains, deadline)
            stalled = [chain for chain in chains if chain.stalled]
            pending = await self._commit([chain for chain in chains if not chain.stalled], result)
            outage = outage or await self._refolds(stalled, deadline)
            pending |= await self._commit(stalled, result)
            result.outage = result.outage or outage
            if not pending:
                return result
            log.info("commit.contended", conversations=len(pending))
        raise CommitContended(f"{len(pending)} conversations moved {COMMIT_ATTEMPTS} times under a commit")

    async def _start(self, pending: Mapping[ConversationKey, list[Item]]) -> list[Chain]:
        loaded = await self._store.load([need(key, items) for key, items in pending.items()])
        return [
            Chain.start(key, items, self._opened(found))
            for (key, items), found in zip(pending.items(), loaded, strict=True)
        ]

    def _opened(self, loaded: Loaded) -> Loaded:
        """A conversation's first record gives it the targets of its room."""
        conversation = loaded.conversation
        if conversation.header.version:
            return loaded
        propositions = self._rooms(conversation.tenant, conversation.name)
        targets = first(conversation.tenant, conversation.name, propositions)
        header = msgspec.structs.replace(conversation.header, targets=targets)
        opened = msgspec.structs.replace(conversation, header=header)
        return msgspec.structs.replace(loaded, conversation=opened)

    async def _waves(self, chains: list[Chain], deadline: float) -> ReaderUnavailable | None:
        for wave in range(self._bound.waves):
            unfinished = [chain for chain in chains if not chain.finished and not chain.stalled]
            if not unfinished or (wave and time.monotonic() > deadline):
                return None
            try:
                await waves.run(unfinished, self._reader, self._rules, self._attempts)
            except ReaderUnavailable as outage:
                return outage
        return None

    async def _refolds(self, chains: list[Chain], deadline: float) -> ReaderUnavailable | None:
        """The rest of the chains that left the waves, record by record; at least one of each is tried."""
        for round_ in range(self._bound.waves):
            unfinished = [chain for chain in chains if not chain.finished]
            stalled = [chain for chain in unfinished if chain.stalled]
            others = [chain for chain in unfinished if not chain.stalled]
            if not unfinished or (round_ and time.monotonic() > deadline):
                return None
            try:
                await self._provide(stalled)
                await refolds.run(stalled, self._reader, self._rules, self._attempts)
                await waves.run(others, self._reader, self._rules, self._attempts)
            except ReaderUnavailable as outage:
                return outage
        return None

    async def _provide(self, chains: list[Chain]) -> None:
        """The ledgers of chains that have none yet, and the states that their records may take."""
        bare = [chain for chain in chains if chain.ledger is None]
        if not bare:
            return
        ledgers = await self._store.ledgers([chain.key for chain in bare])
        for chain, ledger in zip(bare, ledgers, strict=True):
            chain.ledger = ledger
        lacking = [(chain, asked) for chain in bare if (asked := chain.lacking)]
        if lacking:
            loaded = await self._store.load([Need(chain.key, asked) for chain, asked in lacking])
            for (chain, _), more in zip(lacking, loaded, strict=True):
                chain.add(more)

    async def _commit(self, chains: list[Chain], result: Processed) -> dict[ConversationKey, list[Item]]:
        """Commit what the chains changed; the items of chains whose version moved must be done again."""
        changed = [chain for chain in chains if chain.outcomes]
        commits = [chain.commit(self._trim_before(chain)) for chain in changed]
        taken = await self._store.commit(commits) if commits else []
        moved = {commit.key for commit, ok in zip(commits, taken, strict=True) if not ok}
        fresh = {commit.key: commit.outbox for commit in commits}
        for chain in chains:
            if chain.key not in moved:
                result.refusals += chain.refusals
                result.unfinished += [item.index for item in chain.items[chain.done :]]
                result.outboxes[chain.key] = {**chain.loaded.outbox, **fresh.get(chain.key, {})}
        result.unfinished.sort()
        return {chain.key: chain.items for chain in chains if chain.key in moved}

    def _trim_before(self, chain: Chain) -> dt.datetime | None:
        """Twice the reach: what is still in the topic was sent at most twice its retention ago."""
        newest = chain.conversation.header.newest
        return newest - 2 * self._rules.clock.reach if self._live and newest else None
