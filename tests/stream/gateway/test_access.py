"""Keys, scopes, tenants and rates: nobody gets what is not theirs."""

from typing import Any

import httpx
import pytest

from stream.accounts.memory import MemoryAccounts
from stream.accounts.port import Key, Scope
from stream.database import DatabaseUnavailable
from stream.gateway.buckets import Buckets, Rate
from stream.gateway.keyring import Keyring
from stream.gateway.parts import Limits
from stream.views.memory import MemoryViews
from stream.views.port import Headed, Held
from tests.stream.fakes import until
from tests.stream.gateway.stand import (
    FIRST_KEY,
    START,
    Kept,
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
from tracker import keys
from tracker.conversation import Header
from tracker.machine import StanceState
from tracker.records import DeclareTarget, EraseHolder, OverrideStance
from tracker.stances import Stance
from tracker.targets import Target

PROBLEM = "application/problem+json"
TARGET = {"conversation": "room", "proposition": "whether tea beats coffee"}
OVERRIDE = {"conversation": "room", "reason": "misread", "to": "oppose", "turn": "m1"}
ERASURE = {"conversation": "room", "holder": "ann"}
_SAID = {"turn": "m", "holder": "ann", "text": "Tea!"}
TURN = {"conversation": "room", "sent_at": "2026-11-29T20:14:05Z"} | _SAID
CHANGES = [("turns", TURN), ("targets", TARGET), ("corrections", OVERRIDE), ("erasures", ERASURE)]

ROUTES: list[tuple[str, str, Scope, Any]] = [
    ("POST", "/v1/turns", Scope.TURNS_WRITE, TURN),
    ("GET", "/v1/flips", Scope.EVENTS_READ, None),
    ("GET", "/v1/events", Scope.EVENTS_READ, None),
    ("GET", "/v1/conversations", Scope.EVENTS_READ, None),
    ("GET", "/v1/conversations/room", Scope.EVENTS_READ, None),
    ("GET", "/v1/holders", Scope.EVENTS_READ, None),
    ("GET", "/v1/holders/ann", Scope.EVENTS_READ, None),
    ("GET", "/v1/trajectories?conversation=room&holder=ann&target=t-1", Scope.EVENTS_READ, None),
    ("GET", "/v1/targets?conversation=room", Scope.EVENTS_READ, None),
    ("POST", "/v1/targets", Scope.CORRECTIONS_WRITE, TARGET),
    ("DELETE", "/v1/targets/t-1?conversation=room", Scope.CORRECTIONS_WRITE, None),
    ("POST", "/v1/corrections", Scope.CORRECTIONS_WRITE, OVERRIDE),
    ("POST", "/v1/erasures", Scope.ADMIN, ERASURE),
]


async def _views(tenant: str) -> MemoryViews:
    views = MemoryViews()
    header = Header(version=1, newest=START, targets=(Target("t-1", "whether tea beats coffee"),))
    state = StanceState(Stance.OPPOSE, "m1", 0.8, 1)
    await put(
        views,
        told(1, tenant=tenant),
        Headed(tenant=tenant, conversation="room", header=header),
        Held(tenant=tenant, conversation="room", holder="ann", target="t-1", state=state, version=1),
    )
    return views


async def test_every_route_asks_for_its_scope() -> None:
    accounts, views = MemoryAccounts(), await _views("acme")
    async with running(parts_of(views, accounts)) as url:
        for method, path, needed, body in ROUTES:
            for scope in Scope:
                async with client(url, await key_of(accounts, "acme", scope)) as http:
                    answer = await http.request(method, path, json=body)
                if scope in {needed, Scope.ADMIN}:
                    assert answer.status_code in {200, 202}, (path, answer.text)
                else:
                    assert answer.status_code == 403, (path, scope)
                    assert needed in answer.json()["remedy"]
                    assert answer.headers["content-type"] == PROBLEM


@pytest.mark.parametrize("given", [None, "Basic YTpi", "Bearer", "Bearer x", "Bearer vf_0_0", "x"])
async def test_without_a_key_that_holds_nothing_is_answered(given: str | None) -> None:
    async with served(parts_of(), None) as http:
        for method, path, _, body in ROUTES:
            headers = {"Authorization": given} if given else {}
            answer = await http.request(method, path, json=body, headers=headers)
            assert (answer.status_code, answer.headers["content-type"]) == (401, PROBLEM)
            assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_key_with_another_secret_does_not_hold() -> None:
    accounts = MemoryAccounts()
    key = await key_of(accounts, "acme")
    other = await key_of(accounts, "acme")
    forged = f"{key[:20]}{other[20:]}"
    async with running(parts_of(accounts=accounts)) as url:
        for text, expected in ((key, 200), (forged, 401), (key + "A", 401), (key, 200)):
            async with client(url, text) as http:
                assert (await http.get("/v1/events")).status_code == expected


async def test_a_tenant_sees_nothing_of_another() -> None:
    accounts, views, kept = MemoryAccounts(), await _views("acme"), Kept()
    mine, theirs = await key_of(accounts, "acme"), await key_of(accounts, "rival")
    async with running(parts_of(views, accounts, kept)) as url, client(url, theirs) as http:
        spy, owner = (
            Subscriber(url, "/v1/events?after=0", theirs),
            Subscriber(url, "/v1/events?after=0", mine),
        )
        async with following(spy, owner):
            await until(lambda: spy.opened and owner.events)
            await put(views, told(2, tenant="acme"), told(1, tenant="rival", holder="rob"))
            await until(lambda: spy.events and len(owner.events) == 2)
        assert [one.json()["data"]["tenant"] for one in spy.events] == ["rival"]
        assert {one.json()["data"]["tenant"] for one in owner.events} == {"acme"}
        for path in ("/v1/events", "/v1/flips?conversation=room", "/v1/events?holder=ann&after=0"):
            rows = (await http.get(path)).json()["events"]
            assert {row["event"]["data"]["tenant"] for row in rows} <= {"rival"}
        assert (await http.get("/v1/holders")).json()["holders"] == []
        assert (await http.get("/v1/holders/ann")).json()["holders"] == []
        assert (await http.get("/v1/targets?conversation=attic")).status_code == 404
        assert (await http.delete("/v1/targets/t-1?conversation=room")).status_code == 404
        way = await http.get("/v1/trajectories?conversation=room&holder=ann&target=t-1")
        assert way.json()["steps"] == []
        for path, body in CHANGES:
            assert (await http.post(f"/v1/{path}", json=body)).status_code == 202
            refused = await http.post(f"/v1/{path}", json=body | {"tenant": "acme"})
            assert refused.status_code == 422
        assert {record.tenant for record in kept.records} == {"rival"}


async def test_another_tenants_position_opens_nothing() -> None:
    accounts, views = MemoryAccounts(), MemoryViews()
    await put(views, *(told(number, tenant="acme") for number in range(1, 6)), told(1, tenant="rival"))
    spy = Subscriber("", "/v1/events", await key_of(accounts, "rival"))
    spy.last = "5"
    async with running(parts_of(views, accounts)) as spy.url, following(spy):
        await until(lambda: spy.events)
    assert [one.json()["data"]["tenant"] for one in spy.events] == ["rival"]


async def test_the_settings_key_is_the_default_tenants_with_every_scope() -> None:
    keyring = Keyring(MemoryAccounts(), FIRST_KEY)
    access = await keyring.access(FIRST_KEY)
    assert access and access.tenant == "default" and all(access.may(scope) for scope in Scope)
    assert await keyring.access(FIRST_KEY + "x") is None
    assert await Keyring(MemoryAccounts(), None).access("") is None


class Counting(MemoryAccounts):
    def __init__(self) -> None:
        super().__init__()
        self.asked, self.away = 0, False

    async def find(self, ident: str) -> Key | None:
        self.asked += 1
        if self.away:
            raise DatabaseUnavailable("away")
        return await super().find(ident)


async def test_a_key_is_remembered_for_some_seconds() -> None:
    accounts, now = Counting(), [0.0]
    keyring = Keyring(accounts, remembered=5.0, clock=lambda: now[0])
    text = await key_of(accounts, "acme")
    assert await keyring.access(text) and await keyring.access(text)
    assert accounts.asked == 1
    await accounts.revoke((await accounts.keys())[0].id, START)
    accounts.away = True
    assert await keyring.access(text)
    now[0] = 5.1
    with pytest.raises(DatabaseUnavailable):
        await keyring.access(text)
    accounts.away = False
    assert await keyring.access(text) is None


async def test_without_the_database_no_key_can_be_judged() -> None:
    accounts = Counting()
    text = await key_of(accounts, "acme")
    accounts.away = True
    async with served(parts_of(accounts=accounts), text) as http:
        answer = await http.get("/v1/events")
    assert (answer.status_code, answer.headers["content-type"]) == (503, PROBLEM)
    assert int(answer.headers["Retry-After"]) >= 1


async def test_who_asks_too_often_is_told_when_to_come_again() -> None:
    accounts = MemoryAccounts()
    one, other = await key_of(accounts, "acme"), await key_of(accounts, "acme")
    limits = Limits(rate=Rate(per_second=0.2, burst=3))
    async with running(parts_of(accounts=accounts, limits=limits)) as url:
        async with client(url, one) as http:
            answers = [await http.get("/v1/events") for _ in range(4)]
        async with client(url, other) as http:
            assert (await http.get("/v1/events")).status_code == 200
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[3].headers["content-type"] == PROBLEM
    assert 1 <= int(answers[3].headers["Retry-After"]) <= 5


def test_a_bucket_fills_again() -> None:
    now = [0.0]
    buckets = Buckets(Rate(per_second=2.0, burst=2), lambda: now[0])
    assert [buckets.take("a") for _ in range(3)] == [0.0, 0.0, 0.5]
    assert buckets.take("b") == 0.0
    now[0] = 0.5
    assert buckets.take("a") == 0.0
    assert buckets.take("a") > 0
    now[0] = 100.0
    assert [buckets.take("a") > 0 for _ in range(3)] == [False, False, True]


async def test_what_changes_a_conversation_is_a_record_on_its_log() -> None:
    accounts, kept, views = MemoryAccounts(), Kept(), await _views("acme")
    key = await key_of(accounts, "acme", principal="mia the moderator")
    pin = {"conversation": "room", "reason": "said so", "to": "support", "holder": "ann", "target": "t-1"}
    async with served(parts_of(views, accounts, kept), key) as http:
        declared = await _post(http, "targets", TARGET | {"replaces": "t-1"})
        retired = await http.delete("/v1/targets/t-1", params={"conversation": "room"})
        pinned = await _post(
            http, "corrections", pin | {"expires_at": "2026-12-01T12:00:00+01:00", "id": "c1"}
        )
        lifted = await _post(http, "corrections", pin | {"to": None})
        erased = await _post(http, "erasures", ERASURE)
    assert declared["target"] == keys.target_id("acme", "room", "whether tea beats coffee")
    declare, retire, override, lift, erase = kept.records
    assert isinstance(declare, DeclareTarget) and (declare.id, declare.replaces) == (declared["id"], "t-1")
    assert isinstance(retire, DeclareTarget) and (retire.status, retire.id) == (
        "retired",
        retired.json()["id"],
    )
    assert isinstance(override, OverrideStance) and isinstance(lift, OverrideStance)
    assert (override.by, override.id, pinned["id"]) == ("mia the moderator", "c1", "c1")
    assert override.expires_at and override.expires_at.isoformat() == "2026-12-01T11:00:00+00:00"
    assert (lift.to, lift.id) == (None, lifted["id"])
    assert isinstance(erase, EraseHolder) and (erase.holder, erase.id) == ("ann", erased["id"])


async def _post(http: httpx.AsyncClient, path: str, body: object, **headers: str) -> Any:
    answer = await http.post(f"/v1/{path}", json=body, headers=headers)
    assert answer.status_code == 202, answer.text
    return answer.json()


async def test_an_idempotency_key_makes_one_record_of_two_requests() -> None:
    kept = Kept()
    async with served(parts_of(sender=kept)) as http:
        same = {"Idempotency-Key": "k"}
        for path, body in (("targets", TARGET), ("corrections", OVERRIDE), ("erasures", ERASURE)):
            first, second = [await _post(http, path, body, **same) for _ in range(2)]
            assert first == second
            assert (await _post(http, path, body))["id"] != first["id"]
    assert len({record.id for record in kept.records}) == 6


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("targets", {"conversation": "room"}, "proposition"),
        ("targets", TARGET | {"proposition": ""}, "proposition"),
        ("targets", TARGET | {"more": 1}, "more"),
        ("targets", TARGET | {"proposition": "é" * 600}, "proposition"),
        ("corrections", OVERRIDE | {"holder": "ann"}, "turn"),
        ("corrections", {**OVERRIDE, "turn": None}, "turn"),
        ("corrections", OVERRIDE | {"to": "maybe"}, "to"),
        ("corrections", {"conversation": "room", "reason": "r", "turn": "m"}, "to"),
        ("corrections", OVERRIDE | {"expires_at": "2026-12-01T12:00:00"}, "expires_at"),
        ("corrections", OVERRIDE | {"expires_at": "2026-12-01T12:00:00Z"}, "expires_at"),
        ("corrections", OVERRIDE | {"turn": None, "holder": "a", "target": "t",
                                    "expires_at": "9999-12-31T23:59:59-10:00"}, "expires_at"),
        ("erasures", {"conversation": "room", "holder": 5}, "holder"),
        ("erasures", {"conversation": "room", "holder": "secret" * 100}, "holder"),
        ("erasures", [], "body"),
    ],
)  # fmt: skip
async def test_a_wrong_body_is_a_problem_that_names_the_field(path: str, body: Any, field: str) -> None:
    kept = Kept()
    async with served(parts_of(sender=kept)) as http:
        answer = await http.post(f"/v1/{path}", json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (422, PROBLEM)
    problem = answer.json()
    assert problem["field"] == field and problem["remedy"] and problem["type"].startswith("urn:volteface:")
    assert "secret" not in answer.text and not kept.records


async def test_nothing_changes_while_the_broker_is_away() -> None:
    kept = Kept()
    kept.go.clear()
    async with served(parts_of(sender=kept, seconds=0.05)) as http:
        for path, body in (("targets", TARGET), ("corrections", OVERRIDE), ("erasures", ERASURE)):
            answer = await http.post(f"/v1/{path}", json=body)
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/v1/nothing", 404), ("PUT", "/v1/turns", 405), ("GET", "/v1/turns", 405), ("GET", "/", 404)],
)
async def test_other_addresses_are_problems(method: str, path: str, status: int) -> None:
    async with served(parts_of()) as http:
        answer = await http.request(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)
    assert answer.json()["status"] == status


async def test_a_fault_of_ours_says_nothing_of_its_values() -> None:
    class Broken(MemoryViews):
        async def latest(self, tenant: str) -> int:
            raise ValueError("a secret")

    async with served(parts_of(Broken())) as http:
        answer = await http.get("/v1/events", headers={"Accept": "text/event-stream"})
        assert (answer.status_code, answer.headers["content-type"]) == (500, PROBLEM)
        assert "secret" not in answer.text
        assert (await http.get("/livez")).status_code == 200
