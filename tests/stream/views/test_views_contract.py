"""What every store of views keeps and answers: memory, SQLite and PostgreSQL."""

import asyncio
import datetime as dt
from collections.abc import Sequence
from typing import Any

import pytest

from stream.views.port import Activity, Batch, Entry, Filter, StoredEvent, Views
from tests.stream.views.telling import START, alert, flip, forgotten, headed, held, retraction, told
from tracker.events import EventType
from tracker.pins import Pin
from tracker.records import EPOCH, TargetStatus
from tracker.stances import Stance
from tracker.targets import Target

AFTER_ALL = 10_000


@pytest.fixture
def views(any_views: Views) -> Views:
    return any_views


async def put(views: Views, *entries: Entry) -> dict[str, int]:
    return dict(await views.put(Batch(entries)))


async def ids(views: Views, tenant: str, where: Filter = Filter(), **page: Any) -> list[str]:  # noqa: B008
    return [each.id for each in await views.events(tenant, where, **{"after": 0} | page)]


def names(*given: Any) -> list[str]:
    return [each.id for each in given]


async def test_events_get_positions_in_their_order(views: Views, tenant: str) -> None:
    first, second, third = (told(number, tenant=tenant) for number in (1, 2, 3))
    assert await put(views, first, second) == {tenant: 2}
    assert await put(views, third) == {tenant: 3}
    assert await views.latest(tenant) == 3
    assert await views.events(tenant, after=1) == [
        StoredEvent(2, second.id, second.body),
        StoredEvent(3, third.id, third.body),
    ]
    assert await views.position_of(tenant, third.id) == 3
    assert await views.position_of(tenant, "no such event") is None


async def test_an_event_that_comes_again_keeps_its_position(views: Views, tenant: str) -> None:
    first, second = told(1, tenant=tenant), flip(2, tenant=tenant)
    await put(views, first)
    assert await put(views, first, second, first, second) == {tenant: 2}
    assert await put(views, first, second) == {}
    assert await ids(views, tenant) == names(first, second)
    [row] = await views.conversations(tenant)
    assert (row.events, row.flips) == (2, 1)


async def test_tenants_never_mix(views: Views, tenant: str) -> None:
    other = f"{tenant}-other"
    mine = [told(1, tenant=tenant), held(1, tenant=tenant), headed(1, 5.0, tenant=tenant)]
    theirs = [flip(1, tenant=other), held(1, tenant=other, stance=Stance.OPPOSE)]
    assert await put(views, *theirs, *mine) == {tenant: 1, other: 1}
    for owner, own in ((tenant, mine[0]), (other, theirs[0])):
        assert await ids(views, owner) == names(own)
        assert [row.conversation for row in await views.conversations(owner)] == ["room"]
        assert len(await views.holders(owner)) == 1
        assert [point.event for point in await views.trajectory(owner, "room", "ann", "t-1")] == names(own)
    assert await views.position_of(tenant, theirs[0].id) is None
    await views.forget(tenant, "room", "ann")
    assert await ids(views, other) == names(theirs[0])
    await put(views, retraction(2, theirs[0], tenant=tenant))
    assert [each.retracted_by for each in await views.events(other, after=0)] == [None]


async def test_nothing_is_answered_to_a_tenant_that_has_nothing(views: Views, tenant: str) -> None:
    assert (await views.latest(tenant), await ids(views, tenant), await views.holders(tenant)) == (0, [], [])
    assert await views.conversation(tenant, "room") is None
    assert await views.conversations(tenant) == []
    assert await views.forget(tenant, "room", "ann") == 0


async def test_filters(views: Views, tenant: str) -> None:
    plain = told(1, tenant=tenant)
    moved = flip(2, tenant=tenant, holder="bo", trigger="social_influence")
    back = retraction(3, moved)
    elsewhere = flip(1, tenant=tenant, conversation="other", target="t-2")
    raised = alert(f"{tenant}-alert", tenant=tenant)
    await put(views, plain, moved, back, elsewhere, raised)
    cases: list[tuple[Filter, list[Any]]] = [
        (Filter(conversation="room"), [plain, moved, back, raised]),
        (Filter(holder="bo"), [moved, back]),
        (Filter(target="t-2"), [elsewhere]),
        (Filter(trigger="social_influence"), [moved]),
        (Filter(types=frozenset({EventType.FLIPPED, "volteface.alert.raised"})), [moved, elsewhere, raised]),
        (Filter(flips=True), [moved, back, elsewhere]),
        (Filter(flips=True, conversation="room", holder="ann"), []),
    ]
    for where, expected in cases:
        assert await ids(views, tenant, where) == names(*expected), where


async def test_pages_of_events_go_either_way(views: Views, tenant: str) -> None:
    given = [told(number, tenant=tenant) for number in range(1, 8)]
    await put(views, *given)
    assert await ids(views, tenant, limit=3) == names(*given[:3])
    assert await ids(views, tenant, after=None, limit=2) == names(given[6], given[5])
    assert await ids(views, tenant, after=None, before=6, limit=2) == names(given[4], given[3])
    assert await ids(views, tenant, after=2, before=5) == names(given[2], given[3])


