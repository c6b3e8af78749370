"""A tenant with privacy: no name and no word of its people in any topic behind the turns."""

import base64
from pathlib import Path

import msgspec
import pytest

from stream import tenants
from stream.settings import Settings
from tests.end_to_end.harness import LEFT_OPEN, collecting, drained, producing, running, target, turn
from tracker.pseudonyms import concealed
from tracker.records import Record

pytestmark = [pytest.mark.filterwarnings(LEFT_OPEN), pytest.mark.long]

KEY = bytes(range(32))
ROOM = "room"
TALK: list[Record] = [
    turn(ROOM, "t1", "+1 because of zebras", holder="Ann Example", tenant="acme"),
    turn(ROOM, "t2", "-1 no more zebras", holder="Ann Example", tenant="acme"),
]


@pytest.fixture
def private(settings: Settings, tmp_path: Path) -> Settings:
    (tmp_path / "acme.key").write_bytes(base64.b64encode(KEY))
    file = tmp_path / "tenants.toml"
    file.write_text('[acme]\nprivacy = true\nkey_file = "acme.key"\n')
    return msgspec.structs.replace(settings, tenants=tenants.read(file))


async def test_names_are_refused_and_pseudonyms_flip(private: Settings) -> None:
    async with producing(private) as producer, collecting(private) as collected, running(private):
        await producer.records([target(ROOM, tenant="acme"), *TALK])
        await collected.until(lambda seen: len(seen.dead_letters) == len(TALK), "refusals")
        await producer.records([concealed(private.tenants.key("acme"), record) for record in TALK])
        await collected.until(lambda seen: seen.values["flips"], "a flip")
        await drained(private)
        await collected.rest()
    [flip] = collected.values["flips"]
    assert (flip["data"]["from"], flip["data"]["to"]) == ("support", "oppose")
    assert flip["data"]["holder"].startswith("p-")
    assert not flip["data"].get("rationale")
    said = repr((collected.values, collected.dead_letters))
    assert [word for word in ("Ann", "zebra") if word in said] == []


async def test_another_tenants_people_keep_their_names(private: Settings) -> None:
    async with producing(private) as producer, collecting(private) as collected, running(private):
        await producer.records([target(ROOM), turn(ROOM, "t1", "+1"), turn(ROOM, "t2", "-1 really")])
        await collected.until(lambda seen: seen.values["flips"], "a flip")
    [flip] = collected.values["flips"]
    assert (flip["data"]["holder"], bool(flip["data"]["rationale"])) == ("ann", True)
    assert not collected.dead_letters
