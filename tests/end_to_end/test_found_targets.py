"""A conversation without a target gets one: found at a turn, sent to the log, read for once it is back."""

from collections.abc import Sequence
from contextlib import aclosing
from functools import partial

import msgspec
import pytest
from redis.asyncio import Redis

from models.language.rule import RuleEngine
from models.local import LocalReader
from models.reader import ProposeRequest
from stream import lag, replaying
from stream.platforms import Line
from stream.replaying import Progress
from stream.sender import Sender
from stream.settings import Settings
from stream.store.port import ConversationKey, Need
from stream.store.redis import RedisStore
from tests.end_to_end.harness import LEFT_OPEN, PROPOSITION, collecting, drained, producing, running, turn
from tracker import keys
from tracker.proposals import Proposal

pytestmark = [pytest.mark.filterwarnings(LEFT_OPEN), pytest.mark.long]

ROOM = "room"
FOUND = keys.found_id("create/m-4/0", "declare")


class Finding(RuleEngine):
    """Reads by rule, and says what the room is about."""

    def propose(self, requests: Sequence[ProposeRequest]) -> list[Proposal]:
        return [Proposal(one.conversation, one.turns[-1].turn, PROPOSITION) for one in requests]


async def test_a_conversation_without_a_target_gets_one(settings: Settings) -> None:
    settings = msgspec.structs.replace(settings, targets="found")
    talk = [turn(ROOM, f"m-{number}") for number in range(1, 5)]
    async with (
        running(settings, reader=LocalReader(Finding())),
        producing(settings) as producer,
        collecting(settings) as collected,
    ):
        await producer.records(talk)
        await collected.until(lambda seen: seen.applied(ROOM, FOUND), "the found target is applied")
        await producer.records([talk[3], turn(ROOM, "m-5", "-1")])
        await collected.until(lambda seen: seen.events(), "an event of a turn behind the target")
        await drained(settings)
        await collected.rest()
    assert [entry["entry"]["op"] for entry in collected.journal(ROOM)] == ["create"] * 4 + [
        "target",
        "create",
    ]
    [event] = collected.events().values()
    assert (event["data"]["turn"], event["data"]["to"]) == ("m-5", "oppose")
    assert event["data"]["target"]["proposition"] == PROPOSITION
    assert not collected.dead_letters
    await _check_kept(settings)


@pytest.mark.long
async def test_a_replay_waits_for_what_is_found(settings: Settings) -> None:
    """Else the whole file would be ahead of the target, and nothing be read for it."""
    settings = msgspec.structs.replace(settings, targets="found", run="again")
    talk = [turn(ROOM, f"m-{number}", "-1" if number == 6 else "+1") for number in range(1, 9)]
    lines = [Line(number, record) for number, record in enumerate(talk, 1)]
    progress = Progress(Redis.from_url(settings.redis), settings.topic_prefix, settings.run, "file")
    async with (
        aclosing(progress._redis),
        collecting(settings) as collected,
        running(settings, reader=LocalReader(Finding())),
        lag.watching(settings) as watched,
        aclosing(Closing(settings)) as sender,
    ):
        folded = partial(replaying.drained, watched)
        assert await replaying.produce(lines, sender, progress, print, folded=folded) == len(talk)
        await folded()
        await collected.rest()
    assert [event["data"]["turn"] for event in collected.events().values()] == ["m-5", "m-6", "m-7"]


class Closing(Sender):
    """A sender for a block."""

    async def aclose(self) -> None:
        await self.close()


async def _check_kept(settings: Settings) -> None:
    store = RedisStore(settings.redis, settings.run, prefix=settings.topic_prefix)
    [kept] = await store.load([Need(ConversationKey("default", ROOM))])
    await store.close()
    header = kept.conversation.header
    assert ([target.found for target in header.targets], header.awaited) == ([True], ())
    assert not kept.outbox