async def test_a_retraction_marks_its_event(views: Views, tenant: str) -> None:
    stays, goes = told(1, tenant=tenant), flip(2, tenant=tenant)
    back = retraction(3, goes)
    await put(views, stays, goes)
    await put(views, back)
    await put(views, goes, back)
    assert [each.retracted_by for each in await views.events(tenant, after=0)] == [None, back.id, None]
    [row] = await views.conversations(tenant)
    assert (row.events, row.flips) == (1, 0)
    points = await views.trajectory(tenant, "room", "ann", "t-1")
    assert [(point.event, point.retracted_by) for point in points] == [(stays.id, None), (goes.id, back.id)]


async def test_a_trajectory_has_the_order_of_the_sequence(views: Views, tenant: str) -> None:
    late, first = flip(2, tenant=tenant), told(1, tenant=tenant)
    persisted = told(2, EventType.PERSISTED, tenant=tenant, before="oppose", after="oppose")
    await put(views, late, told(3, tenant=tenant, holder="bo"), persisted)
    await put(views, first)
    points = await views.trajectory(tenant, "room", "ann", "t-1")
    assert [point.event for point in points] == names(first, late, persisted)
    flipped = points[1]
    assert (flipped.before, flipped.after, flipped.turn) == (Stance.SUPPORT, Stance.OPPOSE, "m2")
    assert flipped.time == START + dt.timedelta(seconds=2)
    rest = await views.trajectory(tenant, "room", "ann", "t-1", behind=flipped.key, limit=1)
    assert [point.event for point in rest] == names(persisted)


async def test_states_follow_their_version(views: Views, tenant: str) -> None:
    await put(views, held(2, tenant=tenant), held(1, Stance.OPPOSE, tenant=tenant))
    await put(views, held(1, Stance.OPPOSE, tenant=tenant))
    [row] = await views.holders(tenant)
    assert (row.stance, row.turn, row.confidence, row.flips) == (Stance.SUPPORT, "m2", 0.75, 2)
    await put(views, held(3, Stance.NEUTRAL, tenant=tenant), held(0, None, tenant=tenant, holder="nobody"))
    assert [row.stance for row in await views.holders(tenant)] == [Stance.NEUTRAL]
    await put(views, held(0, None, tenant=tenant))
    assert await views.holders(tenant) == []
    await put(views, held(4, None, tenant=tenant), held(1, tenant=tenant))
    assert [row.stance for row in await views.holders(tenant)] == [Stance.SUPPORT]


async def test_a_conversation_tells_its_targets_and_who_holds_what(views: Views, tenant: str) -> None:
    targets = (Target("t-1", "whether x"), Target("t-2", "whether y", TargetStatus.RETIRED))
    pins = (Pin("bo", "t-1", Stance.NEUTRAL, 3),)
    await put(views, headed(5, 90.0, tenant=tenant, targets=targets, pins=pins))
    await put(views, headed(4, 80.0, tenant=tenant))
    await put(views, *(held(1, tenant=tenant, holder=holder) for holder in ("ann", "bo", "cy")))
    await put(views, held(1, Stance.OPPOSE, tenant=tenant, holder="di"))
    view = await views.conversation(tenant, "room")
    assert view is not None
    assert view.row.activity == Activity(EPOCH + dt.timedelta(seconds=90), "room")
    assert [(row.target, row.proposition, row.status) for row in view.targets] == [
        ("t-1", "whether x", TargetStatus.ACTIVE),
        ("t-2", "whether y", TargetStatus.RETIRED),
    ]
    assert view.targets[0].holders == {Stance.SUPPORT: 3, Stance.OPPOSE: 1}
    rows = await views.holders(tenant, conversation="room")
    assert [(row.holder, row.pinned) for row in rows] == [
        ("ann", None), ("bo", Stance.NEUTRAL), ("cy", None), ("di", None),
    ]  # fmt: skip


async def test_conversations_stand_by_their_last_activity(views: Views, tenant: str) -> None:
    await put(
        views,
        headed(1, 10.0, tenant=tenant, conversation="old"),
        headed(1, tenant=tenant, conversation="new"),
    )
    await put(
        views, told(1, tenant=tenant, conversation="now"), headed(1, 20.0, tenant=tenant, conversation="mid")
    )
    found = await views.conversations(tenant)
    assert [row.conversation for row in found] == ["now", "mid", "old", "new"]
    rest = await views.conversations(tenant, behind=found[1].activity)
    assert [row.conversation for row in rest] == ["old", "new"]
    await put(views, told(1, tenant=tenant, conversation="old"))
    assert [row.conversation for row in await views.conversations(tenant, limit=2)] == ["old", "now"]


