"""What all accounts do: the in-memory twin, and those in databases."""

import datetime as dt
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from stream.accounts.memory import MemoryAccounts
from stream.accounts.port import Accounts, Key, Scope
from stream.accounts.sql import SqlAccounts
from stream.database import Database, DatabaseUnavailable, open_database
from stream.database.upgrading import BASE, downgrade, upgrade

NOW = dt.datetime(2026, 12, 1, 12, 0, 0, 123456, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)


def key(ident: str = "k1", tenant: str = "acme", principal: str = "ann", at: int = 0) -> Key:
    scopes = frozenset({Scope.TURNS_WRITE, Scope.EVENTS_READ})
    return Key(
        id=ident,
        tenant=tenant,
        principal=principal,
        scopes=scopes,
        digest="d" * 64,
        made_at=NOW + at * SECOND,
    )


class Contract:
    """The suite; a subclass has the fixture `accounts`."""

    async def test_a_key_comes_back_as_it_was(self, accounts: Accounts) -> None:
        await accounts.add(key())
        assert await accounts.find("k1") == key()
        assert await accounts.find("k2") is None

    async def test_names_may_be_anything(self, accounts: Accounts) -> None:
        odd = replace(key("k\x00"), tenant="té\x00/ \x01", principal="李\x00雷", scopes=frozenset())
        await accounts.add(odd)
        assert await accounts.find("k\x00") == odd
        assert [one.name for one in await accounts.principals("té\x00/ \x01")] == ["李\x00雷"]

    async def test_keys_are_listed_by_tenant_the_oldest_first(self, accounts: Accounts) -> None:
        given = [key("b", at=1), key("c"), key("a", at=1), key("d", "other", at=2)]
        for one in given:
            await accounts.add(one)
        assert [one.id for one in await accounts.keys("acme")] == ["c", "a", "b"]
        assert [one.id for one in await accounts.keys()] == ["c", "a", "b", "d"]
        assert await accounts.keys("nobody") == []

    async def test_a_principal_is_made_once_and_outlives_its_keys(self, accounts: Accounts) -> None:
        await accounts.add(key("a"))
        await accounts.add(key("b", at=5))
        await accounts.add(key("c", principal="Ben"))
        await accounts.add(key("d", "other"))
        await accounts.revoke("a", NOW)
        found = await accounts.principals("acme")
        assert [(one.tenant, one.name, one.made_at) for one in found] == [
            ("acme", "Ben", NOW), ("acme", "ann", NOW)
        ]  # fmt: skip

    async def test_a_key_is_revoked_once_and_stays_in_the_list(self, accounts: Accounts) -> None:
        await accounts.add(key())
        assert await accounts.revoke("k1", NOW + SECOND)
        assert not await accounts.revoke("k1", NOW + 2 * SECOND)
        assert not await accounts.revoke("k2", NOW)
        assert await accounts.keys("acme") == [replace(key(), revoked_at=NOW + SECOND)]


class TestMemory(Contract):
    @pytest.fixture
    def accounts(self) -> Accounts:
        return MemoryAccounts()


class TestSql(Contract):
    @pytest.fixture
    async def accounts(self, database_url: str) -> AsyncIterator[Accounts]:
        await upgrade(database_url)
        database = open_database(database_url)
        yield SqlAccounts(database)
        await database.close()
        await downgrade(database_url, BASE)


async def test_a_database_without_tables_is_away(database_url: str) -> None:
    database: Database = open_database(database_url)
    with pytest.raises(DatabaseUnavailable, match="volteface database upgrade"):
        await SqlAccounts(database).find("k1")
    await database.close()


def test_admin_holds_every_scope() -> None:
    assert all(replace(key(), scopes=frozenset({Scope.ADMIN})).may(scope) for scope in Scope)
    assert not key().may(Scope.CORRECTIONS_WRITE) and key().may(Scope.EVENTS_READ)
