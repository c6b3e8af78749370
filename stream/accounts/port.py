"""Where principals and their keys live: the port, and what stands in it."""

import datetime as dt
import enum
from typing import Protocol

import msgspec

MAX_NAME = 200  # characters of a tenant's or principal's name


class Scope(enum.StrEnum):
    """What a key lets its principal do in its own tenant; nothing reaches beyond it."""

    TURNS_WRITE = "turns:write"  # send turns, edits, deletes and clears
    EVENTS_READ = "events:read"  # events, conversations, holders, trajectories and targets
    CORRECTIONS_WRITE = "corrections:write"  # declare and retire targets, override and lift
    ADMIN = "admin"  # erase; it holds all others, too


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody, or some program, that acts for a tenant: an override says who."""

    tenant: str
    name: str
    made_at: dt.datetime


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """A principal's key as it is kept: its digest alone (`secrets` says why that is enough)."""

    id: str
    tenant: str
    principal: str
    scopes: frozenset[Scope]
    digest: str
    made_at: dt.datetime
    revoked_at: dt.datetime | None = None

    def may(self, scope: Scope) -> bool:
        """Whether the key has the scope."""
        return scope in self.scopes or Scope.ADMIN in self.scopes


class Accounts(Protocol):
    """Principals and keys of all tenants. A call raises DatabaseUnavailable where they are away."""

    async def add(self, key: Key) -> None:
        """Keep a new key; its principal is made with it where the tenant has none of that name."""
        ...

    async def find(self, ident: str) -> Key | None:
        """The key of that id, revoked ones included."""
        ...

    async def keys(self, tenant: str | None = None) -> list[Key]:
        """A tenant's keys, or everybody's: the oldest first."""
        ...

    async def principals(self, tenant: str) -> list[Principal]:
        """A tenant's principals by name; they outlive their keys."""
        ...

    async def revoke(self, ident: str, at: dt.datetime) -> bool:
        """End a key; whether there was one that held. It stays in the list."""
        ...
