"""What a run's topics must be, judged from what the broker told. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from stream.doctor.checks import Check, failed, ok, skipped, warning
from stream.settings import Settings
from stream.topics import DAY_MS, described, topic

FOREVER = -1
SAFE_REPLICAS = 3
SAFE_IN_SYNC = 2
APPEND_TIME = "LogAppendTime"
IN_SYNC = "min.insync.replicas"

_NOT_TOLD = "the broker does not tell"
_RECEIPT = "until then the agent's receipt time is used"
_GRANT = "allow this client DescribeConfigs on the topics, or look there by hand"


@dataclass(frozen=True, slots=True)
class FoundTopic:
    """One of the run's topics as the broker has it."""

    partitions: int
    replicas: int  # of the partition that has the fewest
    lagging: int  # partitions with a replica that is out of sync
    leaderless: int  # partitions that nobody serves now
    config: Mapping[str, str]  # what the broker told of it; Tansu tells what the topic was made with


@dataclass(frozen=True, slots=True)
class Cluster:
    """The broker's answer."""

    id: str | None
    brokers: int
    topics: Mapping[str, FoundTopic]  # by the name that DESIGN gives them: turns, journal, ...
    append_time: bool | None = None  # whether the newest turn bears the broker's time; None: no turn there


def present(settings: Settings, cluster: Cluster) -> Check:
    """All of the run's topics are there and served."""
    names = [each.name for each in described(settings)]
    leaderless = [topic(settings, name) for name, found in cluster.topics.items() if found.leaderless]
    if leaderless:
        return failed(
            "topics", f"without leader: {', '.join(leaderless)}", "start the brokers that hold them"
        )
    missing = [topic(settings, name) for name in names if name not in cluster.topics]
    if missing:
        return warning("topics", f"missing: {', '.join(missing)}", _make(settings, cluster))
    return ok("topics", f"all {len(names)} of run {settings.run}")


def _make(settings: Settings, cluster: Cluster) -> str:
    remedy = "start `volteface agent`, which makes them"
    turns = cluster.topics.get("turns")
    if turns and turns.partitions != settings.partitions:
        remedy += f"; set VOLTEFACE_PARTITIONS={turns.partitions} first, which turns has"
    return remedy


def partitions(settings: Settings, cluster: Cluster) -> Check:
    """All topics have as many: a conversation's entries lie in one number, which rebuild counts on."""
    counts = {topic(settings, name): found.partitions for name, found in cluster.topics.items()}
    if not counts:
        return skipped("partitions", "no topics yet")
    if len(set(counts.values())) == 1:
        return ok("partitions", f"{next(iter(counts.values()))} in each topic")
    said = ", ".join(f"{name} {count}" for name, count in counts.items())
    least = ", ".join(name for name, count in counts.items() if count < max(counts.values()))
    # More partitions move keys, and entries made before would lie elsewhere than rebuild looks.
    remedy = f"stop the run and make {least} anew; kafka-topics.sh --alter only where no record lies yet"
    return failed("partitions", said, remedy)


def retention(settings: Settings, cluster: Cluster) -> Check:
    """Turns stay as long as the ledger reaches."""
    name, turns = "retention of turns", cluster.topics.get("turns")
    if turns is None:
        return skipped(name, "no turns topic yet")
    told = turns.config.get("retention.ms")
    if told is None:
        return warning(name, _NOT_TOLD, _GRANT)
    wanted = settings.reach_days * DAY_MS
    if int(told) != FOREVER and int(told) < wanted:
        remedy = f"{_alter(settings, 'turns', f'retention.ms={wanted}')}, or lower VOLTEFACE_REACH_DAYS"
        return failed(name, f"{_days(told)}, less than the {settings.reach_days} that are to be kept", remedy)
    if int(turns.config.get("retention.bytes", FOREVER)) != FOREVER:
        found = f"{_days(told)}, but at most {turns.config['retention.bytes']} bytes a partition"
        return warning(name, found, _alter(settings, "turns", "retention.bytes=-1"))
    return ok(name, _days(told))


