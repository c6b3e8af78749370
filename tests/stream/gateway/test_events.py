"""Flips and events: pages, filters, and streams that resume exactly, drop who is slow, end with a word."""

import asyncio
import contextlib
import socket
from typing import Any

import httpx
import pytest
from httpx_sse import aconnect_sse
from msgspec.structs import replace

from stream.accounts.memory import MemoryAccounts
from stream.accounts.port import Scope
from stream.gateway.parts import Limits, Parts
from stream.gateway.problems import Problem
from stream.gateway.subscribing import preferred
from stream.views.memory import MemoryViews
from tests.stream.fakes import until
from tests.stream.gateway.stand import (
    DEADLINE,
    FIRST_KEY,
    START,
    Subscriber,
    client,
    following,
    key_of,
    parts_of,
    put,
    running,
    served,
    told,
)
from tracker.events import EventType, TargetRef
from tracker.observations import Trigger
from tracker.stances import TriggerKind

STREAM = {"Accept": "text/event-stream"}


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


async def sequences(http: httpx.AsyncClient, path: str, **params: Any) -> list[int]:
    answer = await http.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return [int(row["event"]["sequence"]) for row in answer.json()["events"]]


async def test_pages_go_both_ways_and_leave_nothing_out() -> None:
    views = MemoryViews()
    await put(views, *(told(number) for number in range(1, 8)))
    async with served(parts_of(views)) as http:
        assert await sequences(http, "/v1/flips") == [7, 6, 5, 4, 3, 2, 1]
        first = (await http.get("/v1/events", params={"after": 0, "limit": 4})).json()
        assert [row["position"] for row in first["events"]] == [1, 2, 3, 4]
        assert await sequences(http, "/v1/events", after=first["next"], limit=4) == [5, 6, 7]
        newest = (await http.get("/v1/events", params={"limit": 4})).json()
        assert await sequences(http, "/v1/events", before=newest["next"]) == [3, 2, 1]
        assert (await http.get("/v1/events", params={"limit": 10})).json()["next"] is None
        assert first["events"][0]["event"]["type"] == "volteface.stance.flipped"


async def test_a_retraction_shows_on_what_it_takes_back() -> None:
    views, flip = MemoryViews(), told(1)
    back = told(2, EventType.RETRACTED, retracts=flip.id)
    await put(views, flip, back)
    async with served(parts_of(views)) as http:
        rows = (await http.get("/v1/flips", params={"after": 0})).json()["events"]
    assert [row["retracted_by"] for row in rows] == [back.id, None]


_OTHER: dict[str, Any] = {"target": TargetRef("t-2", "whether cats rule")}
_FELT: dict[str, Any] = {"trigger": Trigger(TriggerKind.EMOTIONAL_VALUE, (), (), 0.5)}


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, [1, 2, 3, 4, 5, 6]),
        ({"conversation": "attic"}, [2]),
        ({"holder": "ben"}, [3]),
        ({"target": "t-2"}, [4]),
        ({"trigger": "emotional_value"}, [5]),
        ({"kind": "established"}, [6]),
        ({"kind": ["established", "flipped"], "conversation": "attic"}, [2]),
        ({"holder": "nobody"}, []),
    ],
)
async def test_filters_hold_for_pages_and_for_streams(params: dict[str, Any], expected: list[int]) -> None:
    views = MemoryViews()
    given = [
        told(1), told(2, conversation="attic"), told(3, holder="ben"), told(4, **_OTHER), told(5, **_FELT),
        told(6, EventType.ESTABLISHED),
    ]  # fmt: skip
    async with served(parts_of(views)) as http:
        path = str(http.build_request("GET", "/v1/events", params=params).url.raw_path, "ascii")
        live, later = (Subscriber(str(http.base_url), path) for _ in range(2))
        later.last = "0"
        async with following(live):
            await until(lambda: live.opened)
            await put(views, *given, told(7, holder="end"))
            assert await sequences(http, "/v1/events", after=0, **params) == [
                *expected, *([7] if not params else [])
            ]  # fmt: skip
            async with following(later):  # what it reads comes from the views, the other's from the tail
                await until(lambda: [one.id for one in live.events][: len(expected)] == [*map(str, expected)])
                await until(
                    lambda: [one.id for one in later.events][: len(expected)] == [*map(str, expected)]
                )
    assert all(one.json()["data"]["holder"] != "end" for one in live.events if params)


