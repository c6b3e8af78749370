"""Conversations, holders, targets and trajectories, page by page, and the probes."""

import datetime as dt
from typing import Any

import httpx
import pytest

from stream.database import DatabaseUnavailable
from stream.gateway.pages import cursor
from stream.views.memory import MemoryViews
from stream.views.port import Headed, Held
from tests.stream.gateway.stand import START, parts_of, put, served, told
from tracker.conversation import Header
from tracker.machine import StanceState
from tracker.stances import Stance
from tracker.targets import Target

SECOND = dt.timedelta(seconds=1)
TARGETS = (Target("t-1", "whether tea beats coffee"), Target("t-2", "whether cats rule"))


def headed(room: str, seconds: int) -> Headed:
    header = Header(version=1, newest=START + seconds * SECOND, targets=TARGETS)
    return Headed(tenant="default", conversation=room, header=header)


def held(room: str, holder: str, target: str = "t-1", stance: Stance = Stance.SUPPORT) -> Held:
    state = StanceState(stance, "m1", 0.75, 2)
    return Held(tenant="default", conversation=room, holder=holder, target=target, state=state, version=1)


async def _paged(http: httpx.AsyncClient, path: str, name: str, **params: Any) -> list[dict[str, Any]]:
    """All rows, two a page."""
    found, following = list[dict[str, Any]](), None
    for _ in range(20):
        given = params | {"limit": 2} | ({"cursor": following} if following else {})
        page = (await http.get(path, params=given)).json()
        found += page[name]
        if (following := page["next"]) is None:
            return found
    raise AssertionError("no end")


async def test_conversations_come_page_by_page_the_latest_first() -> None:
    views, rooms = MemoryViews(), ["a", "b/ö", "c", "d", "e"]
    await put(views, *(headed(room, at) for at, room in enumerate(rooms)), told(1, conversation="c"))
    async with served(parts_of(views)) as http:
        found = await _paged(http, "/v1/conversations", "conversations")
        assert [row["conversation"] for row in found] == ["e", "d", "c", "b/ö", "a"]
        assert (found[2]["events"], found[2]["flips"]) == (1, 1)
        one = (await http.get("/v1/conversations/b%2F%C3%B6")).json()
        assert (one["conversation"], one["active_at"]) == ("b/ö", "2026-11-29T20:00:01Z")
        assert [row["target"] for row in one["targets"]] == ["t-1", "t-2"]
        missing = await http.get("/v1/conversations/zzz")
        assert (missing.status_code, missing.json()["field"]) == (404, "path.conversation")


async def test_holders_are_found_by_room_and_by_name() -> None:
    views = MemoryViews()
    given = [held(room, name) for room in ("attic", "room") for name in ("ann", "ben/x", "cat")]
    await put(views, headed("room", 1), headed("attic", 2), *given)
    async with served(parts_of(views)) as http:
        found = await _paged(http, "/v1/holders", "holders")
        assert [(row["conversation"], row["holder"]) for row in found] == [
            (room, name) for room in ("attic", "room") for name in ("ann", "ben/x", "cat")
        ]
        assert len(await _paged(http, "/v1/holders", "holders", conversation="room")) == 3
        for path in ("/v1/holders/ben%2Fx", "/v1/holders?holder=ben/x"):
            rows = (await http.get(path)).json()["holders"]
            assert [row["conversation"] for row in rows] == ["attic", "room"]
        assert rows[0] == {
            "conversation": "attic", "holder": "ben/x", "target": "t-1", "stance": "support", "turn": "m1",
            "confidence": 0.75, "flips": 2, "pinned": None,
        }  # fmt: skip
        targets = (await http.get("/v1/targets?conversation=room")).json()["targets"]
        assert targets[0]["holders"] == {"support": 3} and targets[1]["holders"] == {}


async def test_a_trajectory_comes_step_by_step() -> None:
    views = MemoryViews()
    await put(views, *(told(number) for number in range(1, 6)), told(9, holder="ben"))
    where = {"conversation": "room", "holder": "ann", "target": "t-1"}
    async with served(parts_of(views)) as http:
        found = await _paged(http, "/v1/trajectories", "steps", **where)
        assert [step["sequence"] for step in found] == [1, 2, 3, 4, 5]
        assert (found[0]["before"], found[0]["after"], found[0]["turn"]) == ("support", "oppose", "m1")
        answer = await http.get("/v1/trajectories", params={"conversation": "room"})
        assert answer.status_code == 422
        assert [each["field"] for each in answer.json()["errors"]] == ["query.holder", "query.target"]


@pytest.mark.parametrize("given", ["x", "é", cursor([1, 2]), cursor("room"), "====", "", "\x00"])
@pytest.mark.parametrize("path", ["/v1/conversations", "/v1/holders"])
async def test_a_cursor_that_is_none_is_a_problem(path: str, given: str) -> None:
    async with served(parts_of()) as http:
        answer = await http.get(path, params={"cursor": given})
    assert (answer.status_code, answer.json()["field"]) == (422, "query.cursor")


@pytest.mark.parametrize("limit", ["0", "1001", "x", "-1", "9" * 30])
async def test_a_page_has_its_limits(limit: str) -> None:
    async with served(parts_of()) as http:
        answer = await http.get("/v1/events", params={"limit": limit})
    assert (answer.status_code, answer.json()["field"]) == (422, "query.limit")


class Away(MemoryViews):
    async def latest(self, tenant: str) -> int:
        raise DatabaseUnavailable("away")


async def test_the_probes_ask_for_no_key() -> None:
    async with served(parts_of(), None) as http:
        assert (await http.get("/livez")).json()["status"] == "alive"
        assert (await http.get("/readyz")).json()["status"] == "ready"
        await http.get("/v1/conversations/somebody")
        text = (await http.get("/metrics")).text
    assert 'route="/v1/conversations/{conversation:path}",status="401"' in text
    assert "somebody" not in text
    async with served(parts_of(Away()), None) as http:
        answer = await http.get("/readyz")
        assert (answer.status_code, answer.json()["type"]) == (503, "urn:volteface:problem:database_away")
        assert (await http.get("/livez")).status_code == 200
