"""The alerts' states in Redis: a string by conversation, kept by a script only if nobody else moved it.

It is the version, a space and the state as JSON; so no more rights are needed than agents have.

A state expires when its conversation told nothing for so long that nothing of it counts any more. It is no
stance, and can be found again from the events.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from redis.exceptions import NoScriptError

from stream.alerts.port import Kept, Positions
from stream.store.codec import Argument, Misread
from stream.store.connection import connect
from stream.store.exchange import Exchange, Servers
from stream.store.port import ConversationKey
from tracker import keys as names
from tracker.alert_rules import MOST_REACH
from tracker.alerts import State

PART = "alerts"
KEPT_SECONDS = int(MOST_REACH.total_seconds()) + 24 * 60 * 60
_SAVE = """
local kept = redis.call('GET', KEYS[1])
if (kept and string.match(kept, '^%d+') or '0') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2] .. ' ' .. ARGV[3], 'EX', ARGV[4])
return 1
"""
_DIGEST = hashlib.sha1(_SAVE.encode(), usedforsecurity=False).hexdigest()
_state = msgspec.json.Decoder(State)


class RedisAlertStore:
    """A run's states in Redis. It connects in the event loop that first calls it.

    A call answers or raises StoreUnavailable within `timeout` seconds; once another server answers, every
    call raises StoreReplaced until `accept`.
    """

    def __init__(
        self,
        url: str,
        run: str,
        *,
        prefix: str = "volteface",
        timeout: float = 2.0,
        cafile: Path | None = None,
    ) -> None:
        self._url, self._cafile, self._timeout = url, cafile, timeout
        self._run, self._prefix = run, prefix
        self._servers = Servers()
        self._bound: tuple[asyncio.AbstractEventLoop, Exchange] | None = None

    async def load(self, keys: Sequence[ConversationKey]) -> list[Kept]:
        """As the port says; one round trip."""
        commands = [("GET", self._key(key)) for key in keys]
        return await self._exchange().run(commands, lambda replies: [*map(_kept, replies)])

    async def save(self, changed: Mapping[ConversationKey, Kept]) -> bool:
        """As the port says; one round trip, two where the server does not know the script.

        Where a reply was lost, what was kept may count as moved: loaded again it is as it was meant.
        """
        calls = [self._call(key, kept) for key, kept in changed.items()]
        exchange = self._exchange()
        replies = await exchange.run([("EVALSHA", _DIGEST, *call) for call in calls], list)
        unknown = [call for call, reply in zip(calls, replies, strict=True) if _unknown(reply)]
        taught = await exchange.run([("EVAL", _SAVE, *call) for call in unknown], list)
        return all(reply == 1 for reply in (*taught, *(each for each in replies if not _unknown(each))))

    async def positions(self, partitions: Sequence[str]) -> dict[str, int]:
        """As the port says."""
        replies = await self._exchange().run([("GET", self._place(name)) for name in partitions], list)
        found = zip(partitions, replies, strict=True)
        return {name: int(reply) for name, reply in found if isinstance(reply, bytes)}

    async def place(self, positions: Positions) -> None:
        """As the port says."""
        commands = [("SET", self._place(name), offset) for name, offset in positions.items()]
        await self._exchange().run(commands, list)

    def accept(self) -> None:
        """As the port says."""
        self._servers.accept()

    async def close(self) -> None:
        """Give back connections; a later call connects again."""
        bound, self._bound = self._bound, None
        if bound is not None and bound[0] is asyncio.get_running_loop():
            await bound[1].close()

    def _exchange(self) -> Exchange:
        """The running loop's own: a client made in another loop would hang or fail in this one."""
        loop = asyncio.get_running_loop()
        if self._bound is None or self._bound[0] is not loop:
            client = connect(self._url, timeout=self._timeout, pool=1, cafile=self._cafile)
            self._bound = loop, Exchange(client, self._timeout, 1, self._servers)
        return self._bound[1]

    def _key(self, key: ConversationKey) -> str:
        return names.redis_key(self._prefix, self._run, key.tenant, key.name, PART)

    def _place(self, partition: str) -> str:
        return f"{self._prefix}:{names.escape(self._run)}:{PART}:{partition}"

    def _call(self, key: ConversationKey, kept: Kept) -> list[Argument]:
        body = msgspec.json.encode(kept.state)
        return [1, self._key(key), kept.version, kept.version + 1, body, KEPT_SECONDS]


def _unknown(reply: object) -> bool:
    return isinstance(reply, NoScriptError)


def _kept(reply: object) -> Kept:
    """Raises Misread where what is kept there is nothing of ours."""
    if reply is None:
        return Kept()
    try:
        version, body = msgspec.convert(reply, bytes).split(b" ", 1)
        return Kept(_state.decode(body), int(version))
    except ValueError as error:
        raise Misread(f"an alert state that is none: {error}") from None
