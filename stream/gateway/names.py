"""Holders of tenants whose topics hold no names: pseudonyms of what goes in, and of what is asked for."""

from stream.tenants import Tenants
from tracker import pseudonyms
from tracker.records import Record


class Names:
    """Names and pseudonyms, by tenant. Every call raises NoKey where a private tenant's key is missing."""

    def __init__(self, tenants: Tenants) -> None:
        self._tenants = tenants

    def concealed(self, record: Record) -> Record:
        """The record as its tenant's topic may hold it."""
        if record.tenant not in self._tenants.private:
            return record
        return pseudonyms.concealed(self._tenants.key(record.tenant), record)

    def holder(self, tenant: str, holder: str) -> str:
        """A holder as events and states call it."""
        if tenant not in self._tenants.private or pseudonyms.is_pseudonym(holder):
            return holder
        return pseudonyms.pseudonym(self._tenants.key(tenant), tenant, holder)
