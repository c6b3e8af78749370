"""Pages by key: whatever their size, one after the other they are the whole."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream.views.port import Batch, Entry, Filter, Views
from tests.stream.views.telling import flip, headed, held, told
from tracker.events import EventType

ROOMS, PEOPLE, TARGETS = ("a", "b", "b/c"), ("ann", "bo", "Ä\x00"), ("t-1", "t-2")
ALL = 1000

names = st.fixed_dictionaries(
    {
        "conversation": st.sampled_from(ROOMS),
        "holder": st.sampled_from(PEOPLE),
        "target": st.sampled_from(TARGETS),
    }
)
kinds = st.sampled_from([EventType.ESTABLISHED, EventType.FLIPPED, EventType.PERSISTED])
filters = st.builds(
    Filter,
    conversation=st.none() | st.sampled_from(ROOMS),
    holder=st.none() | st.sampled_from(PEOPLE),
    target=st.none() | st.sampled_from(TARGETS),
    types=st.frozensets(kinds, max_size=2),
    trigger=st.none() | st.just("factual_logical"),
    flips=st.booleans(),
)
told_things = st.lists(st.tuples(names, kinds), max_size=25)
examples = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


async def walked(page: Callable[[Any], Awaitable[Sequence[Any]]], key: Callable[[Any], Any]) -> list[Any]:
    """All pages, one behind the other."""
    found, behind = list[Any](), None
    while rows := await page(behind):
        found += rows
        behind = key(rows[-1])
    return found


async def filled(views: Views, things: list[tuple[dict[str, str], EventType]]) -> str:
    """A fresh tenant's name, with what was told there and what another tenant holds of the same."""
    tenant = f"tenant-{uuid4().hex[:12]}"
    for owner in (tenant, f"{tenant}-other"):
        entries: list[Entry] = []
        for number, (name, kind) in enumerate(things, 1):
            make = flip if kind is EventType.FLIPPED else told
            event = (
                make(number, tenant=owner, **name)
                if make is flip
                else told(number, kind, tenant=owner, **name)
            )
            state = held(number, tenant=owner, **name)
            head = headed(number, float(number % 4), tenant=owner, conversation=name["conversation"])
            entries += [event, state, head]
        await views.put(Batch(entries))
    return tenant


@examples
@given(things=told_things, where=filters, size=st.integers(1, 7))
async def test_events_either_way(
    any_views: Views, things: list[tuple[dict[str, str], EventType]], where: Filter, size: int
) -> None:
    tenant = await filled(any_views, things)
    whole = await any_views.events(tenant, where, after=0, limit=ALL)
    expected = [
        number
        for number, (name, kind) in enumerate(things, 1)
        if all(getattr(where, field) in {None, value} for field, value in name.items())
        and (not where.types or kind in where.types)
        and ((where.trigger is None and not where.flips) or kind is EventType.FLIPPED)
    ]
    assert [each.position for each in whole] == expected
    forth = await walked(
        lambda behind: any_views.events(tenant, where, after=behind or 0, limit=size),
        lambda row: row.position,
    )
    back = await walked(
        lambda behind: any_views.events(tenant, where, before=behind, limit=size), lambda row: row.position
    )
    assert forth == whole == back[::-1]


@examples
@given(things=told_things, size=st.integers(1, 4))
async def test_conversations_holders_and_trajectories(
    any_views: Views, things: list[tuple[dict[str, str], EventType]], size: int
) -> None:
    tenant = await filled(any_views, things)
    rooms = await walked(
        lambda behind: any_views.conversations(tenant, behind=behind, limit=size), lambda row: row.activity
    )
    assert rooms == await any_views.conversations(tenant, limit=ALL)
    assert {row.conversation for row in rooms} == {name["conversation"] for name, _ in things}
    held_by = await walked(
        lambda behind: any_views.holders(tenant, behind=behind, limit=size), lambda row: row.key
    )
    assert held_by == await any_views.holders(tenant, limit=ALL)
    keys = {(name["conversation"], name["holder"], name["target"]) for name, _ in things}
    assert [row.key for row in held_by] == sorted(keys)
    points = await walked(
        lambda behind: any_views.trajectory(tenant, "a", "ann", "t-1", behind=behind, limit=size),
        lambda row: row.key,
    )
    wanted = {"conversation": "a", "holder": "ann", "target": "t-1"}
    own = [number for number, (name, _) in enumerate(things, 1) if name == wanted]
    assert [point.sequence for point in points] == own