async def test_the_forgotten_leave_nothing_but_that_they_are(views: Views, tenant: str) -> None:
    own, others = told(1, tenant=tenant), told(2, tenant=tenant, holder="bo")
    quoting = flip(3, tenant=tenant, holder="bo")
    back, own_back = retraction(4, quoting), retraction(5, own)
    raised = alert(f"{tenant}-alert", tenant=tenant)
    elsewhere = told(1, tenant=tenant, conversation="other")
    word = forgotten(6, tenant=tenant)
    await put(views, own, others, quoting, raised, elsewhere)
    await put(views, back, own_back, word)
    later = told(7, tenant=tenant)
    await put(views, later)
    assert await ids(views, tenant) == names(others, elsewhere, back, word, later)
    await put(views, own, quoting, own_back, back, word)
    left = await ids(views, tenant)
    assert own.id not in left and own_back.id not in left and quoting.id not in left
    [_, room] = await views.conversations(tenant)
    room = next(row for row in await views.conversations(tenant) if row.conversation == "room")
    assert (room.events, room.flips) == (3, 0)


async def test_forgotten_within_one_batch(views: Views, tenant: str) -> None:
    own, word = told(1, tenant=tenant), forgotten(2, tenant=tenant)
    again = told(1, tenant=tenant, conversation="other")
    await put(views, own, again, word, own)
    assert await ids(views, tenant) == names(again, word)


async def test_forgetting_by_name_holds_for_what_comes_again(views: Views, tenant: str) -> None:
    given = [told(1, tenant=tenant), flip(2, tenant=tenant, holder="bo"), flip(3, tenant=tenant)]
    await put(views, *given)
    assert await views.forget(tenant, "room", "ann") == 2
    await put(views, *given)
    assert await ids(views, tenant) == names(given[1])
    assert await views.latest(tenant) == 3
    await put(views, told(9, tenant=tenant))
    assert len(await ids(views, tenant)) == 2


async def test_names_may_have_any_characters(views: Views, tenant: str) -> None:
    odd = ["", "\x00", "\x00\x01", "\x01", "\x01\x01", "\x01\x02", "a\x00b", "ä", "日本", "😀", "%", "'--"]
    await put(views, *(told(number, tenant=tenant, holder=name) for number, name in enumerate(odd, 1)))
    await put(views, *(held(1, tenant=tenant, conversation=name, holder=name) for name in odd))
    for name in odd:
        assert len(await ids(views, tenant, Filter(holder=name))) == 1, repr(name)
        [row] = await views.holders(tenant, conversation=name, holder=name)
        assert row.holder == name
    rows = await views.holders(tenant)
    assert [row.holder for row in rows] == sorted(odd)
    behind = await views.holders(tenant, behind=rows[3].key)
    assert [row.key for row in behind] == [row.key for row in rows[4:]]


async def test_offsets_are_kept_with_the_batch(views: Views, tenant: str) -> None:
    topic = f"{tenant}.stances"
    assert await views.offsets(topic) == {}
    await views.put(Batch([told(1, tenant=tenant)], {(topic, 0): 5, (topic, 3): 1, (f"{topic}.other", 0): 9}))
    await views.put(Batch([], {(topic, 0): 6}))
    assert await views.offsets(topic) == {0: 6, 3: 1}


async def test_two_writers_give_each_event_one_position(views: Views, tenant: str) -> None:
    given = [told(number, tenant=tenant) for number in range(1, 41)]
    others = [told(number, tenant=f"{tenant}-other") for number in range(1, 41)]
    parts: Sequence[Sequence[Entry]] = [
        [
            one
            for pair in zip(given[start : start + 10], others[start : start + 10], strict=True)
            for one in pair
        ]
        for start in range(0, 40, 5)
        if start + 10 <= 40
    ]
    await asyncio.gather(*(put(views, *part) for part in [*parts, *reversed(parts)]))
    stored = await views.events(tenant, after=0)
    assert [each.position for each in stored] == list(range(1, 41))
    assert sorted(each.id for each in stored) == sorted(names(*given))
    [row] = await views.conversations(tenant)
    assert row.events == 40


async def test_a_reader_never_misses_what_is_committed_later(views: Views, tenant: str) -> None:
    """Reads on from the newest position seen while several write: every event is met, once and in order."""
    seen: list[StoredEvent] = []

    async def write(start: int) -> None:
        for number in range(start, start + 30, 3):
            await put(
                views,
                *(told(one, tenant=tenant, conversation=f"r{start}") for one in range(number, number + 3)),
            )

    writers = [asyncio.ensure_future(write(start)) for start in (0, 100, 200)]
    while len(seen) < 90:
        seen += await views.events(tenant, after=seen[-1].position if seen else 0, limit=7)
        await asyncio.sleep(0)
    await asyncio.gather(*writers)
    assert [each.position for each in seen] == list(range(1, 91))


async def test_counting_anew_finds_the_same(views: Views, tenant: str) -> None:
    moved = flip(2, tenant=tenant)
    await put(
        views, told(1, tenant=tenant), moved, retraction(3, moved), flip(4, tenant=tenant, conversation="b")
    )
    before = await views.conversations(tenant)
    await views.recount()
    assert await views.conversations(tenant) == before
    assert {row.conversation: (row.events, row.flips) for row in before} == {"room": (1, 0), "b": (1, 1)}
