"""A run's whole state in Redis, for comparing two runs byte for byte."""

from redis.asyncio import Redis

from tracker import keys

LIMIT = 10_000


async def dump(url: str, run: str, prefix: str = "volteface") -> dict[bytes, object]:
    """Every key of the run and what it holds, in order of the keys. Raises OverflowError past LIMIT keys."""
    start = f"{prefix}:{keys.escape(run)}:"
    async with Redis.from_url(url, protocol=2, socket_timeout=5.0) as client:
        found: set[bytes] = set()
        async for name in client.scan_iter(match=f"{_literally(start)}*", count=1000):
            found.add(name)
            if len(found) > LIMIT:
                raise OverflowError(f"more than {LIMIT} keys of {run}")
        return {name: await _content(client, name) for name in sorted(found)}


async def _content(client: Redis, name: bytes) -> object:
    kind = await client.type(name)
    if kind == b"string":
        return await client.get(name)
    if kind == b"zset":
        return await client.zrange(name, 0, -1, withscores=True)
    assert kind == b"hash", f"{name!r} is a {kind!r}"
    return dict(sorted((await client.hgetall(name)).items()))


def _literally(text: str) -> str:
    return "".join(f"\\{letter}" if letter in "*?[]^-\\" else letter for letter in text)
