"""What must become of every record of a log: what the parser, the twin and the ids say of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from stream.chain import Item
from stream.processor import Processed
from stream.settings import Settings
from tests.faults.fuzzing import described
from tests.faults.mutations import Sent
from tests.faults.undisturbed import BATCH_RECORDS, Course, Undisturbed
from tracker.parsing import parse_keyed
from tracker.records import Reason, Record, Refused, record_id

Place = tuple[int, int]  # partition and offset
Log = Mapping[Place, Sent]


@dataclass
class Verdicts:
    """By place: why a record is refused, which one is the first under its id; the others are repeated."""

    refused: dict[Place, Refused] = field(default_factory=dict)
    applied: dict[Place, Record] = field(default_factory=dict)
    repeated: set[Place] = field(default_factory=set)


class Judge(Undisturbed):
    """The twin, given what stands in a log; `course` and `ended` are those of the last log alone."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.ended: set[bytes | None] = set()  # keys of states whose newest message is a tombstone

    async def judge(self, log: Log) -> Verdicts:
        """What must become of the records. Fails where the twin breaks, or the mutator knew better."""
        verdicts, taken = Verdicts(), dict[Place, Record]()
        self.course, self.ended = Course(), set()
        for place in sorted(log):
            try:
                taken[place] = parse_keyed(log[place].key, log[place].value)
            except Refused as refused:
                verdicts.refused[place] = refused
            _require_known(log[place], verdicts.refused.get(place))
        places = list(taken)
        for start in range(0, len(places), BATCH_RECORDS):
            batch = {place: taken[place] for place in places[start : start + BATCH_RECORDS]}
            verdicts.refused |= await self._whole(batch, log)
        _by_id(taken, verdicts)
        assert len(verdicts.applied) == self.course.entries
        return verdicts

    async def _whole(self, batch: Mapping[Place, Record], log: Log) -> dict[Place, Refused]:
        """Those of a batch that are refused. Where it breaks, each is taken alone, to name that one."""
        places = list(batch)
        try:
            return await self._taken(places, list(batch.values()))
        except Exception as broken:
            for place in places:
                try:
                    await self._taken([place], [batch[place]])
                except Exception as error:
                    raise AssertionError(f"the twin breaks at {described(log[place])}") from error
            raise AssertionError("the twin breaks at a batch, and at none of its records alone") from broken

    async def _taken(self, places: list[Place], records: list[Record]) -> dict[Place, Refused]:
        refused: dict[Place, Refused] = {}
        left = [Item(index, record) for index, record in enumerate(records)]
        while left:
            result = await self._processor.process(left)
            refused |= {places[refusal.index]: refusal.refused for refusal in result.refusals}
            await self._deliver(result)
            unfinished = set(result.unfinished)
            left = [item for item in left if item.index in unfinished]
        return refused

    async def _deliver(self, result: Processed) -> None:
        outboxes = result.outboxes.items()
        sent = [one for _, outbox in outboxes for arrival in sorted(outbox) for one in outbox[arrival]]
        for message in sent:
            if message.value is not None:
                self.course.take(message.topic, msgspec.json.decode(message.value))
            if message.topic == "states":
                (self.ended.add if message.value is None else self.ended.discard)(message.key)
        await self._store.delivered({key: tuple(outbox) for key, outbox in outboxes})


def _require_known(sent: Sent, refused: Refused | None) -> None:
    reason = refused.reason if refused else None
    assert sent.must is None or reason in (sent.must or {None}), f"{refused!r}: {described(sent)}"
    assert reason is not Reason.FAILED


def _by_id(taken: Mapping[Place, Record], verdicts: Verdicts) -> None:
    """Of those that are not refused, the first under an id is applied, and the others change nothing."""
    known: set[tuple[str, str, str]] = set()
    for place, record in taken.items():
        if place in verdicts.refused:
            continue
        ident = (record.tenant, record.conversation, record_id(record))
        if ident in known:
            verdicts.repeated.add(place)
        else:
            verdicts.applied[place] = record
            known.add(ident)
