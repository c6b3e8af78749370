"""Producing to a disturbed run, and waiting until it has come so far."""

from collections.abc import Sequence

from tests.end_to_end.harness import Collected, collecting, producing
from tests.faults.stand import Stand
from tracker.records import Record

PATIENCE_SECONDS = 120.0  # the machine may be busy with something else


async def produce(stand: Stand, records: Sequence[Record]) -> None:
    """Records, straight to the broker; waits for delivery."""
    async with producing(stand.settings) as producer:
        await producer.records(records)


async def begun(stand: Stand, records: Sequence[Record], moment: int) -> None:
    """Produce a beginning, and wait until so many of all records are applied."""
    async with collecting(stand.settings) as collected:
        await produce(stand, records)
        await reached(stand, collected, moment)


async def reached(stand: Stand, collected: Collected, count: int) -> None:
    """Wait until so many records are applied."""
    try:
        await collected.until(
            lambda seen: stand.alive() and len(seen.arrivals()) >= count, f"{count} records", PATIENCE_SECONDS
        )
    except AssertionError as late:
        raise AssertionError(f"{late}; the agents' last words:\n{stand.tail()}") from None
