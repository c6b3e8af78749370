"""The finder on fakes: what is sent and kept when something is away, comes again, or is nothing of ours."""

from collections.abc import Mapping, Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from stream.alerts import finder as module
from stream.alerts.finder import Contended, Finder
from stream.alerts.memory import MemoryAlertStore
from stream.alerts.port import Kept
from stream.alerts.vitals import Vitals
from stream.sender import SenderUnavailable
from stream.store.port import ConversationKey, StoreUnavailable
from tests.stream.fakes import MemorySender
from tests.tracker.alert_builders import ALL, Room, fold, logs, minutes
from tracker import alert_events, events
from tracker.alert_rules import BurstRule, FlipRule, Rule
from tracker.alerts import State
from tracker.events import Event

BURST = BurstRule(name="burst", count=2, within=minutes(5))
ROOM = ConversationKey("default", "room-7")


class Stand:
    """A finder with all that it needs."""

    def __init__(self, *rules: Rule, store: MemoryAlertStore | None = None) -> None:
        self.store, self.sender, self.vitals = store or MemoryAlertStore(), MemorySender(), Vitals()
        self.finder = Finder(self.store, self.sender, rules or (BURST,), self.vitals)

    async def take(self, *found: Event) -> None:
        await self.finder.take([events.encode(event) for event in found])

    @property
    def sent(self) -> list[bytes | None]:
        return self.sender.of("alerts")


async def test_alerts_leave_under_their_conversations_key() -> None:
    stand, room, other = Stand(), Room("a/b"), Room("c")
    await stand.take(room.flip(), other.flip(), room.flip())
    [message] = stand.sender.sent
    assert (message.topic, message.key) == ("alerts", b"default/a%2Fb")
    assert msgspec.json.decode(message.value or b"")["data"]["rule"] == "burst"
    assert (stand.vitals.read, dict(stand.vitals.raised)) == (3, {("burst", "warning"): 1})


async def test_nothing_is_kept_before_it_is_sent() -> None:
    stand, room = Stand(), Room()
    flips = [room.flip(), room.flip()]
    stand.sender.down = 1
    with pytest.raises(SenderUnavailable):
        await stand.take(*flips)
    assert await stand.store.load([ROOM]) == [Kept()]
    await stand.take(*flips)
    assert len(stand.sent) == 1


class Breaking(MemoryAlertStore):
    """Ends before it keeps anything, once."""

    broken = False

    async def save(self, changed: Mapping[ConversationKey, Kept]) -> bool:
        if not self.broken:
            self.broken = True
            raise StoreUnavailable("killed")
        return await super().save(changed)


async def test_what_was_sent_and_not_kept_is_sent_again_as_it_was() -> None:
    stand, room = Stand(store=Breaking()), Room()
    flips = [room.flip(), room.flip()]
    with pytest.raises(StoreUnavailable):
        await stand.take(*flips)
    assert stand.vitals.raised.total() == 0
    await stand.take(*flips)
    assert len(stand.sent) == 2
    assert len(set(stand.sent)) == 1


class Rival(MemoryAlertStore):
    """Another process keeps something first, so many times."""

    def __init__(self, events: Sequence[Event], times: int) -> None:
        super().__init__()
        self._events, self._times = events, times

    async def save(self, changed: Mapping[ConversationKey, Kept]) -> bool:
        if self._times:
            self._times -= 1
            [now] = await self.load([ROOM])
            await super().save({ROOM: Kept(fold(self._events, (BURST,), now.state)[0], now.version)})
        return await super().save(changed)


async def test_who_comes_second_finds_that_all_is_done() -> None:
    room = Room()
    flips = [room.flip(), room.flip()]
    stand = Stand(store=Rival(flips, 1))
    await stand.take(*flips)
    assert len(set(stand.sent)) == 1
    [kept] = await stand.store.load([ROOM])
    assert kept == Kept(fold(flips, (BURST,))[0], 1)


async def test_a_state_that_moves_for_ever_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room()
    stand = Stand(store=Rival([room.flip()], module.ATTEMPTS))
    with pytest.raises(Contended):
        await stand.take(room.flip(), room.flip())


async def test_what_is_no_event_is_told_and_skipped() -> None:
    stand, room = Stand(), Room()
    flips = [events.encode(room.flip("somebody")) for _ in range(2)]
    values = [flips[0], None, b"{}", b"\xff", b'{"type": "volteface.something.else"}', flips[1]]
    with capture_logs() as logged:
        await stand.finder.take(values)
    assert len(stand.sent) == 1
    assert stand.vitals.skipped == {"unreadable": 4}
    assert {entry["event"] for entry in logged} == {"alerts.event_skipped", "alert.raised"}
    assert "somebody" not in str(logged)


async def test_a_defect_costs_its_event_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaking(state: State, event: Event, rules: Sequence[Rule]) -> object:
        if event.data.holder == "bad":
            raise ZeroDivisionError
        return detect(state, event, rules)

    detect = module.detect
    monkeypatch.setattr(module, "detect", breaking)
    stand, room = Stand(), Room()
    await stand.take(room.flip("a"), room.flip("bad"), room.flip("b"))
    assert len(stand.sent) == 1
    assert stand.vitals.skipped == {"failed": 1}


async def test_what_changes_nothing_is_not_kept() -> None:
    stand, room = Stand(FlipRule(name="flip", exempt_rooms=("room-*",))), Room()
    await stand.take(room.flip(), room.persisted())
    assert await stand.store.load([ROOM]) == [Kept()]


@given(logs(), st.lists(st.integers(0, 25), max_size=6), st.lists(st.booleans(), min_size=7, max_size=7))
async def test_a_log_cut_anywhere_and_read_twice_gives_the_same(
    log: list[Event], cuts: list[int], twice: list[bool]
) -> None:
    stand, borders = Stand(*ALL), [0, *sorted(cuts), len(log)]
    for again, start, end in zip(twice, borders[:-1], borders[1:], strict=False):
        for _ in range(1 + again):
            await stand.take(*log[start:end])
    state, alerts = fold(log, ALL)
    assert stand.sent == [alert_events.encode(alert) for alert in alerts]
    assert [kept.state for kept in await stand.store.load([ROOM])] == [state]
