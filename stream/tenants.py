"""The tenants file: of which tenants no names and no words may leave, and the keys of their pseudonyms.

    [acme]
    privacy = true          # holders are pseudonyms in every topic; a record in clear is refused
    quotes = true           # rationales, which quote turns, stay in events all the same
    key_file = "acme.key"   # of its pseudonyms; read only where they are made

An agent needs no key. Who loses a key cannot make the same pseudonyms again.
"""

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from stream.sources import read_toml
from tracker.pseudonyms import LEAST_KEY_BYTES


class Tenant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one tenant wants."""

    privacy: bool = False
    quotes: bool | None = None  # unset: as privacy does not want it
    key_file: str | None = None  # relative to the tenants file

    @property
    def quoted(self) -> bool:
        """Whether rationales, which quote turns, stay in events."""
        return not self.privacy if self.quotes is None else self.quotes


class NoKey(Exception):
    """Pseudonyms cannot be made for a tenant; says why, and what to do."""


class Tenants(msgspec.Struct, frozen=True):
    """All tenants that are named; any other one has no privacy."""

    named: Mapping[str, Tenant] = {}

    @property
    def private(self) -> frozenset[str]:
        """Those whose records name nobody in clear."""
        return frozenset(name for name, tenant in self.named.items() if tenant.privacy)

    @property
    def wordless(self) -> frozenset[str]:
        """Those of whose turns nothing is quoted."""
        return frozenset(name for name, tenant in self.named.items() if not tenant.quoted)

    def key(self, name: str) -> bytes:
        """The key of a tenant's pseudonyms. Raises NoKey."""
        tenant = self.named.get(name)
        if tenant is None or tenant.key_file is None:
            raise NoKey(
                f"tenant {name!r} has no key: set its key_file in the file that VOLTEFACE_TENANTS names"
            )
        try:
            key = base64.b64decode(Path(tenant.key_file).read_bytes().strip(), validate=True)
        except OSError as error:
            raise NoKey(
                f"{tenant.key_file}: {error.strerror}: make it by `openssl rand -base64 32`"
            ) from None
        except binascii.Error:
            key = b""
        if len(key) < LEAST_KEY_BYTES:
            remedy = f"write the base64 of at least {LEAST_KEY_BYTES} random bytes: `openssl rand -base64 32`"
            raise NoKey(f"{tenant.key_file}: it holds no key; {remedy}")
        return key


def read(path: Path) -> Tenants:
    """The tenants of a file. Raises OSError and ValueError."""
    named = read_toml(path, dict[str, Any])
    return Tenants({name: _beside(path, _tenant(name, raw)) for name, raw in named.items()})


def _tenant(name: str, raw: object) -> Tenant:
    try:
        return msgspec.convert(raw, Tenant)
    except msgspec.ValidationError as error:
        raise ValueError(f"[{name}]: {error}") from None


def _beside(path: Path, tenant: Tenant) -> Tenant:
    if tenant.key_file is None:
        return tenant
    return msgspec.structs.replace(tenant, key_file=str(path.parent / Path(tenant.key_file).expanduser()))
