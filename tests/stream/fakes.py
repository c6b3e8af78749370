"""Readers, senders, stores and Faust events for tests of the stream: they count, fail and wait as told."""

import asyncio
import datetime as dt
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from models.execution import EngineFailed
from models.language.rule import RuleEngine
from models.local import LocalReader
from models.reader import (
    ExplainRequest,
    ObserveRequest,
    ProposeRequest,
    ReaderRejected,
    ReaderUnavailable,
)
from stream.chain import Chain, Item, grouped, need
from stream.outbox import JOURNAL
from stream.sender import SenderUnavailable
from stream.store.memory import MemoryStore
from stream.store.port import Commit, ConversationKey, Loaded, Message, Need, StoreUnavailable
from tracker import keys, records
from tracker.ledger import Ledger
from tracker.observations import Explanation, Observation
from tracker.proposals import Proposal
from tracker.records import CreateTurn, DeclareTarget, Record

START = dt.datetime(2026, 11, 29, 20, 0, tzinfo=dt.UTC)
TOPIC = "volteface.turns"


def turn(name: str, text: str = "+1", room: str = "a", seconds: float = 0.0, **rest: Any) -> CreateTurn:
    given: dict[str, Any] = {"holder": "ann"} | rest
    sent_at = START + dt.timedelta(seconds=seconds)
    return CreateTurn(conversation=room, turn=name, text=text, sent_at=sent_at, **given)


def target(room: str = "a", proposition: str = "whether x", **rest: Any) -> DeclareTarget:
    given: dict[str, Any] = {"id": f"declare {proposition} {rest}"} | rest
    return DeclareTarget(conversation=room, proposition=proposition, sent_at=START, **given)


def items(given: Sequence[Record]) -> list[Item]:
    return [Item(index, record, f"{TOPIC}/0/{index}") for index, record in enumerate(given)]


def rule() -> LocalReader:
    return LocalReader(RuleEngine())


async def chains(store: MemoryStore, given: Sequence[Record]) -> list[Chain]:
    """Chains at their beginning, as the processor makes them."""
    groups = grouped(items(given))
    loaded = await store.load([need(key, of_it) for key, of_it in groups.items()])
    return [
        Chain.start(key, of_it, found) for (key, of_it), found in zip(groups.items(), loaded, strict=True)
    ]


@dataclass
class CountingReader:
    """Reads by rule; keeps every call's turns, rejects some, breaks on some, and is away for some calls.

    It proposes the first of `propositions`, and each later one where the one before it is asked about.
    """

    breaks: frozenset[str] = frozenset()
    rejects: frozenset[str] = frozenset()
    explains_not: frozenset[str] = frozenset()
    away: Callable[["CountingReader"], bool] = lambda reader: False
    observed: list[list[str]] = field(default_factory=list)
    explained: list[list[str]] = field(default_factory=list)
    propositions: Sequence[str] = ()
    replaces: bool = False
    asked: list[ProposeRequest] = field(default_factory=list)
    proposes_not: frozenset[str] = frozenset()
    breaks_on_proposing: frozenset[str] = frozenset()

    async def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        turns = [request.turn.turn for request in requests]
        self.observed.append(turns)
        if self.breaks & {"any", *turns}:
            raise EngineFailed("the engine failed: RuntimeError", retry_after=0.0)
        self._fail(set(turns) & self.rejects)
        return RuleEngine().observe(requests)

    async def explain(self, requests: Sequence[ExplainRequest]) -> list[Explanation]:
        turns = [request.observed.turn.turn for request in requests]
        self.explained.append(turns)
        self._fail(set(turns) & self.explains_not)
        return RuleEngine().explain(requests)

    async def propose(self, requests: Sequence[ProposeRequest]) -> list[Proposal]:
        self.asked += requests
        turns = {request.turns[-1].turn for request in requests}
        if self.breaks_on_proposing & turns:
            raise EngineFailed("the engine failed: RuntimeError", retry_after=0.0)
        self._fail(turns & self.proposes_not)
        return [self._proposal(request) for request in requests]

    def _proposal(self, request: ProposeRequest) -> Proposal:
        following = dict(zip(("", *self.propositions), self.propositions, strict=False))
        found = following.get(request.proposition)
        replaces = self.replaces and bool(request.proposition)
        return Proposal(request.conversation, request.turns[-1].turn, found, replaces)

    async def proposes(self) -> bool:
        return bool(self.propositions)

    def _fail(self, rejected: set[str]) -> None:
        if self.away(self):
            raise ReaderUnavailable("away", retry_after=0.0)
        if rejected:
            raise ReaderRejected(f"cannot read {sorted(rejected)}")

    async def close(self) -> None:
        pass

    @property
    def turns(self) -> list[str]:
        """Every turn it was asked to observe, in order."""
        return [turn for call in self.observed for turn in call]


