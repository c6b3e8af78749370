"""Faust's Kafka transport, with a shorter wait in each fetch and a thread that never holds a process up.

Faust lets the broker hold a fetch for 1.5 s. Apache Kafka answers as soon as something comes, but Tansu only
looks again now and then: a turn that came alone stood there for up to 1.3 s, and for milliseconds this way.
Faust's consumer commits in its thread until the broker answers: with the broker gone, a process that was told
to stop would never end.
"""

from typing import Any

import faust
from faust.transport.drivers import aiokafka as driver
from mode.threads import WorkerThread

FETCH_WAIT_MS = 50


class _Daemon(WorkerThread):  # type: ignore[misc]  # mode and Faust ship no types
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.daemon = True


class _Thread(driver.AIOKafkaConsumerThread):  # type: ignore[misc]
    Worker = _Daemon

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS  # Faust has no setting for it
        return consumer


class _Consumer(driver.Consumer):  # type: ignore[misc]
    def _new_consumer_thread(self) -> Any:
        return _Thread(self, loop=self.loop, beacon=self.beacon)


class _Transport(driver.Transport):  # type: ignore[misc]
    Consumer = _Consumer


class App(faust.App):  # type: ignore[misc]
    """A Faust app whose fetches return soon."""

    def _new_transport(self) -> Any:
        return _Transport(self.conf.broker_consumer, self)
