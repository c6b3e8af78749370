"""Whether a run did with every record of a log what it must, and with nothing else."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from redis.asyncio import Redis

from stream import dead_letters, letters
from stream.letters import Letter
from stream.settings import Settings
from tests.end_to_end.harness import Collected, drained
from tests.faults.feeding import PATIENCE_SECONDS
from tests.faults.fuzzing import described
from tests.faults.judging import SETTLE_SECONDS, committed, compare, course, whole
from tests.faults.mutations import Sent
from tests.faults.stand import NOTICE_SECONDS, Stand
from tests.faults.verdicts import Judge, Log, Place, Verdicts
from tests.stream.store.dump import dump
from tracker import keys
from tracker.records import Refused

SHOWN = 5
LOUD = (b'"level":"error"', b'"level":"critical"', b"[error ", b"[critical ", b"Traceback (most")


async def inquire(
    stand: Stand, collected: Collected, name: str, log: Log, verdicts: Verdicts, judge: Judge
) -> None:
    """Wait until a run of that name is through with a log, and compare all that it did since the last one.

    What was collected and stored of it is forgotten then.
    """
    expected = judge.course
    await finished(stand, collected, log, verdicts)
    await drained(stand.settings, PATIENCE_SECONDS)
    with suppress(AssertionError):  # what is wrong is told below, in detail
        await collected.until(lambda seen: whole(course(seen), expected), "every event", SETTLE_SECONDS)
    await collected.rest()
    stand.alive()
    require_letters(log, verdicts.refused, letters_of(collected))
    same(log, "applied", sources(collected), verdicts.applied)
    compare(course(collected), expected)
    assert ended(collected) == judge.ended
    assert await committed(stand.settings) == ends(stand.settings, log)
    assert (calm := await stored(stand, stand.calm.url, name))
    assert await stored(stand, stand.redis.url, name) == calm
    assert not (lines := loud(stand)), lines[:SHOWN]
    await forget(stand, collected)


async def finished(stand: Stand, collected: Collected, log: Log, verdicts: Verdicts) -> None:
    """Wait until so many are applied and refused; fails with the records at which the run stands still."""

    def through(seen: Collected) -> bool:
        stand.alive()
        refused = len(seen.records["dead-letters"]) >= len(verdicts.refused)
        return refused and len(seen.arrivals()) >= len(verdicts.applied)

    try:
        await collected.until(through, "every record", PATIENCE_SECONDS)
    except AssertionError as late:
        stand.alive()
        same(log, "in the dead letters", map(_place_of_letter, letters_of(collected)), verdicts.refused)
        same(log, "applied", sources(collected), verdicts.applied)
        raise AssertionError(f"{late}; {stand.tail()}") from None


def require_letters(log: Log, refused: Mapping[Place, Refused], found: Sequence[Letter]) -> None:
    """Each refused record stands in the dead letters once, as it was sent, with reason, field and remedy."""
    counts = Counter(map(_place_of_letter, found))
    same(log, "in the dead letters", counts, refused)
    twice = [place for place, count in counts.items() if count > 1]
    assert not twice, f"more than once in the dead letters: {told(log, twice)}"
    for letter in found:
        place = _place_of_letter(letter)
        _require_letter(letter, log[place], refused[place])


def _require_letter(letter: Letter, sent: Sent, why: Refused) -> None:
    # What a record brought under such a name is kept in its letter.
    brought = {name: value.decode() for name, value in sent.headers if name == "volteface.remedy"}
    meant = {
        "volteface.reason": why.reason.value,
        "volteface.field": why.field,
        "volteface.remedy": why.remedy,
    }
    for name, text in (meant | brought).items():
        assert letter.header(name) == cut(text), f"{name}: {described(sent)}"
    assert letter.key == cut_to(sent.key, dead_letters.MAX_KEY_BYTES), described(sent)
    assert letter.value == cut_to(sent.value, dead_letters.MAX_VALUE_BYTES), described(sent)


def _place_of_letter(letter: Letter) -> Place:
    return place_of(letter.id)


def cut(text: str) -> str:
    """A header's text as a letter holds it."""
    return text.encode(errors="replace")[: dead_letters.MAX_HEADER_BYTES].decode(errors="ignore")


def cut_to(given: bytes | None, most: int) -> bytes | None:
    """A key or a value as a letter holds it."""
    return given if given is None else given[:most]


def same(log: Log, what: str, found: Iterable[Place], expected: Iterable[Place]) -> None:
    """Fails with the records that are there and must not be, and with those that must be and are not."""
    there, meant = set(found), set(expected)
    extra, lacking = there - meant, meant - there
    assert not extra, f"{len(extra)} {what} that must not be: {told(log, extra)}"
    assert not lacking, f"{len(lacking)} not {what}: {told(log, lacking)}"


def told(log: Log, places: Iterable[Place]) -> str:
    """Some of the records at these places."""
    some = sorted(places)[:SHOWN]
    return "; ".join(
        f"{place}: {described(log[place]) if place in log else 'nothing sent'}" for place in some
    )


def letters_of(collected: Collected) -> list[Letter]:
    """The dead letters as an operator reads them: a record may bring headers of the same names."""
    read = [letters.read(message) for message in collected.records["dead-letters"]]
    assert all(isinstance(letter, Letter) for letter in read)
    return [letter for letter in read if isinstance(letter, Letter)]


def place_of(source: str) -> Place:
    """Partition and offset of `<topic>/<partition>/<offset>`."""
    _, partition, offset = source.rsplit("/", 2)
    return int(partition), int(offset)


def sources(collected: Collected) -> set[Place]:
    """Where the records stand that were applied."""
    return {place_of(entry["source"]) for entry in collected.journal()}


def ended(collected: Collected) -> set[bytes | None]:
    """Keys of states whose newest message is a tombstone."""
    newest = {message.key: message.value for message in collected.records["states"]}
    return {key for key, value in newest.items() if value is None}


def ends(settings: Settings, log: Log) -> dict[int, int]:
    """Where each partition ends."""
    parts = range(settings.partitions)
    return {part: max((at + 1 for number, at in log if number == part), default=0) for part in parts}


async def stored(stand: Stand, url: str, name: str) -> dict[bytes, Any]:
    """All that a Redis holds of the run's rooms."""
    found = await dump(url, stand.settings.run, stand.settings.topic_prefix)
    return {key: held for key, held in found.items() if keys.escape(name).encode() in key}


def loud(stand: Stand) -> list[bytes]:
    """What tells of an error in the logs of agents and worker."""
    return [line for log in stand.folder.glob("*.log") for line in loud_lines(log.read_bytes())]


def loud_lines(said: bytes) -> list[bytes]:
    """The lines of a log that tell of an error."""
    return [line for line in said.splitlines() if any(word in line for word in LOUD)]


async def forget(stand: Stand, collected: Collected) -> None:
    """Drop what is held of the log that was judged; nothing in the run refers to its rooms again."""
    for held in (collected.records, collected.values, collected.dead_letters):
        held.clear()
    for url in (stand.redis.url, stand.calm.url):
        async with Redis.from_url(url, protocol=2, socket_timeout=NOTICE_SECONDS) as client:
            pattern = f"{stand.settings.topic_prefix}:{stand.settings.run}:*"
            if found := [key async for key in client.scan_iter(match=pattern, count=1000)]:
                await client.unlink(*found)
