"""The accounts in the database."""

import datetime as dt
from typing import Any

from sqlalchemy import Row, select, update
from sqlalchemy.dialects import postgresql, sqlite

from stream.accounts.port import Key, Principal, Scope
from stream.database.accounts_tables import keys, principals
from stream.database.engine import Database
from stream.database.moments import moment, number

_INSERT: dict[str, Any] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}


class SqlAccounts:
    """Accounts in PostgreSQL or SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, key: Key) -> None:
        """As the port says."""
        who = {"tenant": key.tenant, "name": key.principal, "made_at": number(key.made_at)}
        async with self._database.writing() as connection:
            insert = _INSERT[self._database.dialect]
            await connection.execute(insert(principals).values(who).on_conflict_do_nothing())
            await connection.execute(insert(keys).values(_row(key)))

    async def find(self, ident: str) -> Key | None:
        """As the port says."""
        async with self._database.reading() as connection:
            found = (await connection.execute(select(keys).where(keys.c.id == ident))).one_or_none()
        return None if found is None else _key(found)

    async def keys(self, tenant: str | None = None) -> list[Key]:
        """As the port says."""
        wanted = select(keys).order_by(keys.c.made_at, keys.c.id)
        if tenant is not None:
            wanted = wanted.where(keys.c.tenant == tenant)
        async with self._database.reading() as connection:
            return [_key(row) for row in await connection.execute(wanted)]

    async def principals(self, tenant: str) -> list[Principal]:
        """As the port says."""
        wanted = select(principals).where(principals.c.tenant == tenant)
        async with self._database.reading() as connection:
            found = [_principal(row) for row in await connection.execute(wanted)]
        return sorted(found, key=lambda one: one.name)  # here: databases sort letters each in its own way

    async def revoke(self, ident: str, at: dt.datetime) -> bool:
        """As the port says."""
        held = (keys.c.id == ident) & keys.c.revoked_at.is_(None)
        async with self._database.writing() as connection:
            done = await connection.execute(update(keys).where(held).values(revoked_at=number(at)))
        return bool(done.rowcount)


def _row(key: Key) -> dict[str, Any]:
    return {
        "id": key.id,
        "tenant": key.tenant,
        "principal": key.principal,
        "scopes": " ".join(sorted(key.scopes)),
        "digest": key.digest,
        "made_at": number(key.made_at),
        "revoked_at": None if key.revoked_at is None else number(key.revoked_at),
    }


def _key(row: Row[Any]) -> Key:
    return Key(
        id=row.id,
        tenant=row.tenant,
        principal=row.principal,
        scopes=frozenset(map(Scope, row.scopes.split())),
        digest=row.digest,
        made_at=moment(row.made_at),
        revoked_at=None if row.revoked_at is None else moment(row.revoked_at),
    )


def _principal(row: Row[Any]) -> Principal:
    return Principal(tenant=row.tenant, name=row.name, made_at=moment(row.made_at))
