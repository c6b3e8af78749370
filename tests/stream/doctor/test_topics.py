"""A run's topics judged: each wrong thing is named with the command that mends it."""

from dataclasses import replace

import pytest

from stream.doctor import topics
from stream.doctor.checks import Check
from stream.doctor.topics import Cluster, FoundTopic
from stream.topics import DAY_MS
from tests.stream.doctor.helpers import settings

KEPT = {"cleanup.policy": "delete", "retention.ms": str(7 * DAY_MS), "min.insync.replicas": "2"}
GOOD = Cluster(
    "c-1",
    3,
    {
        name: FoundTopic(8, 3, 0, 0, KEPT | more)
        for name, more in {
            "turns": {"message.timestamp.type": "LogAppendTime"},
            "journal": {},
            "states": {"cleanup.policy": "compact"},
            "stances": {},
            "flips": {},
            "alerts": {},
            "dead-letters": {},
        }.items()
    },
)
EMPTY = Cluster("c-1", 1, {})


def with_topic(name: str, **changes: object) -> Cluster:
    found = replace(GOOD.topics[name], **changes)  # type: ignore[arg-type]
    return replace(GOOD, topics={**GOOD.topics, name: found})


def configured(name: str, **changes: str | None) -> Cluster:
    named = {key.replace("_", "."): value for key, value in changes.items()}
    config = {**GOOD.topics[name].config, **named}
    return with_topic(name, config={key: value for key, value in config.items() if value is not None})


def test_good_topics_are_good() -> None:
    checks = [check(settings(), GOOD) for check in topics.CHECKS]
    assert {check.status for check in checks} == {"ok"}
    assert [check.found for check in checks] == [
        "all 7 of run live",
        "8 in each topic",
        "7 days",
        "LogAppendTime, by its configuration",
        "states compacted, turns and journal not",
        "3 replicas, all in sync",
        "2",
    ]


def test_before_a_run_has_topics_only_their_absence_is_told() -> None:
    checks = [check(settings(), EMPTY) for check in topics.CHECKS]
    assert [check.status for check in checks] == ["warning"] + ["skipped"] * 6
    assert "volteface agent" in checks[0].remedy


def test_a_missing_topic_names_the_partitions_to_make_it_with() -> None:
    found = replace(GOOD, topics={name: GOOD.topics[name] for name in GOOD.topics if name != "flips"})
    check = topics.present(settings(run="trial", partitions=4), found)
    assert check.found == "missing: volteface.trial.flips"
    assert "VOLTEFACE_PARTITIONS=8" in check.remedy


def said(check: Check, status: str, *parts: str) -> None:
    assert check.status == status
    assert [part for part in parts if part not in f"{check.found} {check.remedy}"] == []


def test_a_topic_without_leader_fails() -> None:
    said(topics.present(settings(), with_topic("turns", leaderless=1)), "failed", "volteface.turns")


def test_unequal_partitions_fail() -> None:
    check = topics.partitions(settings(), with_topic("journal", partitions=4))
    said(check, "failed", "volteface.journal 4", "make volteface.journal anew")


@pytest.mark.parametrize(
    ("config", "status", "part"),
    [
        ({"retention_ms": str(DAY_MS)}, "failed", "1 days"),
        ({"retention_ms": str(DAY_MS)}, "failed", f"retention.ms={7 * DAY_MS}"),
        ({"retention_ms": "-1"}, "ok", "forever"),
        ({"retention_ms": None}, "warning", "DescribeConfigs"),
        ({"retention_bytes": "1000"}, "warning", "retention.bytes=-1"),
        ({"retention_bytes": "-1"}, "ok", "7 days"),
    ],
)
def test_retention(config: dict[str, str], status: str, part: str) -> None:
    said(topics.retention(settings(), configured("turns", **config)), status, part)


def test_retention_follows_reach_days() -> None:
    said(topics.retention(settings(reach_days=8), GOOD), "failed", "VOLTEFACE_REACH_DAYS")


@pytest.mark.parametrize(
    ("told", "shown", "status", "part"),
    [
        ("LogAppendTime", True, "ok", "newest turn"),
        ("LogAppendTime", False, "warning", "sender's time"),
        ("CreateTime", None, "warning", "message.timestamp.type=LogAppendTime"),
        ("CreateTime", False, "warning", "receipt time"),
        (None, None, "warning", "does not tell"),
        (None, True, "ok", "newest turn"),
    ],
)
def test_time_of_turns(told: str | None, shown: bool | None, status: str, part: str) -> None:
    cluster = replace(configured("turns", message_timestamp_type=told), append_time=shown)
    said(topics.append_time(settings(), cluster), status, part)


def test_a_broker_that_repeats_what_a_topic_was_made_with_is_not_believed() -> None:
    cluster = configured("turns", min_insync_replicas=None)
    said(topics.append_time(settings(), cluster), "warning", "no turn shows yet", "receipt time")


@pytest.mark.parametrize(
    ("name", "policy", "status", "part"),
    [
        ("states", "delete", "failed", "volteface.states --add-config cleanup.policy=compact"),
        ("states", "compact,delete", "ok", "compacted"),
        ("turns", "compact", "failed", "volteface.turns --add-config cleanup.policy=delete"),
        ("journal", "compact,delete", "failed", "volteface.journal"),
        ("states", None, "warning", "does not tell of volteface.states"),
    ],
)
def test_compaction(name: str, policy: str | None, status: str, part: str) -> None:
    said(topics.compaction(settings(), configured(name, cleanup_policy=policy)), status, part)


def test_replication() -> None:
    said(
        topics.replication(settings(), with_topic("flips", replicas=1)), "warning", "VOLTEFACE_REPLICATION=3"
    )
    said(topics.replication(settings(), with_topic("flips", lagging=2)), "warning", "volteface.flips")


@pytest.mark.parametrize(
    ("least", "status", "part"),
    [
        ("1", "warning", "min.insync.replicas=2"),
        ("2", "ok", "2"),
        ("4", "failed", "4 of volteface.turns, which has 3"),
        (None, "ok", "2"),
    ],
)
def test_replicas_in_sync(least: str | None, status: str, part: str) -> None:
    said(topics.in_sync(settings(), configured("turns", min_insync_replicas=least)), status, part)
