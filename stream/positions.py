"""How far a Faust app's partitions are, asked without holding up the loop that asks.

The consumer has a thread and a loop of its own. It is asked there, past the queue of calls that Faust keeps
for it, in which a call that never returns would hold up this one too.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, NamedTuple

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from stream.agent import Agent
from stream.offsets import Partition
from stream.progress import Facts, Look

BROKER_SECONDS = 3.0  # for one partition's end
ANSWER_SECONDS = 5.0  # for the thread, with all of them


class _Read(NamedTuple):
    end: int | None
    position: int | None


async def look(app: Any, agent: Agent) -> Look:
    """All that is known of the partitions that are assigned now."""
    consumer, vitals = app.consumer, agent.vitals
    thread = consumer._thread
    partitions = {(tp.topic, tp.partition) for tp in consumer.assignment()} if thread._consumer else set()
    read = await _read(thread, partitions) if partitions else {}
    facts = {partition: _facts(app, agent, partition, read) for partition in partitions}
    return Look(facts=facts, fetches=thread.fetches, signs=vitals.signs, paused=vitals.paused is not None)


def _facts(app: Any, agent: Agent, partition: Partition, read: dict[Partition, _Read] | None) -> Facts:
    place, in_hand = agent.place(partition)
    end, position = (None, None) if read is None else read[partition]
    return Facts(
        answers=read is not None,
        rebalance=app.rebalancing_count if app.rebalancing else 0,
        end=end,
        position=position,
        fetched=app.consumer._thread.fetched.get(partition),
        committed=app.consumer._committed_offset.get(partition),
        place=place,
        in_hand=in_hand,
    )


async def _read(thread: Any, partitions: Iterable[Partition]) -> dict[Partition, _Read] | None:
    """What the consumer's thread knows; None where it does not answer."""
    asking = _in_thread(thread._consumer, partitions)
    try:
        asked = asyncio.run_coroutine_threadsafe(asking, thread.thread_loop)
    except RuntimeError:  # its loop is closed
        asking.close()
        return None
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await asyncio.wrap_future(asked)
    except TimeoutError:
        return None


async def _in_thread(consumer: Any, partitions: Iterable[Partition]) -> dict[Partition, _Read]:
    tps = [TopicPartition(*partition) for partition in partitions]
    ends = await asyncio.gather(*(_end(consumer, tp) for tp in tps))
    assignment = getattr(consumer._subscription.subscription, "assignment", None)
    states = [assignment and assignment.state_value(tp) for tp in tps]
    return {tp: _one(state, end) for tp, state, end in zip(tps, states, ends, strict=True)}


def _one(state: Any, end: int | None) -> _Read:
    if state is None:  # it has just gone to another agent
        return _Read(end, None)
    # Tansu lists the end too low, and a fetch that ended meanwhile knows more.
    known = end if end is None else max(end, state.highwater or 0)
    return _Read(known, state.position if state.has_valid_position else None)


async def _end(consumer: Any, tp: TopicPartition) -> int | None:
    """Where a partition ends; each is asked alone, so that one without a leader hides no other."""
    try:
        async with asyncio.timeout(BROKER_SECONDS):
            ends: dict[TopicPartition, int] = await consumer.end_offsets([tp])
            return ends[tp]
    except (KafkaError, TimeoutError, OSError):
        return None
