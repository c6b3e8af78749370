"""A backtest of a run that real agents folded, on each broker; and of a journal that tells not all of it."""

import datetime as dt
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

import msgspec
import pytest

from models.language.rule import RuleEngine
from models.local import LocalReader
from models.reader import ObserveRequest
from stream import backtest
from stream.backtest import BacktestFailed, Report
from stream.chain import Item
from stream.embedded import EmbeddedRedis
from stream.findings import Count, Difference, findings
from stream.settings import Settings
from stream.store.port import Message
from tests.end_to_end.harness import (
    LEFT_OPEN,
    PROPOSITION,
    Collected,
    collecting,
    drained,
    key,
    now,
    producing,
    running,
    settings_of,
    target,
    turn,
)
from tests.stream import fakes
from tests.stream.rebuilding.stand import Stand, standing
from tracker import keys
from tracker.backtest import Change, Plan, compared
from tracker.conversation import Rules
from tracker.observations import Observation, Probabilities
from tracker.policy import Policy, Threshold
from tracker.records import DeleteTurn, EditTurn, EraseHolder, HolderKind, OverrideStance, Record
from tracker.stances import Stance

pytestmark = [pytest.mark.filterwarnings(LEFT_OPEN), pytest.mark.long]

CANDIDATE = Rules(Policy("strict", flip=Threshold(0.8)))
NEVER = Rules(Policy("never", flip=Threshold(1.01)))
FI = ("+1 0.9", "-1 0.7", "+0 0.95")


class Unsure(RuleEngine):
    """Reads a marker with the probability that a text ends with."""

    def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
        read = zip(super().observe(requests), requests, strict=True)
        return [_unsure(one, asked.turn.text) for one, asked in read]


def _unsure(read: Observation, text: str) -> Observation:
    _, _, share = text.partition(" ")
    first, _ = read.expressed.ranked()[0]
    sure = float(share)
    given = Probabilities(**{first.value: sure, "none": round(1.0 - sure, 6)})
    return msgspec.structs.replace(read, expressed=given)


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """One Redis: that its versions agree is tested with the store."""
    with EmbeddedRedis() as server:
        yield server.url


def course(room: str) -> list[Record]:
    """Flips that stand, are taken back, were never told, were late, and were a person's word."""
    start = now() - dt.timedelta(minutes=5)
    target_id = keys.target_id("default", room, PROPOSITION)

    def at(seconds: float) -> dict[str, Any]:
        return {"sent_at": start + dt.timedelta(seconds=seconds)}

    about: dict[str, Any] = {"conversation": room} | at(100)
    word: dict[str, Any] = about | {"by": "mod", "reason": "asked"}
    return [
        target(room, **at(0)),
        *(turn(room, f"{who}-1", "+1 0.9", holder=who, **at(1)) for who in ("ann", "bo", "cy", "di")),
        *(turn(room, f"{who}-2", "-1 0.7", holder=who, **at(2)) for who in ("ann", "bo", "cy", "di")),
        turn(room, "ann-3", "+0 0.95", language="en-GB", **at(3)),
        *(turn(room, f"fi-{n}", text, holder="fi", **at(3)) for n, text in enumerate(FI, 1)),
        turn(room, "ann-late", "+1 0.75", **at(2.5)),
        EditTurn(**about, turn="di-1", text="-1 0.85"),
        DeleteTurn(**about, turn="bo-2"),
        OverrideStance(**word, id="pin", to=Stance.NEUTRAL, holder="cy", target=target_id),
        turn(room, "cy-3", "+1 0.9", holder="cy", **at(4)),
        OverrideStance(**word, id="unpin", to=None, holder="cy", target=target_id),
        OverrideStance(**word, id="word", to=Stance.OPPOSE, turn="bo-1"),
        turn(room, "bo-3", "+1 0.6", holder="bo", **at(5)),
        turn(room, "cy-4", "-1 0.6", holder="cy", **at(6)),
        target(room, "whether milk comes first", **at(6)),
        turn(room, "ed-1", "+1 0.9", holder="ed", **at(7)),
        EraseHolder(**about, id="erase", holder="ed"),
    ]


Told = tuple[str, str, str, str, str, str, float]


