import struct
from typing import Any

import pytest
from aiokafka.codec import has_lz4, has_snappy, has_zstd
from aiokafka.consumer import fetcher
from aiokafka.record._crc32c import crc
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

import stream.kafka  # noqa: F401 - who reaches Kafka by it reads so
from stream.header_names import Records

GZIP, NONE = 1, 0


def batch(first: int, names: list[str], compression: int = NONE) -> bytes:
    """A batch of a record for each header name; a name of XX is no UTF-8."""
    builder = DefaultRecordBatchBuilder(2, compression, 0, -1, -1, -1, 100_000)
    for at, name in enumerate(names):
        builder.append(at, 1000 + at, b"k%d" % at, b"v%d" % at, [(name, b"h"), ("ok", None)])
    raw = bytes(builder.build()).replace(b"hXXh", b"h\xff\xfeh")
    raw = struct.pack(">q", first) + raw[8:]
    return raw[:17] + struct.pack(">I", crc(raw[21:])) + raw[21:]


def read(data: bytes, kind: Any = Records) -> list[tuple[Any, ...]]:
    found, records = [], kind(data)
    while records.has_next():
        one = records.next_batch()
        assert one.validate_crc()
        found += [(each.offset, each.timestamp, each.key, each.value, each.headers) for each in one]
    return found


@pytest.mark.parametrize("compression", [NONE, GZIP])
def test_what_can_be_read_strictly_is_read_as_ever(compression: int) -> None:
    data = batch(0, ["a", "ü"], compression) + batch(2, ["b"], compression)
    assert read(data) == read(data, MemoryRecords)
    assert [offset for offset, *_ in read(data)] == [0, 1, 2]
    assert Records(data).size_in_bytes() == len(data)


def test_a_name_that_is_no_utf8_costs_nobody_the_record() -> None:
    data = batch(0, ["a"]) + batch(1, ["b", "hXXh", "c"]) + batch(4, ["d"])
    with pytest.raises(UnicodeDecodeError):
        read(data, MemoryRecords)
    found = read(data)
    assert [offset for offset, *_ in found] == [0, 1, 2, 3, 4]
    assert [headers[0][0] for *_, headers in found] == ["a", "b", r"h\xff\xfeh", "c", "d"]
    assert [(key, value) for _, _, key, value, _ in found][1:4] == [
        (b"k0", b"v0"),
        (b"k1", b"v1"),
        (b"k2", b"v2"),
    ]
    assert found[2][-1] == [(r"h\xff\xfeh", b"h"), ("ok", None)]


def test_the_end_of_a_fetch_that_was_cut_is_left() -> None:
    data = batch(0, ["a"]) + batch(1, ["b"])
    assert len(read(data[:-1])) == 1


def test_every_consumer_reads_so() -> None:
    assert fetcher.MemoryRecords is Records


def test_whatever_producers_compress_with_can_be_read() -> None:
    assert has_lz4()
    assert has_snappy()
    assert has_zstd()
