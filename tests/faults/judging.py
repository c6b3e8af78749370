"""Whether a disturbed run came to what its undisturbed twin comes to."""

from contextlib import suppress
from itertools import zip_longest

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from stream import lag, topics
from stream.kafka import running
from stream.settings import Settings
from tests.end_to_end.harness import Collected, collecting, drained
from tests.faults.feeding import PATIENCE_SECONDS, reached
from tests.faults.stand import Stand
from tests.faults.undisturbed import Course, Told
from tests.stream.store.dump import dump

ORDERED = ("journal", "stances", "flips")
SETTLE_SECONDS = 60.0


async def judge(stand: Stand) -> int:
    """Wait until all is applied and committed, and compare all that the run ever did.

    Its topics are followed anew: a follower that was there during the fault must not be what is tested.
    Returns how many journal entries were sent more than once.
    """
    expected = stand.twin.course
    async with collecting(stand.settings) as collected:
        await applied(stand, collected)
        await drained(stand.settings, PATIENCE_SECONDS)
        with suppress(AssertionError):  # what is wrong is told below, in detail
            await collected.until(lambda seen: whole(course(seen), expected), "every event", SETTLE_SECONDS)
        await collected.rest()
        await only_finished_is_committed(stand, collected)
    assert not collected.dead_letters
    compare(course(collected), expected)
    run, prefix = stand.settings.run, stand.settings.topic_prefix
    assert await dump(stand.redis.url, run, prefix) == await dump(stand.calm.url, run, prefix)
    return len(collected.journal()) - expected.entries


async def applied(stand: Stand, collected: Collected) -> None:
    """Wait until every record is applied that was produced."""
    await reached(stand, collected, stand.twin.course.entries)


def course(collected: Collected) -> Course:
    """What left, without repetitions. Fails where one id was sent with two contents."""
    found, entries = Course(), dict[tuple[str, int], dict[str, object]]()
    for entry in collected.journal():
        place = entry["conversation"], entry["entry"]["arrival"]
        if entries.setdefault(place, entry) is entry:
            found.take("journal", entry)
        assert entries[place] == entry, (entries[place], entry)
    for row in collected.values["states"]:
        found.take("states", row)
    for name in ("stances", "flips"):
        for event in collected.events(name).values():
            found.take(name, event)
    return found


def standing(found: Course, expected: Course) -> dict[tuple[str, ...], Told]:
    """The newest states, but for those that are no more: what is left of these Redis shows."""
    return {place: row for place, row in found.states.items() if place not in expected.ended}


def whole(found: Course, expected: Course) -> bool:
    """Whether as much has come as is to come: events follow their journal entry, and a fetch may be slow."""
    return standing(found, expected) == expected.states and all(
        sum(map(len, getattr(found, name).values())) >= sum(map(len, getattr(expected, name).values()))
        for name in ORDERED
    )


def compare(found: Course, expected: Course) -> None:
    """Every turn once, the same events and their order in every conversation, the same newest states."""
    assert standing(found, expected) == expected.states
    for name in ORDERED:
        ours, theirs = getattr(found, name), getattr(expected, name)
        assert ours.keys() == theirs.keys(), name
        for conversation in theirs:
            for at, (one, other) in enumerate(zip_longest(ours[conversation], theirs[conversation])):
                assert one == other, f"{name} of {conversation}, number {at}"


async def only_finished_is_committed(stand: Stand, collected: Collected) -> None:
    """No commit went back, and what stands below one was applied and its journal entry delivered."""
    before, stand.committed = stand.committed, await committed(stand.settings)
    assert all(end >= before.get(partition, 0) for partition, end in stand.committed.items()), before
    topic = topics.topic(stand.settings, "turns")
    finished = {
        f"{topic}/{partition}/{offset}" for partition, end in stand.committed.items() for offset in range(end)
    }
    await collected.until(
        lambda seen: finished <= {entry["source"] for entry in seen.journal()},
        "a journal entry of every record that is committed as finished",
    )


async def committed(settings: Settings) -> dict[int, int]:
    """The group's committed offset of each partition; 0 where there is none."""
    topic = topics.topic(settings, "turns")
    partitions = [TopicPartition(topic, number) for number in range(settings.partitions)]
    async with running(AIOKafkaAdminClient, settings) as admin:
        found = await admin.list_consumer_group_offsets(lag.group(settings), partitions=partitions)
    return {partition.partition: max(0, meta.offset) for partition, meta in found.items()}
