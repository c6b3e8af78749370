"""The stands that tests share: one on each broker, started when first asked for, replaced when broken."""

from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import mkdtemp
from uuid import uuid4

from stream.embedded import EmbeddedBroker, EmbeddedRedis
from stream.embedded.broker import Broker
from stream.embedded.process import free_port
from tests.faults.brokers import RelayedKafka
from tests.faults.relay import Relay
from tests.faults.stand import Stand, standing


class Stands:
    """Brokers that last as long as this, and a stand on each that lasts until a test fails on it."""

    def __init__(self, folder: Path, calm: EmbeddedRedis) -> None:
        self._folder, self._calm = folder, calm
        self._stack = AsyncExitStack()
        self._brokers: dict[str, tuple[Broker, Relay]] = {}
        self._stands: dict[str, tuple[Stand, AsyncExitStack]] = {}

    async def on(self, name: str) -> Stand:
        """The stand on a broker, with one agent."""
        if name in self._stands and not self._stands[name][0].sound:
            await self._drop(name)
        if name not in self._stands:
            self._stands[name] = await self._started(name)
        return self._stands[name][0]

    async def close(self) -> None:
        """End everything."""
        for name in list(self._stands):
            await self._drop(name)
        await self._stack.aclose()

    async def _drop(self, name: str) -> None:
        await self._stands.pop(name)[1].aclose()

    async def _started(self, name: str) -> tuple[Stand, AsyncExitStack]:
        broker, relay = await self._broker(name)
        prefix, stack = f"test-{uuid4().hex[:12]}", AsyncExitStack()
        folder = Path(mkdtemp(dir=self._folder))
        stand = await stack.enter_async_context(
            standing(broker, relay, self._calm, folder, prefix, idempotence=name == "kafka")
        )
        stand.start_agent()
        return stand, stack

    async def _broker(self, name: str) -> tuple[Broker, Relay]:
        if name in self._brokers and not self._brokers[name][0].running():
            self._brokers.pop(name)
        if name not in self._brokers:
            relay = Relay(free_port())
            if name == "kafka":
                await self._stack.enter_async_context(relay.running())
                broker: Broker = RelayedKafka(relay.target, relay.port)
            else:
                broker = EmbeddedBroker()  # it has one listener alone, so no relay leads to it
            self._brokers[name] = self._stack.enter_context(broker), relay
        return self._brokers[name]