def standing_flips(seen: Collected) -> set[Told]:
    """What a subscriber of the flips topic holds in the end, as run, turn and so on."""
    held: dict[str, Told] = {}
    for event in seen.values["flips"]:
        data = event["data"]
        if event["type"].endswith("flipped"):
            held[event["id"]] = (
                data["conversation"], data["holder"], data["target"]["id"], data["turn"], data["from"],
                data["to"], data["confidence"],
            )  # fmt: skip
        else:
            held.pop(data["retracts"], None)
    return set(held.values())


def vanished(found: Sequence[Difference]) -> set[Told]:
    return {
        (one.conversation, one.holder, one.target.id, one.turn, one.base.before, one.base.after,
         one.base.confidence)
        for one in found if one.base is not None and one.change is Change.VANISHES
    }  # fmt: skip


async def looked(
    settings: Settings, plan: Plan, conversations: Collection[str] = ()
) -> tuple[Report, Count, list[Difference]]:
    with findings() as found:
        report = await backtest.run(settings, plan, found, conversations)
        return report, found.all(), list(found.differences())


class Run(NamedTuple):
    """A run that real agents folded, and the flips that stand of it."""

    settings: Settings
    flips: set[Told]


@pytest.fixture(scope="module")
async def run(broker: str, redis_url: str, request: pytest.FixtureRequest) -> Run:
    idempotence = "kafka" in request.node.name
    prefix = f"test-{uuid4().hex[:12]}"
    settings = settings_of(f"kafka://{broker}", redis_url, prefix, idempotence=idempotence)
    async with collecting(settings) as seen, producing(settings) as producer:
        async with running(settings, reader=LocalReader(Unsure())):
            await producer.records(course("one") + course("two"))
            await drained(settings)
        await producer.raw(key("one"), b"no record")
        await seen.rest()
    return Run(settings, standing_flips(seen))


async def test_the_policy_in_force_tells_no_difference(run: Run) -> None:
    assert len(run.flips) >= 10
    report, count, differences = await looked(run.settings, Plan(Rules(), Rules()))
    assert (count.stands, differences) == (len(run.flips), [])
    assert report == Report(conversations=2, observations=report.observations)
    assert report.observations >= 20
    assert (await looked(run.settings, Plan(Rules(), CANDIDATE, CANDIDATE)))[2] == []


async def test_where_nothing_is_sure_all_flips_vanish(run: Run) -> None:
    _, count, differences = await looked(run.settings, Plan(Rules(), NEVER))
    assert (count.vanishes, vanished(differences)) == (len(run.flips), run.flips)


async def test_a_stricter_candidate_tells_what_live_would_have_told(run: Run) -> None:
    report, _, differences = await looked(run.settings, Plan(Rules(), CANDIDATE), ["one"])
    assert {one.conversation for one in differences} == {"one"}
    assert report.conversations == 1
    told = {(one.turn, one.change, one.stale) for one in differences}
    assert told == {
        ("ann-2", Change.VANISHES, False),
        ("ann-late", Change.VANISHES, True),
        ("fi-2", Change.VANISHES, False),
        ("fi-3", Change.CHANGES, True),
        ("bo-3", Change.VANISHES, False),
        ("cy-2", Change.VANISHES, False),
        ("cy-4", Change.VANISHES, False),
    }
    assert (report.observations, report.stale) == (15, 3)


async def test_each_language_is_counted(run: Run) -> None:
    with findings() as found:
        await backtest.run(run.settings, Plan(Rules(), CANDIDATE), found)
        languages = {one.name: one.stands for one in found.by("language", 9)}
        propositions = [one.name for one in found.by("proposition", 9)]
    assert languages.keys() == {"und", "en"}
    assert languages["en"] == 2
    assert propositions == [PROPOSITION]


async def test_a_turn_that_is_newer_than_asked_is_told_alone(run: Run) -> None:
    plan = Plan(Rules(), NEVER, since=now() + dt.timedelta(hours=1))
    report, count, differences = await looked(run.settings, plan)
    assert (report.conversations, report.observations, count.vanishes, differences) == (2, 0, 0, [])


async def test_a_conversation_that_is_not_there_is_none(run: Run) -> None:
    report, _, differences = await looked(run.settings, Plan(Rules(), NEVER), ["three"])
    assert (report, differences) == (Report(), [])