async def test_flips_alone_are_streamed_with_their_retractions() -> None:
    views, flip = MemoryViews(), told(2)
    async with served(parts_of(views)) as http:
        subscriber = Subscriber(str(http.base_url), "/v1/flips")
        async with following(subscriber):
            await until(lambda: subscriber.opened)
            back = told(3, EventType.RETRACTED, retracts=flip.id)
            await put(views, told(1, EventType.ESTABLISHED), flip, back)
            await until(lambda: len(subscriber.events) == 2)
    assert [one.event for one in subscriber.events] == [
        "volteface.stance.flipped",
        "volteface.stance.retracted",
    ]
    assert [one.id for one in subscriber.events] == ["2", "3"]
    assert subscriber.events[0].json()["id"] == flip.id


async def _restarts(subscribers: int, batches: int, a_batch: int) -> None:
    """Subscribers over three lives of a server, the second one ended while events come."""
    views, port, whole = MemoryViews(), free_port(), 3 * batches * a_batch
    given = [[told(batch * a_batch + at + 1) for at in range(a_batch)] for batch in range(3 * batches)]
    everybody = [Subscriber(f"http://127.0.0.1:{port}") for _ in range(subscribers)]
    async with following(*everybody):
        for life in range(3):
            async with running(parts_of(views), port):
                await until(lambda: all(one.opened > life for one in everybody), 4 * DEADLINE)  # noqa: B023
                for batch in given[life * batches : (life + 1) * batches]:
                    await put(views, *batch)
                    await asyncio.sleep(0)
                if life == 2:
                    await until(lambda: all(len(one.events) >= whole for one in everybody), 4 * DEADLINE)
    expected = [str(number + 1) for number in range(whole)]
    for one in everybody:
        assert [event.id for event in one.events] == expected
        assert [word.json().get("reason") for word in one.words if word.event == "volteface.dropped"] == [
            "closing"
        ] * 3


async def test_every_event_comes_once_over_two_restarts() -> None:
    await _restarts(subscribers=20, batches=5, a_batch=20)


@pytest.mark.skipif("not config.getoption('full')", reason="200 subscribers: with --full")
async def test_every_event_comes_once_to_two_hundred() -> None:
    await _restarts(subscribers=200, batches=10, a_batch=50)


async def test_a_stream_without_a_position_begins_now() -> None:
    views = MemoryViews()
    await put(views, told(1), told(2))
    async with (
        served(parts_of(views)) as http,
        aconnect_sse(http, "GET", "/v1/events", headers=STREAM) as source,
    ):
        words = source.aiter_sse()
        opened = await anext(words)
        assert (opened.event, opened.id, opened.json()) == ("volteface.open", "2", {"position": 2})
        assert source.response.headers["cache-control"] == "no-store"
        await put(views, told(3))
        assert (await anext(words)).id == "3"


@pytest.mark.parametrize("late", [False, True], ids=["from the tail", "from the views"])
async def test_what_cannot_be_read_is_passed_and_ends_nobodys_stream(late: bool) -> None:
    views = MemoryViews()
    foreign = replace(told(1), body=told(1).body.replace(b'"run":"live"', b'"run":"else"'))
    withdrawn = replace(
        told(2), type="volteface.alert.withdrawn", body=b'{"type":"volteface.alert.withdrawn"}'
    )
    given = [foreign, withdrawn, told(3)]
    if late:
        await put(views, *given)
    headers = {**STREAM, "Last-Event-ID": "0"}
    async with (
        served(parts_of(views)) as http,
        aconnect_sse(http, "GET", "/v1/events", headers=headers) as source,
    ):
        words = source.aiter_sse()
        assert (await anext(words)).event == "volteface.open"
        if not late:
            await put(views, *given)
        assert (await anext(words)).id == "3"


