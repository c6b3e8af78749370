"""What an undisturbed run comes to: the same records folded in this process, without a broker in between.

The reader is `rule`, and the machine is pure, so the same records always come to the same.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import msgspec

from models.language.rule import RuleEngine
from models.local import LocalReader
from stream import app
from stream.chain import Item
from stream.processor import Processed
from stream.settings import Settings
from stream.store.port import Store
from stream.store.redis import RedisStore
from tracker.records import Record

BATCH_RECORDS = 500

Told = dict[str, Any]  # an event, or a journal entry


@dataclass
class Course:
    """What leaves of a run, by topic and conversation, in order and without repetitions."""

    stances: dict[str, list[Told]] = field(default_factory=lambda: defaultdict(list))
    flips: dict[str, list[Told]] = field(default_factory=lambda: defaultdict(list))
    journal: dict[str, list[Told]] = field(default_factory=lambda: defaultdict(list))
    states: dict[tuple[str, ...], Told] = field(default_factory=dict)  # the newest of each
    ended: set[tuple[str, ...]] = field(default_factory=set)  # states that are no more

    @property
    def entries(self) -> int:
        """How many records were applied."""
        return sum(map(len, self.journal.values()))

    def take(self, topic: str, told: Told) -> None:
        """Keep what was sent to one of the topics, without where a record stood in the log."""
        if topic == "journal":
            self.journal[told["conversation"]].append({**told, "source": ""})
        elif topic == "states":
            place = told["conversation"], told.get("holder", ""), told.get("target", "")
            self.ended.discard(place)
            if _version(told) > _version(self.states.get(place, {})):
                self.states[place] = told
        else:
            getattr(self, topic)[told["data"]["conversation"]].append(told)

    def end(self, key: bytes) -> None:
        """A state's tombstone, by its key: the topic may have lost the state itself since, by compaction."""
        _, *place = map(unquote, key.decode().split("/"))
        self.states.pop(tuple(place), None)
        self.ended.add(tuple(place))


def _version(row: Told) -> int:
    """A state's or a header's version; a lower one is ignored by whoever reads the topic."""
    return int(row.get("version") or row.get("header", {}).get("version", 0))


class Undisturbed:
    """A run of the same name that nothing disturbs: takes records as they are produced."""

    def __init__(self, settings: Settings) -> None:
        """The store is the settings' Redis: its keys can be compared with the disturbed run's."""
        self._store: Store = RedisStore(
            settings.redis, settings.run, prefix=settings.topic_prefix, timeout=30.0
        )
        self._processor = app.processor(settings, self._store, LocalReader(RuleEngine()))
        self.course = Course()

    async def take(self, records: Sequence[Record]) -> None:
        """Fold the records."""
        for start in range(0, len(records), BATCH_RECORDS):
            await self._batch(records[start : start + BATCH_RECORDS])

    async def _batch(self, records: Sequence[Record]) -> None:
        left = [Item(index, record) for index, record in enumerate(records)]
        while left:
            result = await self._processor.process(left)
            assert not result.refusals
            await self._deliver(result)
            unfinished = set(result.unfinished)
            left = [item for item in left if item.index in unfinished]

    async def _deliver(self, result: Processed) -> None:
        for outbox in result.outboxes.values():
            for arrival in sorted(outbox):
                for message in outbox[arrival]:
                    if message.value is None:
                        assert message.key is not None
                        self.course.end(message.key)
                    else:
                        self.course.take(message.topic, msgspec.json.decode(message.value))
        await self._store.delivered({key: tuple(outbox) for key, outbox in result.outboxes.items()})

    async def close(self) -> None:
        """Give the connections back."""
        await self._store.close()
