"""What an agent asks of its group before it starts, with a broker that is none."""

import asyncio
import time
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import GroupAuthorizationFailedError, GroupCoordinatorNotAvailableError

from stream import rights
from stream.embedded.process import free_port
from stream.settings import Settings


class Group:
    """An admin client that says so much of a group."""

    def __init__(self, found: Exception | int = 1, heard: int = 0) -> None:
        self.found, self.heard = found, heard

    async def find_coordinator(self, group: str) -> int:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    async def _send_request(self, request: Any, node: int) -> Any:
        return SimpleNamespace(error_code=self.heard)


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Any:
    def said(group: Group) -> None:
        @asynccontextmanager
        async def running(kind: Any, settings: Settings) -> Any:
            yield group

        monkeypatch.setattr(rights, "running", running)

    return said


@pytest.mark.parametrize("heard", [0, 25], ids=["alive", "unknown member"])
async def test_who_may_join_is_told_so(says: Any, heard: int) -> None:
    says(Group(heard=heard))
    assert await rights.check(Settings())


@pytest.mark.parametrize(
    "group",
    [
        Group(found=GroupAuthorizationFailedError("describe")),
        Group(heard=GroupAuthorizationFailedError.errno),
    ],
    ids=["describe", "read"],
)
async def test_who_may_not_is_told_the_remedy(says: Any, group: Group) -> None:
    says(group)
    with pytest.raises(rights.NotAllowed, match="allow this user what README"):
        await rights.check(Settings())


async def test_a_group_that_nobody_answers_for_is_unknown_in_time(says: Any) -> None:
    says(Group(found=GroupCoordinatorNotAvailableError()))
    began = time.monotonic()
    assert not await rights.check(Settings(), seconds=0.3)
    assert time.monotonic() - began < 5.0


async def test_without_a_broker_it_is_unknown() -> None:
    async with asyncio.timeout(20):
        assert not await rights.check(Settings(broker=f"kafka://127.0.0.1:{free_port()}"))
