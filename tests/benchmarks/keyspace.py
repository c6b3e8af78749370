"""What stands in Redis, by kind of key: it grows with what is said, and that is data, not a leak."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from redis.asyncio import Redis

from tests.benchmarks.measuring import Figure

SCANNED = 500  # keys a round trip
TIMEOUT_SECONDS = 60.0
MB = 1024 * 1024


class Kind(msgspec.Struct):
    """The keys of one kind."""

    keys: int = 0
    bytes: int = 0


class Keyspace(msgspec.Struct, frozen=True):
    """What Redis holds at one moment."""

    used: int  # bytes that its allocator has handed out
    kinds: dict[str, Kind]  # by a key's last part

    @property
    def bytes(self) -> int:
        """What all keys take."""
        return sum(kind.bytes for kind in self.kinds.values())


async def measured(url: str) -> Keyspace:
    """All keys, each measured whole (SAMPLES 0): to be asked when nothing else runs."""
    async with Redis.from_url(url, protocol=2, socket_timeout=TIMEOUT_SECONDS) as client:
        used = int((await client.info("memory"))["used_memory"])
        kinds: dict[str, Kind] = {}
        cursor, first = 0, True
        while cursor or first:
            cursor, keys = await client.scan(cursor, count=SCANNED)
            _add(kinds, keys, await _sizes(client, keys))
            first = False
        return Keyspace(used, dict(sorted(kinds.items(), key=lambda item: -item[1].bytes)))


async def _sizes(client: Redis, keys: Sequence[bytes]) -> Sequence[int | None]:
    pipeline = client.pipeline(transaction=False)
    for key in keys:
        pipeline.memory_usage(key, samples=0)
    sizes: Sequence[int | None] = await pipeline.execute()
    return sizes


def _add(kinds: dict[str, Kind], keys: Sequence[bytes], sizes: Sequence[int | None]) -> None:
    for key, size in zip(keys, sizes, strict=True):
        kind = kinds.setdefault(key.rpartition(b":")[2].decode(errors="replace"), Kind())
        kind.keys += 1
        kind.bytes += size or 0


def figures(before: Keyspace, after: Keyspace, records: int) -> Iterator[Figure]:
    """What was there before and after so many records, kind by kind."""
    grown = after.bytes - before.bytes
    yield Figure(name="redis: data that a record leaves", unit="bytes", rounds=(grown / max(1, records),))
    rest = (after.used - before.used - grown) / MB
    yield Figure(name="redis: growth beside its keys", unit="MB", rounds=(rest,))
    for name, kind in after.kinds.items():
        old = _of(before.kinds, name)
        yield Figure(name=f"redis: {name}", unit="MB", rounds=(old.bytes / MB, kind.bytes / MB))
        yield Figure(name=f"redis: {name}", unit="keys", rounds=(old.keys, kind.keys))


def _of(kinds: Mapping[str, Kind], name: str) -> Kind:
    return kinds.get(name, Kind())