class FlakyStore(MemoryStore):
    """A memory store that is away as told, and in which others move a conversation before a commit."""

    def __init__(self, run: str = "live") -> None:
        super().__init__(run)
        self.loads: list[list[str]] = []
        self.ledgers_loaded: list[list[str]] = []
        self.down = 0  # calls that find it away
        self.rivals: list[Callable[[MemoryStore], Any]] = []  # each awaited before one commit

    async def load(self, needs: Sequence[Need]) -> list[Loaded]:
        self._up()
        self.loads.append([need.key.name for need in needs])
        return await super().load(needs)

    async def ledgers(self, keys: Sequence[ConversationKey]) -> list[Ledger]:
        self._up()
        self.ledgers_loaded.append([key.name for key in keys])
        return await super().ledgers(keys)

    async def commit(self, commits: Sequence[Commit]) -> list[bool]:
        self._up()
        if self.rivals:
            await self.rivals.pop(0)(self)
        return await super().commit(commits)

    async def delivered(self, arrivals: Mapping[ConversationKey, Collection[int]]) -> None:
        self._up()
        await super().delivered(arrivals)

    def _up(self) -> None:
        if self.down:
            self.down -= 1
            raise StoreUnavailable("away")


class MemorySender:
    """Keeps what is sent, in order; away as told."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.letters: list[tuple[Message, dict[str, bytes]]] = []
        self.down = 0

    async def send(self, messages: Sequence[Message]) -> None:
        self._up(messages)
        self.sent += sorted(messages, key=lambda message: message.topic != JOURNAL)

    async def send_with_headers(self, messages: Any) -> None:
        given = list(messages)
        self._up(given)
        self.letters += [(message, dict(headers)) for message, headers in given]

    def _up(self, given: Sequence[object]) -> None:
        if given and self.down:
            self.down -= 1
            raise SenderUnavailable("away")

    def of(self, topic: str) -> list[bytes | None]:
        return [message.value for message in self.sent if message.topic == topic]


class Partition:
    """One partition's Faust events, and which of their offsets were acked, in order."""

    def __init__(self, number: int = 0) -> None:
        self.number, self.acked, self.end = number, list[int](), 0
        self.active, self.generation = True, 1

    @property
    def consumer_generation_id(self) -> int:
        return self.generation

    @property
    def flow_control(self) -> Any:
        return SimpleNamespace(is_active=lambda: self.active)

    def event(self, value: bytes | None, key: bytes | None = None, **rest: Any) -> Any:
        """The next event."""
        offset = self.end
        self.end += 1
        given = {"timestamp": START.timestamp(), "timestamp_type": 1, "headers": None} | rest
        message = SimpleNamespace(
            topic=TOPIC, partition=self.number, offset=offset, key=key, value=value,
            generation_id=self.generation, **given,
        )  # fmt: skip
        return SimpleNamespace(app=self, message=message, ack=lambda: self.acked.append(offset))

    def events(self, given: Sequence[Record]) -> list[Any]:
        return [
            self.event(records.encode(record), keys.conversation_key(record.tenant, record.conversation))
            for record in given
        ]


async def until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until the condition holds."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what it asks about sets no event
            await asyncio.sleep(0.005)
