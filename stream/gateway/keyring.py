"""Who comes with a key: looked up in the accounts, remembered for some seconds.

So a revoked key ends within that time, and one that was found before still opens while the database is away
for as long. The setting `api_key` is a key of its own: of the default tenant, with every scope.
"""

import hmac
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic

import msgspec

from stream.accounts import secrets
from stream.accounts.port import Accounts, Key, Scope

REMEMBERED_SECONDS = 5.0
MOST = 10_000
FIRST = "first-key"  # the principal of the setting's key
FIRST_TENANT = "default"


class Access(msgspec.Struct, frozen=True):
    """Who asks: what everything else goes by."""

    key: str  # its id
    tenant: str
    principal: str
    scopes: frozenset[Scope]

    def may(self, scope: Scope) -> bool:
        """Whether the scope is among the key's, or admin is."""
        return scope in self.scopes or Scope.ADMIN in self.scopes


class Keyring:
    """Recognises keys."""

    def __init__(
        self,
        accounts: Accounts,
        first: str | None = None,
        *,
        remembered: float = REMEMBERED_SECONDS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._accounts, self._remembered, self._clock = accounts, remembered, clock
        self._first = None if first is None else secrets.digest(first)
        self._known: OrderedDict[str, tuple[float, Key | None]] = OrderedDict()  # by id, until when

    async def access(self, text: str) -> Access | None:
        """Who a key belongs to; None where it does not hold. Raises DatabaseUnavailable."""
        if self._first is not None and hmac.compare_digest(secrets.digest(text), self._first):
            return Access(FIRST, FIRST_TENANT, FIRST, frozenset(Scope))
        ident = secrets.id_of(text)
        key = None if ident is None else await self._key(ident)
        if key is None or not secrets.matches(text, key.digest) or key.revoked_at is not None:
            return None
        return Access(key.id, key.tenant, key.principal, key.scopes)

    async def _key(self, ident: str) -> Key | None:
        until, key = self._known.get(ident, (0.0, None))
        if until > self._clock():
            return key
        key = await self._accounts.find(ident)
        self._known[ident] = self._clock() + self._remembered, key
        self._known.move_to_end(ident)
        if len(self._known) > MOST:
            self._known.popitem(last=False)
        return key
