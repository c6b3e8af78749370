"""The broker as its clients find it: whether it answers, takes idempotent producers, and has the topics."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from stream import lag, rights
from stream.addresses import masked
from stream.doctor import topics
from stream.doctor.checks import Check, evaluated, failed, ok, skipped, warning
from stream.doctor.topics import Cluster, FoundTopic
from stream.kafka import NoBroker, running
from stream.settings import Settings
from stream.topics import described, topic

REQUEST_SECONDS = 2.5  # of one address; a broker that is there answers in milliseconds
LOOK_SECONDS = 4.0
CREATE_TIME = 0

_started = partial(running, request_timeout_ms=int(REQUEST_SECONDS * 1000))

_CLIENT = "aiokafka"
_LOGGERS = (_CLIENT, "asyncio")  # which tells of futures that a client left behind
_IDEMPOTENCE = "idempotent producer"
_GROUP = "group"


class BrokerUnreachable(Exception):
    """No broker answered; says what the client met, and what to do where that is known."""

    def __init__(self, cause: str, remedy: str = "") -> None:
        super().__init__(cause)
        self.remedy = remedy


async def examine(settings: Settings) -> list[Check]:
    """Every check of the broker and the run's topics."""
    with hushed() as heard:
        try:
            cluster = await look(settings, heard)
        except BrokerUnreachable as error:
            unseen = skipped("topics", "not looked at, since no broker answers", "mend the broker first")
            return [_unreachable(settings, error), unseen]
        stamps, *allowed = await asyncio.gather(
            _stamps(settings, cluster), _idempotence(settings), _membership(settings)
        )
    cluster = replace(cluster, append_time=stamps)
    return [_reached(settings, cluster), *allowed, *evaluated(topics.CHECKS, settings, cluster)]