async def test_a_position_that_never_was_begins_at_what_is_kept_and_says_so() -> None:
    views = MemoryViews()
    await put(views, told(1))
    headers = STREAM | {"Last-Event-ID": "5000"}
    async with (
        served(parts_of(views)) as http,
        aconnect_sse(http, "GET", "/v1/events", headers=headers) as source,
    ):
        words = source.aiter_sse()
        found = [await anext(words) for _ in range(3)]
    assert [one.event for one in found] == ["volteface.open", "volteface.gap", "volteface.stance.flipped"]
    assert found[1].json()["asked"] == 5000 and found[1].id == "0"


@pytest.mark.parametrize("given", ["x", "-1", "1.5", "٣", str(2**53), "9" * 400])
async def test_an_id_that_is_none_is_a_problem(given: str) -> None:
    async with served(parts_of()) as http:
        headers = STREAM | {"Last-Event-ID": given.encode()}
        answer = await http.get("/v1/events", headers=headers)  # type: ignore[arg-type]
    assert (answer.status_code, answer.json()["field"]) == (400, "header.last-event-id")


async def test_silence_is_filled_with_heartbeats() -> None:
    parts = parts_of(limits=Limits(heartbeat=0.05))
    async with served(parts) as http, http.stream("GET", "/v1/events", headers=STREAM) as response:
        lines = response.aiter_lines()
        async with asyncio.timeout(DEADLINE):
            seen = 0
            async for line in lines:
                seen += line == ": heartbeat"
                if seen == 3:
                    break


def sent(parts: Parts) -> float:
    return parts.metrics.registry.get_sample_value("volteface_gateway_events_total") or 0.0


def ended(parts: Parts, reason: str) -> float:
    name = "volteface_gateway_streams_ended_total"
    return parts.metrics.registry.get_sample_value(name, {"reason": reason}) or 0.0


async def test_heartbeats_are_no_events() -> None:
    views, limits = MemoryViews(), Limits(heartbeat=0.05)
    async with served(parts_of(views, limits=limits)) as http:
        subscriber = Subscriber(str(http.base_url))
        async with following(subscriber):
            await until(lambda: subscriber.opened)
            for number in range(1, 4):
                await put(views, told(number))
                await until(lambda: subscriber.events and subscriber.events[-1].id == str(number))  # noqa: B023
                await asyncio.sleep(0.15)  # three heartbeats
    assert [one.id for one in subscriber.events] == ["1", "2", "3"]


async def test_who_is_slow_is_told_and_misses_nothing() -> None:
    views = MemoryViews()
    parts = parts_of(views, limits=Limits(slow=0.3, stuck=30.0))
    large = [told(number, rationale="w" * 8000) for number in range(1, 2001)]
    async with running(parts) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]), limit=2**14)
        head = f"GET /v1/events?after=0 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {FIRST_KEY}\r\n"
        writer.write(f"{head}Accept: text/event-stream\r\n\r\n".encode())
        await put(views, *large)
        await until(lambda: sent(parts))
        before = -1.0
        while before != (before := sent(parts)):  # noqa: ASYNC110 - until the system's buffers are full
            await asyncio.sleep(0.5)
        assert before < 2000
        async with asyncio.timeout(DEADLINE):
            text = await _rest(reader, b"volteface.dropped")
        assert b'"reason":"slow"' in text
        await until(lambda: ended(parts, "slow") == 1)
        writer.close()
        got = text.count(b"event: volteface.stance.flipped")
        position = int(text.rpartition(b'"position":')[2].partition(b"}")[0])
        assert position == got < 2000
        async with client(url) as http:
            assert (await sequences(http, "/v1/events", after=position, limit=1)) == [position + 1]