def append_time(settings: Settings, cluster: Cluster) -> Check:
    """The broker stamps turns; a sender's clock would decide lateness else."""
    name, turns = "time of turns", cluster.topics.get("turns")
    if turns is None:
        return skipped(name, "no turns topic yet")
    if cluster.append_time:
        return ok(name, f"{APPEND_TIME}, as the newest turn shows")
    told = turns.config.get("message.timestamp.type")
    if told != APPEND_TIME:
        alter = _alter(settings, "turns", f"message.timestamp.type={APPEND_TIME}")
        return warning(name, told or _NOT_TOLD, f"{alter}; {_RECEIPT}")
    if cluster.append_time is False:
        found = f"{APPEND_TIME} is set, but the newest turn bears its sender's time"
        return warning(name, found, f"use Apache Kafka where the broker lacks it; {_RECEIPT}")
    # Apache Kafka tells all settings of a topic; Tansu repeats what it was made with, and obeys little.
    if IN_SYNC in turns.config:
        return ok(name, f"{APPEND_TIME}, by its configuration")
    found = f"{APPEND_TIME} is set, but no turn shows yet whether this broker obeys"
    return warning(name, found, f"send a turn and run volteface doctor again; {_RECEIPT}")


def compaction(settings: Settings, cluster: Cluster) -> Check:
    """States are compacted; turns and journal never, since compaction keeps a conversation's last alone."""
    name, wrong, unknown = "compaction", [], []
    for short, wanted in (("states", True), ("turns", False), ("journal", False)):
        found = cluster.topics.get(short)
        policy = found.config.get("cleanup.policy") if found else None
        if found and policy is None:
            unknown.append(topic(settings, short))
        elif policy is not None and ("compact" in policy) is not wanted:
            wrong.append(_alter(settings, short, f"cleanup.policy={'compact' if wanted else 'delete'}"))
    if wrong:
        return failed(name, f"wrong for {len(wrong)} of the topics", "; ".join(wrong))
    if unknown:
        return warning(name, f"{_NOT_TOLD} of {', '.join(unknown)}", _GRANT)
    if "states" not in cluster.topics:
        return skipped(name, "no states topic yet")
    return ok(name, "states compacted, turns and journal not")


def replication(settings: Settings, cluster: Cluster) -> Check:
    """Every topic outlives the loss of a broker."""
    if not cluster.topics:
        return skipped("replication", f"no topics yet; VOLTEFACE_REPLICATION is {settings.replication}")
    fewest = min(found.replicas for found in cluster.topics.values())
    lagging = [topic(settings, name) for name, found in cluster.topics.items() if found.lagging]
    if fewest == 1:
        remedy = f"in production make topics with VOLTEFACE_REPLICATION={SAFE_REPLICAS} on as many brokers"
        return warning("replication", "1 replica: what a lost broker held is lost", remedy)
    if lagging:
        found = f"{fewest} replicas, out of sync in {', '.join(lagging)}"
        return warning("replication", found, "start the brokers that lag, or wait until they have caught up")
    return ok("replication", f"{fewest} replicas, all in sync")


def in_sync(settings: Settings, cluster: Cluster) -> Check:
    """How many replicas confirm a record: neither one alone, nor more than there are."""
    told = {
        short: (int(found.config[IN_SYNC]), found.replicas)
        for short, found in cluster.topics.items()
        if IN_SYNC in found.config
    }
    if not told:
        return skipped(IN_SYNC, "no topics yet" if not cluster.topics else _NOT_TOLD)
    for short, (least, replicas) in told.items():
        if least > replicas:
            found = f"{least} of {topic(settings, short)}, which has {replicas}: nothing can be sent"
            return failed(IN_SYNC, found, _alter(settings, short, f"{IN_SYNC}={max(1, replicas - 1)}"))
    weakest, (least, _) = min(told.items(), key=lambda item: item[1][0])
    if least < SAFE_IN_SYNC:
        remedy = f"in production, with {SAFE_REPLICAS} replicas: "
        found = f"{least} of {topic(settings, weakest)}: a record counts as delivered with a single copy"
        return warning(IN_SYNC, found, remedy + _alter(settings, weakest, f"{IN_SYNC}={SAFE_IN_SYNC}"))
    return ok(IN_SYNC, str(least))


CHECKS = (present, partitions, retention, append_time, compaction, replication, in_sync)


def _alter(settings: Settings, short: str, setting: str) -> str:
    servers = ",".join(settings.bootstrap_servers)
    what = f"--entity-type topics --entity-name {topic(settings, short)} --add-config {setting}"
    return f"run: kafka-configs.sh --bootstrap-server {servers} --alter {what}"


def _days(milliseconds: str) -> str:
    return "forever" if int(milliseconds) == FOREVER else f"{int(milliseconds) / DAY_MS:g} days"
