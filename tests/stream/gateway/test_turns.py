"""`POST /v1/turns`: records to the real broker, answers record by record, and what is refused."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from stream import topics
from stream.accounts.memory import MemoryAccounts
from stream.accounts.port import Scope
from stream.embedded import EmbeddedBroker
from stream.gateway import turns
from stream.gateway.parts import Limits
from stream.sender import Sender, SenderUnavailable
from stream.settings import Settings
from stream.tenants import Tenant, Tenants
from tests.stream.gateway.stand import FIRST_KEY, Kept, client, key_of, parts_of, running, served, standing
from tracker import parsing, pseudonyms
from tracker.records import ClearTurns, CreateTurn, Refused, record_id

PROBLEM = "application/problem+json"


def turn(name: str = "m1", **rest: Any) -> dict[str, Any]:
    given = {"conversation": "room", "turn": name, "holder": "ann", "text": "Tea!"}
    return given | {"sent_at": "2026-11-29T20:14:05Z"} | rest


@pytest.fixture(scope="module")
async def kept() -> Kept:
    return Kept()


@pytest.fixture(scope="module")
async def http(kept: Kept) -> AsyncIterator[httpx.AsyncClient]:
    async with served(parts_of(sender=kept, seconds=1.0, limits=Limits(records=50))) as made:
        yield made


async def test_turns_stand_in_the_topic_under_their_key(
    tansu_broker: EmbeddedBroker, topic_prefix: str
) -> None:
    settings = Settings(
        broker=f"kafka://{tansu_broker.bootstrap}", topic_prefix=topic_prefix, partitions=2,
        broker_idempotence=False,
    )  # fmt: skip
    await topics.ensure(settings)
    accounts, sender = MemoryAccounts(), Sender(settings)
    key = await key_of(accounts, "acme/ä", Scope.TURNS_WRITE)
    given = [turn(f"m{number}", conversation=f"room/{number % 3}") for number in range(12)]
    async with running(parts_of(accounts=accounts, sender=sender)) as url, client(url, key) as http:
        one = await http.post("/v1/turns", json=given[0])
        many = await http.post("/v1/turns", json=given[1:])
    await sender.close()
    assert (one.status_code, many.status_code) == (202, 202)
    assert one.json()["records"] == [
        {"index": 0, "status": "accepted", "id": "create/m0/0", "conversation": "room/0"}
    ]
    found = [parsing.parse_keyed(key, value) for key, value in await standing(settings)]
    assert sorted(record_id(record) for record in found) == sorted(
        each["id"] for answer in (one, many) for each in answer.json()["records"]
    )
    assert {record.tenant for record in found} == {"acme/ä"}
    for room in range(3):  # in order
        of_room = [record.turn for record in found if record.conversation == f"room/{room}"]  # type: ignore[union-attr]
        assert of_room == [f"m{number}" for number in range(room, 12, 3)]


async def test_each_record_is_accepted_or_refused(http: httpx.AsyncClient, kept: Kept) -> None:
    wrong = {
        "conversation": "room",
        "turn": "m",
        "holder": "ann",
        "text": "",
        "sent_at": "2026-11-29T20:14:05Z",
    }
    given = [turn("a"), wrong, "no object", turn("b", sent_at="yesterday"), {"op": "delete", **turn("a")}]
    answer = await http.post("/v1/turns", json=given)
    found = answer.json()
    assert (answer.status_code, found["accepted"], found["refused"]) == (202, 2, 3)
    assert [each["status"] for each in found["records"]] == [
        "accepted", "refused", "refused", "refused", "accepted"
    ]  # fmt: skip
    problem = found["records"][1]["problem"]
    assert problem["type"] == "urn:volteface:problem:empty_text"
    assert (problem["status"], problem["field"]) == (422, "text")
    assert problem["remedy"]
    assert found["records"][2]["problem"]["type"] == "urn:volteface:problem:not_an_object"
    assert [record_id(record) for record in kept.records[-2:]] == ["create/a/0", "delete/a/0"]


async def test_where_none_is_accepted_it_is_a_problem(http: httpx.AsyncClient) -> None:
    one = await http.post("/v1/turns", json=turn(text=5))
    assert (one.status_code, one.headers["content-type"]) == (422, PROBLEM)
    assert (one.json()["field"], one.json()["type"]) == ("text", "urn:volteface:problem:wrong_type")
    many = await http.post("/v1/turns", json=[turn(text=5), turn(holder="")])
    assert (many.status_code, many.headers["content-type"]) == (422, PROBLEM)
    assert [each["problem"]["field"] for each in many.json()["records"]] == ["text", "holder"]


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (b"", 400, "not_json"),
        (b"{", 400, "not_json"),
        (b"[1,", 400, "not_json"),
        (b"\xff", 400, "not_json"),
        (b"[" * 200_000, 400, "not_json"),
        (b"[]", 422, "invalid"),
        (b"3", 422, "not_an_object"),
        (b"null", 422, "not_an_object"),
        (b"{}", 422, "missing_field"),
        (b'{"op":{"a":1}}', 422, "wrong_type"),
        (msgspec.json.encode([1] * 51), 413, "too_large"),
        (b" " * (1024 * 1024 + 1), 413, "too_large"),
    ],
)
async def test_bodies_that_are_none(http: httpx.AsyncClient, body: bytes, status: int, kind: str) -> None:
    answer = await http.post("/v1/turns", content=body)
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)
    assert answer.json()["type"] == f"urn:volteface:problem:{kind}"


_FIELDS = st.sampled_from([*turn(), "op", "id", "tenant", "media", "revision"])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("clear"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_FIELDS, inner, max_size=6),
    max_leaves=12,
)


@given(body=st.binary(max_size=60) | _VALUES.map(msgspec.json.encode))
@hypothesis_settings(max_examples=200, deadline=None)
def test_any_body_is_divided_and_read_or_refused(body: bytes) -> None:
    try:
        raws, _ = turns.divided(body)
    except turns.NotJson:
        return
    for raw in raws:
        try:
            record = turns.record(raw, "acme", "an-id")
        except Refused as refusal:
            assert refusal.field and refusal.remedy
        else:
            assert record.tenant == "acme"


async def test_other_operations_have_addresses_of_their_own(http: httpx.AsyncClient) -> None:
    erase = {"op": "erase", "id": "e", "conversation": "room", "holder": "ann"}
    answer = await http.post("/v1/turns", json=erase | {"sent_at": "2026-11-29T20:14:05Z"})
    assert (answer.status_code, answer.json()["field"]) == (422, "op")


async def test_the_tenant_is_the_keys(http: httpx.AsyncClient, kept: Kept) -> None:
    answer = await http.post("/v1/turns", json=turn(tenant="other"))
    assert (answer.status_code, answer.json()["field"]) == (422, "tenant")
    assert (await http.post("/v1/turns", json=turn(tenant="default"))).status_code == 202
    assert kept.records[-1].tenant == "default"


async def test_a_record_that_needs_an_id_gets_one(http: httpx.AsyncClient, kept: Kept) -> None:
    clear = {"op": "clear", "conversation": "room", "sent_at": "2026-11-29T20:14:05Z"}
    plain = [(await http.post("/v1/turns", json=clear)).json()["records"][0]["id"] for _ in range(2)]
    assert len(set(plain)) == 2 and [record_id(one) for one in kept.records[-2:]] == plain
    same = {"Idempotency-Key": "again"}
    answers = [await http.post("/v1/turns", json=[turn(), clear], headers=same) for _ in range(2)]
    ids = [[each["id"] for each in answer.json()["records"]] for answer in answers]
    assert ids[0] == ids[1] and ids[0][0] == "create/m1/0"
    other = await http.post("/v1/turns", json=[turn(), clear], headers={"Idempotency-Key": "other"})
    assert other.json()["records"][1]["id"] != ids[0][1]
    own = await http.post("/v1/turns", json=clear | {"id": "mine"}, headers=same)
    assert own.json()["records"][0]["id"] == "mine"
    assert isinstance(kept.records[-1], ClearTurns)


async def test_nothing_is_accepted_while_the_broker_is_away(http: httpx.AsyncClient, kept: Kept) -> None:
    kept.away, before = SenderUnavailable("away"), len(kept.records)
    answer = await http.post("/v1/turns", json=[turn("x"), turn("y")])
    assert (answer.status_code, answer.headers["content-type"]) == (503, PROBLEM)
    assert int(answer.headers["Retry-After"]) >= 1 and "records" not in answer.json()
    assert (await http.get("/readyz")).status_code == 503
    kept.away = None
    assert (await http.post("/v1/turns", json=[turn("x"), turn("y")])).status_code == 202
    assert (await http.get("/readyz")).status_code == 200
    assert len(kept.records) == before + 2


async def test_a_broker_that_hangs_is_not_waited_for(http: httpx.AsyncClient, kept: Kept) -> None:
    kept.go.clear()
    first = await http.post("/v1/turns", json=turn("x"))
    kept.go.set()
    assert first.status_code == 503
    assert (await http.post("/v1/turns", json=turn("x"))).status_code == 202


async def test_a_private_tenants_holders_become_pseudonyms(tmp_path: Any) -> None:
    file = tmp_path / "acme.key"
    tenants, kept = Tenants({"default": Tenant(privacy=True, key_file=str(file))}), Kept()
    async with served(parts_of(sender=kept, tenants=tenants)) as http:
        refused = await http.post("/v1/turns", json=turn(display_name="Ann"))
        assert (refused.status_code, "Retry-After" in refused.headers) == (503, True)
        file.write_text("A" * 43 + "=")
        answer = await http.post("/v1/turns", json=turn(display_name="Ann"))
        assert answer.status_code == 202
    [record] = kept.records
    assert isinstance(record, CreateTurn) and pseudonyms.is_pseudonym(record.holder)
    assert record.display_name is None


async def test_a_body_that_comes_too_slowly_is_not_waited_for() -> None:
    async with running(parts_of(limits=Limits(body_seconds=0.2))) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        head = f"POST /v1/turns HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {FIRST_KEY}\r\n"
        writer.write(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        async with asyncio.timeout(5):
            answer = await reader.read()
        writer.close()
    assert answer.startswith(b"HTTP/1.1 408") and b"slow_body" in answer


def test_keys_of_two_purposes_make_two_ids() -> None:
    assert turns.idents("ann", "targets", "k") != turns.idents("ann", "retire", "k")
    assert turns.idents("ann", "targets", "k") == turns.idents("ann", "targets", "k")
