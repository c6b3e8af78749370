"""Who may do what: a route names the scope it needs, and gets whoever came with it."""

from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer, SecurityScopes

from stream.accounts.port import Scope
from stream.gateway.keyring import Access
from stream.gateway.parts import parts
from stream.gateway.problems import Kind, Problem, retry_after

_HOW = "send Authorization: Bearer with a key that `volteface keys create` made"
_bearer = HTTPBearer(
    auto_error=False, description="An API key of a tenant: `volteface keys create` makes one."
)


async def _access(
    needed: SecurityScopes,
    request: Request,
    given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> Access:
    found = None if given is None else await parts(request).keyring.access(given.credentials)
    if found is None:
        said = "no key came with the request" if given is None else "this key is unknown or revoked"
        raise Problem(Kind.UNAUTHORIZED, said, remedy=_HOW, headers={"WWW-Authenticate": "Bearer"})
    _take_token(request, found)
    for scope in map(Scope, needed.scopes):
        if not found.may(scope):
            remedy = f"ask for a key with scope {scope}"
            challenge = {"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{scope}"'}
            raise Problem(Kind.FORBIDDEN, f"the key lacks {scope}", remedy=remedy, headers=challenge)
    return found


def _take_token(request: Request, access: Access) -> None:
    wait = parts(request).buckets.take(access.key)
    if wait:
        remedy = "wait as Retry-After says; several turns may go in one request"
        raise Problem(
            Kind.TOO_MANY_REQUESTS, "the key's requests are used up", remedy=remedy, headers=retry_after(wait)
        )


WritesTurns = Annotated[Access, Security(_access, scopes=[Scope.TURNS_WRITE])]
ReadsEvents = Annotated[Access, Security(_access, scopes=[Scope.EVENTS_READ])]
WritesCorrections = Annotated[Access, Security(_access, scopes=[Scope.CORRECTIONS_WRITE])]
Administers = Annotated[Access, Security(_access, scopes=[Scope.ADMIN])]
