"""What stands in outboxes leaves for the topics, and the outboxes are emptied once it is there."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from stream.store.port import ConversationKey, Message, Outbox, Store


class Sends(Protocol):
    """What of a sender is needed here."""

    async def send(self, messages: Sequence[Message]) -> None:
        """Send, journal entries first, and wait for delivery. Raises SenderUnavailable."""
        ...

    async def send_with_headers(
        self, messages: Iterable[tuple[Message, Sequence[tuple[str, bytes]]]]
    ) -> None:
        """Send in order and wait for delivery. Raises SenderUnavailable."""
        ...


async def deliver(outboxes: Mapping[ConversationKey, Outbox], store: Store, sender: Sends) -> None:
    """Send what the outboxes hold, wait, and empty them. Raises SenderUnavailable and StoreUnavailable."""
    full = {key: outbox for key, outbox in outboxes.items() if outbox}
    if full:
        await sender.send(
            [message for outbox in full.values() for sent in outbox.values() for message in sent]
        )
        await store.delivered({key: tuple(outbox) for key, outbox in full.items()})