@contextmanager
def hushed() -> Iterator[list[str]]:
    """Keeps the client's logs off the screen; gives what they say, for errors that hide their cause."""
    heard: list[str] = []
    handler = _Listener(heard)
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [(logger.handlers, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.handlers, logger.propagate = [handler], False
    try:
        yield heard
    finally:
        for logger, (handlers, propagate) in zip(loggers, before, strict=True):
            logger.handlers, logger.propagate = handlers, propagate


class _Listener(logging.Handler):
    def __init__(self, heard: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith(_CLIENT):
            self._heard.append(record.getMessage())


async def look(settings: Settings, heard: list[str]) -> Cluster:
    """The cluster and those of the run's topics that are there. Raises BrokerUnreachable."""
    try:
        async with asyncio.timeout(LOOK_SECONDS), _started(AIOKafkaAdminClient, settings) as admin:
            whole = await admin.describe_cluster()
            # All topics: Tansu describes a topic that is asked for by name and does not exist.
            every = await admin.describe_topics()
            listed = {each["topic"]: each["partitions"] for each in every if each["partitions"]}
            names: dict[str, str] = {topic(settings, each.name): each.name for each in described(settings)}
            present = [name for name in names if name in listed]
            configs = await _configs(admin, present)
    except TimeoutError:
        raise BrokerUnreachable(f"no answer within {LOOK_SECONDS:g} s") from None
    except NoBroker as error:
        raise BrokerUnreachable(error.found, error.remedy) from error
    except (KafkaError, OSError, ValueError) as error:
        raise BrokerUnreachable(_cause(error, heard)) from error
    found = {names[name]: _found(listed[name], configs.get(name, {})) for name in present}
    return Cluster(whole.get("cluster_id"), len(whole["brokers"]), found)


async def _configs(admin: Any, names: list[str]) -> dict[str, dict[str, str]]:
    """The configuration of topics; empty where the broker does not tell."""
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    if not resources:
        return {}
    try:
        answers = await admin.describe_configs(resources)
    except KafkaError:  # not to be told is no reason to say nothing of the rest
        return {}
    return {
        name: {entry[0]: entry[1] for entry in entries}
        for answer in answers
        for _, _, _, name, entries in answer.resources
    }


def _found(partitions: list[dict[str, Any]], config: dict[str, str]) -> FoundTopic:
    return FoundTopic(
        partitions=len(partitions),
        replicas=min(len(each["replicas"]) for each in partitions),
        lagging=sum(len(each["isr"]) < len(each["replicas"]) for each in partitions),
        leaderless=sum(each["leader"] < 0 for each in partitions),
        config=config,
    )


async def _stamps(settings: Settings, cluster: Cluster) -> bool | None:
    """Whether the newest record of turns has the broker's time; None where there is no record to ask.

    The configuration alone is no answer: Tansu tells LogAppendTime and keeps the sender's time.
    """
    turns = cluster.topics.get("turns")
    if turns is None:
        return None
    with suppress(KafkaError, TimeoutError, OSError):
        async with asyncio.timeout(REQUEST_SECONDS), _started(AIOKafkaConsumer, settings) as consumer:
            name = topic(settings, "turns")
            partitions = [TopicPartition(name, number) for number in range(turns.partitions)]
            starts = await consumer.beginning_offsets(partitions)
            ends = await consumer.end_offsets(partitions)
            filled = [each for each in partitions if ends[each] > starts[each]]
            if filled:
                consumer.assign(filled[:1])
                consumer.seek(filled[0], ends[filled[0]] - 1)
                return bool((await consumer.getone()).timestamp_type != CREATE_TIME)
    return None


async def _idempotence(settings: Settings) -> Check:
    """Whether the broker gives a producer id, without which nothing can be sent idempotently."""
    if not settings.broker_idempotence:
        return skipped(_IDEMPOTENCE, "turned off by VOLTEFACE_BROKER_IDEMPOTENCE")
    remedy = "set VOLTEFACE_BROKER_IDEMPOTENCE=false for a broker that lacks it, or allow Write on the topics"
    try:
        async with (
            asyncio.timeout(REQUEST_SECONDS),
            _started(AIOKafkaProducer, settings, acks="all", enable_idempotence=True),
        ):
            return ok(_IDEMPOTENCE, "accepted")
    except TimeoutError:
        return failed(_IDEMPOTENCE, f"no producer id within {REQUEST_SECONDS:g} s", remedy)
    except (KafkaError, OSError) as error:
        return failed(_IDEMPOTENCE, f"refused: {type(error).__name__}", remedy)


async def _membership(settings: Settings) -> Check:
    """Whether agents may join the run's group."""
    try:
        answered = await rights.check(settings, REQUEST_SECONDS)
    except rights.NotAllowed as error:
        said, _, remedy = str(error).partition(" -> ")
        return failed(_GROUP, said, remedy)
    if answered:
        return ok(_GROUP, lag.group(settings))
    remedy = "see that offsets.topic.replication.factor is no more than there are brokers; ask again"
    return warning(_GROUP, f"{lag.group(settings)}: no broker answers for it", remedy)


def _cause(error: Exception, heard: list[str]) -> str:
    """What went wrong: aiokafka's error names the addresses alone, its log says why."""
    if isinstance(error, OSError | ValueError):
        return f"{type(error).__name__}: {error}"
    said = heard[-1].rstrip(" :") if heard else repr(error)
    return said.split(": <AIOKafka", maxsplit=1)[0]


def _unreachable(settings: Settings, error: BrokerUnreachable) -> Check:
    remedy = error.remedy or "start it (`volteface up` runs one), or set VOLTEFACE_BROKER"
    if settings.broker_security != "plaintext":
        remedy += "; VOLTEFACE_BROKER_SECURITY and the settings beside it must suit the brokers"
    return failed("broker", f"{masked(settings.broker)}: {error}", remedy)


def _reached(settings: Settings, cluster: Cluster) -> Check:
    many = f"{cluster.brokers} broker{'' if cluster.brokers == 1 else 's'}"
    return ok("broker", f"{masked(settings.broker)}: {many}, cluster {cluster.id or 'without id'}")
