"""A Faust event that stands for one record, with what the agent needs of its message."""

import datetime as dt
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from stream.chain import Item
from stream.dead_letters import dead_letter
from stream.offsets import Partition
from stream.receipts import appended
from stream.store.port import Message
from tracker import keys, pseudonyms
from tracker.keys import MalformedKey
from tracker.parsing import parse, parse_keyed
from tracker.records import Refused


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """One record that arrived. Two are never equal: the same record may come again."""

    event: Any  # faust.EventT; Faust ships no types we could check against
    received: dt.datetime

    @property
    def partition(self) -> Partition:
        """The topic and the number of the partition that the record came from."""
        return self.event.message.topic, self.event.message.partition

    @property
    def offset(self) -> int:
        """The record's place in its partition."""
        offset: int = self.event.message.offset
        return offset

    @property
    def source(self) -> str:
        """Where the record stands in the log."""
        message = self.event.message
        return f"{message.topic}/{message.partition}/{message.offset}"

    def receipt(self, live: bool) -> dt.datetime | None:
        """The broker's append time, or where it has none the agent's; None outside live mode."""
        if not live:
            return None
        return appended(self.event.message) or self.received

    def item(self, index: int, live: bool, private: Collection[str] = ()) -> Item:
        """The parsed record; of tenants that are private it names nobody. Raises Refused."""
        record = parse_keyed(self.event.message.key, self.event.message.value)
        if record.tenant in private:
            pseudonyms.check(record)
        return Item(index, record, self.source, self.receipt(live))

    def dead_letter(
        self, refused: Refused, private: Collection[str] = ()
    ) -> tuple[Message, Sequence[tuple[str, bytes]]]:
        """The record as a dead letter, bare where it may name people of tenants that are private."""
        message = self.event.message
        headers, bare = tuple(_pairs(message.headers)), self._may_name(private)
        return dead_letter(message.key, message.value, headers, self.source, refused, bare=bare)

    def _may_name(self, private: Collection[str]) -> bool:
        """Whether it is, or may be, of a private tenant and names somebody."""
        if not private:
            return False
        key, value = self.event.message.key, self.event.message.value
        try:
            record = parse(value)
        except Refused:
            return not _tenants(key, value).isdisjoint({*private, None})
        try:
            pseudonyms.check(record)
        except Refused:
            return record.tenant in private
        return False


class _Owned(msgspec.Struct):
    tenant: str = "default"


def _tenants(key: bytes | None, value: bytes | None) -> set[str | None]:
    """Whose a refused record may be, by what can be read of it; None: nobody knows."""
    found: set[str | None] = set()
    with suppress(MalformedKey):
        found.add(keys.parse_conversation_key(key or b"")[0])
    with suppress(msgspec.MsgspecError, UnicodeDecodeError):
        found.add(msgspec.json.decode(value or b"", type=_Owned).tenant)
    return found or {None}


def stale(event: Any) -> bool:
    """Whether an event was fetched before a rebalance: it is read again, perhaps by another agent.

    Faust skips such events, but those that had left its queue by then still arrive. To ack one would commit
    past all that is read again.
    """
    app = event.app
    return not app.flow_control.is_active() or event.message.generation_id != app.consumer_generation_id


def _pairs(headers: Any) -> Sequence[tuple[str, bytes]]:
    """Faust gives headers as a mapping, a list of pairs, or None."""
    return tuple(headers.items() if hasattr(headers, "items") else headers or ())
