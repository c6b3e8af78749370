"""A room corrected on the log: a subscriber of its events ends with what its surviving turns say."""

from typing import Any

import pytest

from stream.settings import Settings
from stream.store.port import ConversationKey, Need
from stream.store.redis import RedisStore
from tests.end_to_end.harness import (
    LEFT_OPEN,
    PROPOSITION,
    Collected,
    collecting,
    drained,
    gapless,
    now,
    producing,
    running,
    target,
    turn,
)
from tracker import keys
from tracker.records import DeleteTurn, EditTurn, EraseHolder, OverrideStance, Record
from tracker.stances import Stance

pytestmark = [pytest.mark.filterwarnings(LEFT_OPEN), pytest.mark.long]

ROOM = "room"
TARGET = keys.target_id("default", ROOM, PROPOSITION)


def course() -> list[Record]:
    about: dict[str, Any] = {"conversation": ROOM, "sent_at": now()}
    word: dict[str, Any] = about | {"by": "mod", "reason": "asked", "holder": "cy", "target": TARGET}
    return [
        target(ROOM),
        *(turn(ROOM, f"{holder}-1", holder=holder) for holder in ("ann", "bo", "cy")),
        *(turn(ROOM, f"{holder}-2", "-1", holder=holder) for holder in ("ann", "bo", "cy")),
        EditTurn(**about, turn="ann-1", text="-1 all along"),
        DeleteTurn(**about, turn="cy-2"),
        OverrideStance(**word, id="pin", to=Stance.NEUTRAL),
        turn(ROOM, "cy-3", "-1", holder="cy"),
        OverrideStance(**word, id="unpin", to=None),
        EraseHolder(**about, id="erase", holder="bo"),
    ]


def standing(seen: Collected) -> set[tuple[str, str, str, str]]:
    """What a subscriber who applies events and retractions in sequence holds in the end."""
    held: dict[str, tuple[str, str, str, str]] = {}
    for event in sorted(seen.events().values(), key=lambda event: event["sequence"]):
        data, kind = event["data"], event["type"].rpartition(".")[2]
        if kind == "retracted":
            del held[data["retracts"]]
        elif kind != "forgotten":
            held[event["id"]] = (kind, data["holder"], data["from"], data["to"])
    return set(held.values())


async def test_a_subscriber_ends_with_what_the_surviving_turns_say(settings: Settings) -> None:
    async with (
        running(settings),
        producing(settings) as producer,
        collecting(settings) as collected,
    ):
        await producer.records(course())
        await collected.until(lambda seen: seen.applied(ROOM, "erase"), "the erasure")
        await drained(settings)
        await collected.rest()
    assert not collected.dead_letters
    assert standing(collected) == {
        ("established", "ann", "unknown", "oppose"),
        ("established", "cy", "unknown", "support"),
        ("overridden", "cy", "support", "neutral"),
        ("restored", "cy", "neutral", "oppose"),
    }
    assert gapless(collected.events())
    flips = {ident for ident, event in collected.events().items() if event["type"].endswith("flipped")}
    retracted = [event["data"].get("retracts") for event in collected.events("flips").values()]
    assert {one for one in retracted if one} == flips
    tombstones = [record.key for record in collected.records["states"] if record.value is None]
    assert tombstones == [keys.holder_key("default", ROOM, "bo", TARGET)]
    store = RedisStore(settings.redis, settings.run, prefix=settings.topic_prefix)
    [kept] = await store.load([Need(ConversationKey("default", ROOM), frozenset({"ann", "bo", "cy"}))])
    await store.close()
    found = {holder: states[TARGET].stance for holder, states in kept.conversation.holders.items()}
    assert found == {"ann": "oppose", "cy": "oppose"}
