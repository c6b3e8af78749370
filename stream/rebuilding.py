"""Rebuild: a run's whole state put into an empty Redis, or one that lags, from its topics, without a model.

The run's states and journal are read to their end into a scratch file; then the records whose text belongs in
windows; then each conversation is committed, if the store still has the version that it had. What the agents'
group has not committed comes again as records when an agent starts, and its events may never have left: such
a conversation is rebuilt to the version before, where the topics still tell it, and the agent's restorer does
the rest.
"""

import datetime as dt
import sqlite3
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import structlog
from aiokafka.errors import KafkaError

from stream import history, unfinished
from stream.entries import Unreadable, decoded
from stream.history import History, MissingTopics
from stream.scratch import Scratch, scratch
from stream.settings import Settings
from stream.steps import Steps
from stream.store.port import Commit, ConversationKey, Need, Store
from tracker import keys
from tracker.conversation import Conversation
from tracker.keys import LIVE
from tracker.ledger import JournalEntry
from tracker.rebuild import Kept

log = structlog.get_logger(__name__)

ROOMS = 100  # conversations that are looked at together
FLUSH_COMMITS, FLUSH_ENTRIES = 100, 5000  # in one round trip, and what the last commit has beyond


class RebuildFailed(Exception):
    """Nothing can be rebuilt now; says why, and what to do."""


@dataclass(slots=True)
class Report:
    """How many of the run's conversations came to what."""

    rebuilt: int = 0
    left: int = 0  # the store has them at that version or a higher one
    awaited: int = 0  # nothing of them is committed as finished: an agent makes them when it starts
    without_text: int = 0  # rebuilt, but not all texts of their window are there any more
    unfinished: int = 0  # rebuilt beyond what is committed as finished


@dataclass(frozen=True, slots=True)
class _Room:
    """A conversation that the store lacks in part, and the version that it is to come to."""

    room: bytes
    kept: Kept
    upto: int
    unfinished: bool


@dataclass(frozen=True, slots=True)
class _Step:
    """A commit of a conversation, and how many turns of its window are without text."""

    of: _Room
    commit: Commit
    textless: int


async def run(settings: Settings, store: Store, *, dry: bool = False) -> Report:
    """Rebuild the settings' run in its store; `dry` changes nothing.

    Raises RebuildFailed and StoreUnavailable.
    """
    try:
        async with history.reading(settings) as read:
            with scratch() as found:
                return await _Rebuilding(settings, store, read, found, dry=dry).run()
    except MissingTopics as missing:
        raise RebuildFailed(str(missing)) from missing
    except sqlite3.Error as error:
        remedy = "make room there, or name another folder in TMPDIR"
        raise RebuildFailed(f"the scratch file in the temporary folder: {error}; {remedy}") from error
    except (KafkaError, TimeoutError, OSError) as error:
        raise RebuildFailed(f"the topics cannot be read: {error!r}; is the broker reachable?") from error


class _Rebuilding:
    def __init__(self, settings: Settings, store: Store, read: History, found: Scratch, *, dry: bool) -> None:
        self._settings, self._store, self._read, self._scratch = settings, store, read, found
        self._dry, self._report = dry, Report()
        # As the processor trims: what is still in the topic was sent at most twice its retention ago.
        reach = dt.timedelta(days=settings.reach_days) if settings.run == LIVE else None
        self._steps = Steps(found, read.turns, reach)

    async def run(self) -> Report:
        await self._require_no_agents()
        await self._gather()
        await unfinished.find(self._read, self._scratch)
        async for room in self._rooms():
            self._steps.want(room.room, room.kept, room.upto)
        await unfinished.look_up(self._read, self._scratch)
        await self._require_no_agents()
        self._report = Report()  # the store may have moved: only now it counts
        await self._commit()
        if self._report.unfinished:
            log.warning("rebuild.unfinished_taken", conversations=self._report.unfinished)
        return self._report

    async def _require_no_agents(self) -> None:
        if members := await self._read.members():
            raise RebuildFailed(
                f"run {self._settings.run} has {members} agents: end all of them and run this again; one that"
                f" was killed counts for {self._settings.rebalance_seconds:g} s (VOLTEFACE_REBALANCE_SECONDS)"
            )

    async def _gather(self) -> None:
        """States and journal as they are now, into the scratch file."""
        async for messages in self._read.messages("states"):
            for message in messages:
                try:
                    self._scratch.row(message.key or b"", message.value)
                except Unreadable:
                    _tell_unreadable(message)
        async for messages in self._read.messages("journal"):
            self._scratch.journal(_decoded(messages))

    async def _rooms(self) -> AsyncIterator[_Room]:
        """The conversations that the store lacks in part; the others are counted."""
        for page in self._scratch.rooms(ROOMS):
            owners = [ConversationKey(*keys.parse_conversation_key(room)) for room in page]
            loaded = await self._store.load([Need(owner) for owner in owners])
            for room, owner, one in zip(page, owners, loaded, strict=True):
                found = self._aimed(room, one.conversation)
                if found is not None:
                    yield await self._with_ledger(owner, found) if found.kept.version else found

    def _aimed(self, room: bytes, conversation: Conversation) -> _Room | None:
        kept, newest, cut = Kept(conversation), self._scratch.newest(room), self._scratch.upto(room)
        upto = cut if cut is not None and self._steps.tells(room, kept, cut) else newest
        if kept.version < upto:
            return _Room(room, kept, upto, unfinished=cut is not None and upto > cut)
        if newest and not upto:
            self._report.awaited += 1
        else:
            self._report.left += 1
        return None

    async def _with_ledger(self, owner: ConversationKey, found: _Room) -> _Room:
        """A conversation with what the store has of it and what came since may change."""
        holders = self._steps.touched(found.room, found.kept, found.upto)
        [loaded] = await self._store.load([Need(owner, holders)])
        [ledger] = await self._store.ledgers([owner])
        if loaded.conversation.header.version != found.kept.version:
            return found  # somebody moves it: its commit will not be taken
        return _Room(found.room, Kept(loaded.conversation, ledger), found.upto, found.unfinished)

    async def _commit(self) -> None:
        batch: list[_Step] = []
        entries = 0
        async for room in self._rooms():
            for commit, textless in self._steps.commits(room.room, room.kept, room.upto):
                batch.append(_Step(room, commit, textless))
                entries += len(commit.entries)
                if len(batch) >= FLUSH_COMMITS or entries >= FLUSH_ENTRIES:
                    await self._flush(batch)
                    batch, entries = [], 0
        await self._flush(batch)

    async def _flush(self, batch: list[_Step]) -> None:
        commits = [step.commit for step in batch]
        taken = [True] * len(commits) if self._dry or not commits else await self._store.commit(commits)
        for step, ok in zip(batch, taken, strict=True):
            if step.commit.header.version == step.of.upto:
                self._report.rebuilt += ok
                self._report.left += not ok  # somebody else moved it
                self._report.without_text += ok and step.textless > 0
                self._report.unfinished += ok and step.of.unfinished


def _decoded(messages: list[Any]) -> Iterator[tuple[JournalEntry, bytes]]:
    for message in messages:
        try:
            yield decoded(message.value), message.value
        except Unreadable:
            _tell_unreadable(message)


def _tell_unreadable(message: Any) -> None:
    log.warning("rebuild.unreadable", topic=message.topic, partition=message.partition, offset=message.offset)