async def test_without_such_a_run_it_says_so(run: Run) -> None:
    nowhere = msgspec.structs.replace(run.settings, run="never")
    with pytest.raises(BacktestFailed, match="run never has no topic"):
        await looked(nowhere, Plan(Rules(), NEVER))
    away = msgspec.structs.replace(run.settings, broker="kafka://127.0.0.1:1")
    with pytest.raises(BacktestFailed, match="the topics cannot be read"):
        await looked(away, Plan(Rules(), NEVER))


async def test_one_that_fails_is_told_and_the_others_are_compared(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:

    def failing(turns: Any, *rest: Any) -> Any:
        [first, *more] = turns
        if first.observations and first.observations[0].target == keys.target_id(
            "default", "one", PROPOSITION
        ):
            raise KeyError("spoilt")
        return compared([first, *more], *rest)

    monkeypatch.setattr(backtest, "compared", failing)
    report, count, _ = await looked(run.settings, Plan(Rules(), Rules()))
    assert (report.conversations, report.failed, count.stands) == (2, 1, len(run.flips) // 2)


@pytest.fixture
async def stand(broker: str, redis_url: str, topic_prefix: str) -> AsyncIterator[Stand]:
    """A run whose journal can lose what is older."""
    settings = settings_of(f"kafka://{broker}", redis_url, topic_prefix, idempotence=False, run="r")
    async with standing(settings) as made:
        yield made


async def test_a_journal_that_begins_later_is_begun_from_what_it_tells(stand: Stand) -> None:
    texts = ["+1", "-1", "x", "+1", "-1", "+0"]
    given: list[Record] = [fakes.target()]
    given += (fakes.turn(str(n), text, seconds=n) for n, text in enumerate(texts))
    given += [fakes.target("b"), fakes.turn("0", room="b"), fakes.turn("1", "-1", room="b", seconds=1)]
    await stand.produce(given)
    stand.sender.loses = True
    await stand.apply(stand.items[:4])
    stand.sender.loses = False
    await stand.apply(stand.items[4:])
    report, count, differences = await looked(stand.settings, Plan(Rules(), Rules()))
    assert (report.conversations, report.partial, report.unlike) == (2, 1, 0)
    assert (count.stands, differences) == (4, [])
    _, _, differences = await looked(stand.settings, Plan(Rules(), NEVER))
    assert [(one.conversation, one.turn, one.partial) for one in differences] == [
        ("a", "3", True), ("a", "4", True), ("a", "5", True), ("b", "1", False),
    ]  # fmt: skip


async def test_kinds_of_holders_are_looked_up_where_a_policy_exempts_by_them(stand: Stand) -> None:
    kinds = {"ann": HolderKind.MODERATOR, "bo": HolderKind.USER, "cy": HolderKind.BOT}
    given = [
        fakes.turn(f"{who}-{n}", text, holder=who, holder_kind=kind, seconds=n)
        for n, text in enumerate(["+1", "-1"])
        for who, kind in kinds.items()
    ]
    await stand.produce([fakes.target(), *given])
    await stand.apply(stand.items)
    candidate = Rules(Policy(exempt_kinds=frozenset({HolderKind.MODERATOR})))
    report, count, differences = await looked(stand.settings, Plan(Rules(), candidate))
    assert [(one.holder, one.change) for one in differences] == [("ann", Change.VANISHES)]
    assert (count.stands, report.observations, report.unread, report.kindless) == (1, 2, 2, 0)


async def test_a_kind_that_nothing_tells_exempts_nobody(stand: Stand) -> None:
    given: list[Record] = [fakes.target(), fakes.turn("0"), fakes.turn("1", "-1", seconds=1)]
    await stand.apply([Item(at, one, "") for at, one in enumerate(given)])
    candidate = Rules(Policy(exempt_kinds=frozenset({HolderKind.USER})))
    report, count, differences = await looked(stand.settings, Plan(Rules(), candidate))
    assert (report.kindless, report.observations, count.stands, differences) == (2, 2, 1, [])


async def test_what_is_no_journal_entry_is_counted(stand: Stand) -> None:
    await stand.produce([fakes.target(), fakes.turn("0"), fakes.turn("1", "-1", seconds=1)])
    await stand.apply(stand.items)
    await stand.sender.send([Message("journal", key("a"), b"spoilt")])
    report, count, _ = await looked(stand.settings, Plan(Rules(), Rules()))
    assert (report.unreadable, count.stands) == (1, 1)