async def _rest(reader: asyncio.StreamReader, last: bytes) -> bytes:
    """What comes up to a word and the end of its event."""
    text = b""
    while last not in text[-20_000:] or not text.rpartition(last)[2].count(b"\n\n"):
        chunk = await reader.read(2**20)
        assert chunk, "the stream ended without its last word"
        text += chunk
    return text


async def test_who_takes_nothing_at_all_is_cut_off() -> None:
    views = MemoryViews()
    parts = parts_of(views, limits=Limits(slow=0.1, stuck=0.4))
    await put(views, *(told(number, rationale="w" * 8000) for number in range(1, 2001)))
    async with running(parts) as url:
        _, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]), limit=2**14)
        head = f"GET /v1/events?after=0 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {FIRST_KEY}\r\n"
        writer.write(f"{head}Accept: text/event-stream\r\n\r\n".encode())
        await until(parts.streams.total)
        await until(lambda: not parts.streams.total(), DEADLINE)
        writer.close()


async def test_a_revoked_keys_stream_ends() -> None:
    accounts = MemoryAccounts()
    key = await key_of(accounts, "acme", Scope.EVENTS_READ)
    parts = parts_of(accounts=accounts, limits=Limits(heartbeat=0.05), remembered=0.0)
    async with (
        running(parts) as url,
        client(url, key) as http,
        aconnect_sse(http, "GET", "/v1/events", headers=STREAM) as source,
    ):
        words = source.aiter_sse()
        await anext(words)
        await accounts.revoke((await accounts.keys())[0].id, START)
        async with asyncio.timeout(DEADLINE):
            last = [word async for word in words][-1]
    assert (last.event, last.json()["reason"]) == ("volteface.dropped", "revoked")


async def test_a_key_has_so_many_streams_at_most() -> None:
    parts = parts_of(limits=Limits(streams_a_key=2))
    async with served(parts) as http, contextlib.AsyncExitStack() as stack:
        open_ones = []
        for _ in range(2):
            source = await stack.enter_async_context(aconnect_sse(http, "GET", "/v1/flips", headers=STREAM))
            open_ones.append(source.aiter_sse())  # one that is let go of closes its stream
            await anext(open_ones[-1])
        third = await http.get("/v1/flips", headers=STREAM)
        assert (third.status_code, "Retry-After" in third.headers) == (429, True)
        await stack.aclose()
        await until(lambda: not parts.streams.total())
        async with aconnect_sse(http, "GET", "/v1/flips", headers=STREAM) as again:
            assert (await anext(again.aiter_sse())).event == "volteface.open"


async def test_who_is_forgotten_is_streamed_to_nobody_who_comes_later() -> None:
    views = MemoryViews()
    async with served(parts_of(views)) as http:
        early, late = (Subscriber(str(http.base_url)) for _ in range(2))
        late.last = "0"
        async with following(early):
            await until(lambda: early.opened)
            await put(views, told(1), told(2, holder="ben"))
            await until(lambda: len(early.events) == 2)
            await put(views, told(3, EventType.FORGOTTEN))
            await until(lambda: len(early.events) == 3)
            async with following(late):
                await until(lambda: late.events and late.events[-1].id == "3")
    assert [one.id for one in late.events] == ["2", "3"]


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("*/*", "application/json"),
        ("text/event-stream", "text/event-stream"),
        ("TEXT/Event-Stream; q=0.5", "text/event-stream"),
        ("application/json, text/event-stream", "application/json"),
        ("application/json;q=0.2, text/*;q=0.3", "text/event-stream"),
        ("text/html, */*;q=0.1", "application/json"),
    ],
)
def test_what_is_preferred(accept: str, expected: str) -> None:
    assert preferred(accept) == expected


@pytest.mark.parametrize("accept", ["text/html", "application/json;q=0", "", "text/event-stream;q=x"])
def test_what_is_not_served(accept: str) -> None:
    with pytest.raises(Problem):
        preferred(accept)
