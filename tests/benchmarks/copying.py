"""The yardstick: a bare Faust agent that copies records from one topic to another, and does nothing else.

    python -m tests.benchmarks.copying BOOTSTRAP APP_ID SOURCE SINK PARTITIONS REBALANCE_SECONDS

Its client settings are those of stream.app. It acks a record before its copy is known to be delivered, and
so promises less than the agent it is compared with.
"""

import asyncio
import signal
import sys
import tempfile
from typing import Any

import faust

from stream.app import FETCH_BYTES, POLL_RECORDS, STREAM_BUFFER


def build(
    bootstrap: str, name: str, source: str, sink: str, partitions: int, seconds: float, folder: str
) -> Any:
    """The Faust app. Call it inside the running loop."""
    app = faust.App(
        name,
        broker=f"kafka://{bootstrap}",
        store="memory://",
        cache="memory://",
        datadir=folder,
        web_enabled=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        topic_partitions=partitions,
        table_standby_replicas=0,
        stream_wait_empty=False,
        stream_buffer_maxsize=STREAM_BUFFER,
        broker_max_poll_records=POLL_RECORDS,
        broker_session_timeout=seconds,
        broker_heartbeat_interval=min(3.0, seconds / 3),
        broker_rebalance_timeout=seconds,
        consumer_max_fetch_size=FETCH_BYTES,
        producer_acks=-1,
        producer_request_timeout=30.0,
        loop=asyncio.get_running_loop(),
    )
    raw = {"key_type": bytes, "value_type": bytes, "key_serializer": "raw", "value_serializer": "raw"}
    into = app.topic(sink, **raw)

    async def copy(stream: Any) -> None:
        async for event in stream.events():
            await into.send(key=event.key, value=event.value)

    app.agent(app.topic(source, **raw), name="copy", concurrency=1)(copy)
    return app


async def main(arguments: list[str]) -> None:
    """Copy until SIGTERM."""
    bootstrap, name, source, sink, partitions, seconds = arguments
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    with tempfile.TemporaryDirectory(prefix="volteface-copy-") as folder:
        app = build(bootstrap, name, source, sink, int(partitions), float(seconds), folder)
        await app.start()
        await stop.wait()
        await app.stop()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
