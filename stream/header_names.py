"""Kafka's records, read though the name of a header is no UTF-8: one such record would end every consumer.

Any client that takes raw bytes for names can send one. aiokafka decodes them strictly, where a batch is read:
whoever fetched it would fail, and each time anew, and the partition would stand still for good.
"""

import struct
from collections.abc import Iterator
from typing import Any, SupportsIndex

from aiokafka.consumer import fetcher
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords

_AHEAD, _LENGTH = 8, 12  # of a batch: before its length, and before what the length counts


class Records:
    """aiokafka's MemoryRecords, whose batches can be read a second time."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at, self._records = data, 0, MemoryRecords(data)

    def size_in_bytes(self) -> int:
        """Of all batches."""
        return len(self._data)

    def has_next(self) -> bool:
        """Whether another whole batch is there."""
        return bool(self._records.has_next())

    def next_batch(self) -> Any:
        """The next batch, as aiokafka's but for its records' names."""
        begins = self._at
        (length,) = struct.unpack_from(">i", self._data, begins + _AHEAD)
        self._at = begins + _LENGTH + length
        return _Batch(self._records.next_batch(), memoryview(self._data)[begins : self._at])


class _Batch:
    def __init__(self, batch: Any, raw: memoryview) -> None:
        self._batch, self._raw = batch, raw

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:  # of a control batch, which aiokafka asks for its first record alone
        return next(self._batch)

    def __iter__(self) -> Iterator[Any]:
        try:
            return iter(list(self._batch))
        except UnicodeDecodeError:
            batch = _DefaultRecordBatchPy(self._raw)
            batch._maybe_uncompress()
            batch._buffer = _Lenient(batch._buffer)
            return iter(batch)


class _Lenient(bytearray):
    """Whose parts are decoded whatever they hold."""

    def __getitem__(self, key: SupportsIndex | slice) -> Any:
        found = super().__getitem__(key)
        return found if isinstance(found, int) else _Lenient(found)

    def decode(self, encoding: str = "utf-8", errors: str = "backslashreplace") -> str:
        return super().decode(encoding, errors)


def install() -> None:
    """Have every consumer of this process read so."""
    fetcher.MemoryRecords = Records
