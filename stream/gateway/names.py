"""Holders of tenants whose topics hold no names: pseudonyms of what goes in, and of what is asked for."""

from functools import cache

from stream.tenants import Tenants
from tracker import pseudonyms
from tracker.records import Record


class Names:
    """Names and pseudonyms, by tenant. Every call raises NoKey where a private tenant's key is missing."""

    def __init__(self, tenants: Tenants) -> None:
        self._private, self._key = tenants.private, cache(tenants.key)  # a key is read once, not a record

    def concealed(self, record: Record) -> Record:
        """The record as its tenant's topic may hold it."""
        if record.tenant not in self._private:
            return record
        return pseudonyms.concealed(self._key(record.tenant), record)

    def holder(self, tenant: str, holder: str) -> str:
        """A holder as events and states call it."""
        if tenant not in self._private or pseudonyms.is_pseudonym(holder):
            return holder
        return pseudonyms.pseudonym(self._key(tenant), tenant, holder)
