"""The store in Redis: a conversation is six keys with one hash tag, committed by one script.

header   hash: version, and body, which also says whose header it is
window   string: the recent turns
states   hash by holder: the states by target
ledger   hash: `r/<record id>` to its entry, `t/<turn id>` to the record id of its create, `w/<turn id>`
         to that of a correction that waits for it
reach    sorted set of the ledger's fields by sent_at in milliseconds, to trim by
outbox   hash by arrival: what is committed and not yet known to be delivered

No key expires: a stance is forgotten only by an event.
"""

import asyncio
import hashlib
from collections.abc import Collection, Mapping, Sequence
from importlib import resources
from pathlib import Path

from redis.exceptions import NoScriptError

from stream.store import codec
from stream.store.connection import connect
from stream.store.exchange import Command, Exchange, Servers
from stream.store.port import LEDGER_LIMIT, Commit, ConversationKey, Loaded, Need
from tracker import keys
from tracker.conversation import Conversation
from tracker.ledger import Ledger

_PARTS = ("header", "window", "states", "ledger", "reach", "outbox")
_READS = 5  # commands for each conversation
_SCRIPT = resources.files("stream.store").joinpath("commit.lua").read_text(encoding="utf-8")
_LEDGER = resources.files("stream.store").joinpath("ledger.lua").read_text(encoding="utf-8")
_DIGEST = hashlib.sha1(_SCRIPT.encode(), usedforsecurity=False).hexdigest()


class RedisStore:
    """A run's conversations in Redis. It connects in the event loop that first calls it.

    A call answers or raises StoreUnavailable within `timeout` seconds (a commit to a server that does not
    know the script yet: within two of them). Once another server answers, or the same one started anew, every
    call raises StoreReplaced until `accept`. At most `concurrency` calls use Redis at the same time.
    """

    def __init__(
        self,
        url: str,
        run: str,
        *,
        prefix: str = "volteface",
        timeout: float = 2.0,
        concurrency: int = 8,
        cafile: Path | None = None,
    ) -> None:
        self._url, self._cafile = url, cafile
        self._run, self._prefix = run, prefix
        self._mark = f"{prefix}:{keys.escape(run)}:rebuilding"  # of no conversation: those have a hash tag
        self._timeout, self._concurrency = timeout, concurrency
        self._bound: tuple[asyncio.AbstractEventLoop, Exchange] | None = None
        self._servers = Servers()

    async def load(self, needs: Sequence[Need]) -> list[Loaded]:
        """What the needs ask for, in order; one round trip."""
        commands = [command for need in needs for command in self._reads(need)]
        return await self._exchange().run(commands, lambda replies: self._all_loaded(needs, replies))

    async def ledgers(self, keys: Sequence[ConversationKey]) -> list[Ledger]:
        """The last entries by sent_at, by arrival; one round trip."""
        commands = [
            ("EVAL", _LEDGER, 2, self._key(key, "ledger"), self._key(key, "reach"), LEDGER_LIMIT)
            for key in keys
        ]
        return await self._exchange().run(commands, lambda replies: [*map(codec.ledger_of, replies)])

    async def commit(self, commits: Sequence[Commit]) -> list[bool]:
        """Per commit, whether it was taken; one round trip, two where the server does not know the script."""
        calls = [self._script_call(commit) for commit in commits]
        exchange = self._exchange()
        replies = await exchange.run([("EVALSHA", _DIGEST, *call) for call in calls], list)
        unknown = [index for index, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
        taught = await exchange.run([("EVAL", _SCRIPT, *calls[index]) for index in unknown], list)
        for index, reply in zip(unknown, taught, strict=True):
            replies[index] = reply
        return [reply == 1 for reply in replies]

    async def delivered(self, arrivals: Mapping[ConversationKey, Collection[int]]) -> None:
        """Empty the outboxes of what was delivered."""
        await self._exchange().run(
            [
                ("HDEL", self._key(key, "outbox"), *map(codec.outbox_field, sent))
                for key, sent in arrivals.items()
                if sent
            ],
            list,
        )

    async def mark(self, *, rebuilding: bool) -> None:
        """Keep that a rebuild began, or that it came to its end."""
        await self._exchange().run([("SET", self._mark, 1) if rebuilding else ("UNLINK", self._mark)], list)

    async def marked(self) -> bool:
        """Whether a rebuild began that did not come to its end."""
        return await self._exchange().run([("GET", self._mark)], lambda replies: replies != [None])

    async def ping(self) -> None:
        """Return if it answers."""
        await self._exchange().run([("PING",)], list)

    def accept(self) -> None:
        """Take the server that answers now for the one that holds everything."""
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
            client = connect(self._url, timeout=self._timeout, pool=self._concurrency, cafile=self._cafile)
            self._bound = loop, Exchange(client, self._timeout, self._concurrency, self._servers)
        return self._bound[1]

    def _key(self, key: ConversationKey, part: str) -> str:
        return keys.redis_key(self._prefix, self._run, key.tenant, key.name, part)

    def _keys(self, key: ConversationKey) -> list[str]:
        """All of a conversation's keys, in the order of the parts; escaped once, not once a part."""
        start = self._key(key, "")
        return [start + part for part in _PARTS]

    def _reads(self, need: Need) -> list[Command]:
        header, window, states, ledger, _, outbox = self._keys(need.key)
        # The header first: a commit that comes between the reads is then noticed by its version.
        return [
            ("HMGET", header, "version", "body"),
            ("GET", window),
            ("HMGET", states, *_holders(need)),
            ("HMGET", ledger, *_ledger_fields(need)),
            ("HGETALL", outbox),
        ]

    def _all_loaded(self, needs: Sequence[Need], replies: Sequence[object]) -> list[Loaded]:
        starts = range(0, len(replies), _READS)
        return [
            self._loaded(need, replies[start : start + _READS])
            for need, start in zip(needs, starts, strict=True)
        ]

    def _loaded(self, need: Need, replies: Sequence[object]) -> Loaded:
        header, window, states, ledger, outbox = replies
        known = codec.present(ledger, _ledger_fields(need))
        return Loaded(
            Conversation(
                tenant=need.key.tenant,
                run=self._run,
                name=need.key.name,
                header=codec.header_of(header, need.key, self._run),
                window=codec.window_of(window),
                holders=codec.holders_of(states, _holders(need)),
            ),
            frozenset(record for record in need.records if codec.record_field(record) in known),
            frozenset(turn for turn in need.turns if codec.turn_field(turn) in known),
            codec.outbox_of(outbox),
            frozenset(turn for turn in need.turns if codec.waiting_field(turn) in known),
        )

    def _script_call(self, commit: Commit) -> Command:
        names = self._keys(commit.key)
        return [len(names), *names, *codec.commit_arguments(commit, self._run)]


def _holders(need: Need) -> list[str]:
    """The holders to ask for; "" is nobody's name, and Redis wants at least one field."""
    return sorted(need.holders) or [""]


def _ledger_fields(need: Need) -> list[str]:
    """The ledger's fields to ask for; "" is none of them, and Redis wants at least one."""
    records, turns = map(codec.record_field, need.records), map(codec.turn_field, need.turns)
    return sorted([*records, *turns, *map(codec.waiting_field, need.turns)]) or [""]
