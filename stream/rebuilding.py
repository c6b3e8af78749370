"""Rebuild: a run's whole state put into an empty Redis, or one that lags, from its topics, without a model.

The run's states and journal are read to their end into a scratch file; then the records whose text belongs in
windows; then each conversation is committed, if the store still has the version that it had. What the agents'
group has not committed comes again as records when an agent starts, and its events may never have left: such
a conversation is rebuilt to the version before, where the topics still tell it, and the agent's restorer does
the rest.

A conversation that cannot be rebuilt is told and left as it is. Where a rebuild is ended before its end, what
the journal told of last is lacking: an agent finds that at the journal's end, and puts it back or refuses to
work until it is rebuilt.
"""

import datetime as dt
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import structlog
from aiokafka.errors import KafkaError

from stream import history, unfinished
from stream.entries import Unreadable, decoded
from stream.history import History, MissingTopics
from stream.kafka import in_words
from stream.putting import Putting, Report, Room
from stream.scratch import Scratch, scratch
from stream.settings import Settings
from stream.singly import Singly, sure
from stream.steps import Step, Steps
from stream.store.port import ConversationKey, Need, Store, StoreUnavailable
from tracker import keys
from tracker.conversation import Conversation
from tracker.keys import LIVE
from tracker.ledger import JournalEntry
from tracker.rebuild import Kept

log = structlog.get_logger(__name__)

ROOMS = 100  # conversations that are looked at together


class RebuildFailed(Exception):
    """Nothing can be rebuilt now; says why, and what to do."""


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
        raise RebuildFailed(f"the topics cannot be read: {in_words(error)}") from error


class _Rebuilding:
    def __init__(self, settings: Settings, store: Store, read: History, found: Scratch, *, dry: bool) -> None:
        self._settings, self._store, self._read, self._scratch = settings, store, read, found
        self._reads, self._failed, self._dry = Singly(store), 0, dry
        self._putting = Putting(store, self._alone, dry=dry)
        # As the processor trims: what is still in the topic was sent at most twice its retention ago.
        reach = dt.timedelta(days=settings.reach_days) if settings.run == LIVE else None
        self._steps = Steps(found, read.turns, reach)

    async def run(self) -> Report:
        await self._require_no_agents()
        await self._gather()
        await unfinished.find(self._read, self._scratch, self._alone)
        async for room in self._rooms():
            with self._alone(room.room):
                self._steps.want(room.room, room.kept, room.upto)
        await unfinished.look_up(self._read, self._scratch)
        await self._require_no_agents()
        report = self._putting.report = Report()  # the store may have moved: only now it counts
        if not self._dry:
            await self._store.mark(rebuilding=True)  # until its end agents refuse to work beside it
        await self._commit()
        if not self._dry:
            await self._store.mark(rebuilding=False)
        if report.unfinished:
            log.warning("rebuild.unfinished_taken", conversations=report.unfinished)
        return replace(report, failed=self._failed)

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

    @contextmanager
    def _alone(self, room: bytes) -> Iterator[None]:
        """What fails in the block fails of this room: the others go on."""
        try:
            yield
        except (StoreUnavailable, KafkaError, OSError, sqlite3.Error):
            raise
        except Exception as error:
            self._fail(room, error)

    def _fail(self, room: bytes, error: Exception) -> None:
        self._failed += 1
        self._scratch.drop(room)
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        log.error("rebuild.failed", conversation=room.decode(errors="replace"), error=type(cause).__name__)

    async def _rooms(self) -> AsyncIterator[Room]:
        """The conversations that the store lacks in part; the others are counted."""
        for page in self._scratch.rooms(ROOMS):
            owners: dict[bytes, ConversationKey] = {}
            for room in page:
                with self._alone(room):
                    owners[room] = ConversationKey(*keys.parse_conversation_key(room))
            loaded = await self._reads.ask(self._store.load, [*map(Need, owners.values())])
            for (room, owner), one in zip(owners.items(), loaded, strict=True):
                found = None
                with self._alone(room):
                    found = await self._lacking(room, owner, sure(one).conversation)
                if found is not None:
                    yield found

    async def _lacking(self, room: bytes, owner: ConversationKey, found: Conversation) -> Room | None:
        aimed = self._aimed(room, found)
        return await self._with_ledger(owner, aimed) if aimed is not None and aimed.kept.version else aimed

    def _aimed(self, room: bytes, conversation: Conversation) -> Room | None:
        kept, newest, cut = Kept(conversation), self._scratch.newest(room), self._scratch.upto(room)
        upto = cut if cut is not None and self._steps.tells(room, kept, cut) else newest
        if kept.version < upto:
            return Room(room, kept, upto, unfinished=cut is not None and upto > cut)
        if newest and not upto:
            self._putting.report.awaited += 1
        else:
            self._putting.report.left += 1
        return None

    async def _with_ledger(self, owner: ConversationKey, found: Room) -> Room:
        """A conversation with what the store has of it and what came since may change."""
        holders = self._steps.touched(found.room, found.kept, found.upto)
        [loaded] = await self._reads.ask(self._store.load, [Need(owner, holders)])
        [ledger] = await self._reads.ask(self._store.ledgers, [owner])
        kept = sure(loaded).conversation
        if kept.header.version != found.kept.version:
            return found  # somebody moves it: its commit will not be taken
        # What a rebuild that was ended put there beyond the version comes again.
        known = {at: entry for at, entry in sure(ledger).items() if at <= kept.header.version}
        return Room(found.room, Kept(kept, known), found.upto, found.unfinished)

    async def _commit(self) -> None:
        async for room in self._rooms():
            await self._putting.put(room, self._made(room))
        await self._putting.flush()

    def _made(self, room: Room) -> Iterator[Step]:
        with self._alone(room.room):
            yield from self._steps.commits(room.room, room.kept, room.upto)


def _decoded(messages: list[Any]) -> Iterator[tuple[JournalEntry, bytes]]:
    for message in messages:
        try:
            yield decoded(message.value), message.value
        except Unreadable:
            _tell_unreadable(message)


def _tell_unreadable(message: Any) -> None:
    log.warning("rebuild.unreadable", topic=message.topic, partition=message.partition, offset=message.offset)
