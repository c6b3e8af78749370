"""The in-memory twin of the accounts."""

import datetime as dt

from msgspec.structs import replace

from stream.accounts.port import Key, Principal


class MemoryAccounts:
    """Accounts in this process."""

    def __init__(self) -> None:
        self._keys: dict[str, Key] = {}
        self._principals: dict[tuple[str, str], Principal] = {}

    async def add(self, key: Key) -> None:
        """As the port says."""
        self._keys[key.id] = key
        principal = Principal(tenant=key.tenant, name=key.principal, made_at=key.made_at)
        self._principals.setdefault((key.tenant, key.principal), principal)

    async def find(self, ident: str) -> Key | None:
        """As the port says."""
        return self._keys.get(ident)

    async def keys(self, tenant: str | None = None) -> list[Key]:
        """As the port says."""
        own = [key for key in self._keys.values() if tenant in {None, key.tenant}]
        return sorted(own, key=lambda key: (key.made_at, key.id))

    async def principals(self, tenant: str) -> list[Principal]:
        """As the port says."""
        own = [principal for principal in self._principals.values() if principal.tenant == tenant]
        return sorted(own, key=lambda principal: principal.name)

    async def revoke(self, ident: str, at: dt.datetime) -> bool:
        """As the port says."""
        key = self._keys.get(ident)
        if key is None or key.revoked_at is not None:
            return False
        self._keys[ident] = replace(key, revoked_at=at)
        return True
