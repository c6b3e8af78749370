"""What an operator does with dead letters: their records are sent again, or they are put aside.

Both are said on the letters' own topic, so that whoever reads it next knows.
"""

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from aiokafka import AIOKafkaProducer
from aiokafka.errors import MessageSizeTooLargeError

from stream import history
from stream.kafka import REQUEST_TIMEOUT_SECONDS, running
from stream.letter_log import Asked, Ends, Log, opened
from stream.letters import CannotRetry, Letter, Status, again, marked, whole
from stream.sender import ToSend, begun
from stream.settings import Settings
from stream.topics import topic
from tracker.records import Refused

ORIGINAL_SECONDS = 20.0
CHUNK = 32  # letters that are held at once, each of at most about 1 MB
MAX_REQUEST_BYTES = 2 * 1024 * 1024  # above what brokers take, so that they refuse, and the letter is named

Tell = Callable[[str, str], None]  # a letter's id, and why nothing was done with it


@dataclass(slots=True)
class Done:
    """How many letters were dealt with, how many could not be, and which were not found."""

    count: int = 0
    refused: int = 0
    missing: frozenset[str] = frozenset()


class Desk:
    """Works on one run's letters, in an operator's name; made by `working`."""

    def __init__(self, settings: Settings, log: Log, producer: AIOKafkaProducer, by: str, tell: Tell) -> None:
        self._settings, self._log, self._producer = settings, log, producer
        self._by, self._tell = by, tell

    async def retry(self, asked: Asked, edited: bytes | None = None, fix_key: bool = False) -> Done:
        """Send the letters' records to the turns topic again, and then say so.

        A crash between the two leaves a letter open. Who retries it then does no harm: a record that was
        applied is known by its id, and changes nothing twice.
        """
        done = Done(missing=asked.ids)
        async with aclosing(self._log.chosen(asked)) as letters:
            async for chunk in _chunks(letters):
                sent, failures = await self._sent_again(chunk, edited, fix_key)
                await self._mark(sent, Status.RETRIED)
                _count(done, chunk, sent)
                _raise_first(failures)
        return done

    async def drop(self, asked: Asked) -> Done:
        """Say that nothing is to be done with these letters."""
        done = Done(missing=asked.ids)
        async with aclosing(self._log.chosen(asked)) as letters:
            async for chunk in _chunks(letters):
                await self._mark(chunk, Status.DROPPED)
                _count(done, chunk, chunk)
        return done

    async def _sent_again(
        self, letters: Sequence[Letter], edited: bytes | None, fix_key: bool
    ) -> tuple[list[Letter], list[BaseException | None]]:
        """Those whose records the broker took, and how the others failed; what cannot be sent is told."""
        made: list[tuple[Letter, ToSend]] = []
        for letter in letters:
            try:
                given = letter if edited is not None else await self._whole(letter)
                made.append((letter, again(given, edited, fix_key)))
            except (CannotRetry, Refused) as error:
                self._tell(letter.id, str(error))
        failures = await self._send([(message, None) for _, message in made])
        for (letter, _), failure in zip(made, failures, strict=True):
            if isinstance(failure, MessageSizeTooLargeError):
                self._tell(letter.id, "the broker finds its record too large; use --edit with a shorter one")
        taken = [letter for (letter, _), failure in zip(made, failures, strict=True) if failure is None]
        return taken, failures

    async def _whole(self, letter: Letter) -> Letter:
        """The letter with all of its record: what was cut is read where it stood. Raises CannotRetry."""
        if not letter.cut:
            return letter
        name, partition, offset = letter.id.rsplit("/", 2)
        if name != topic(self._settings, "turns"):
            raise CannotRetry(f"it was cut, and its record stands in {name}, which is not this run's")
        try:
            async with asyncio.timeout(ORIGINAL_SECONDS), history.reading(self._settings) as past:
                batches = [batch async for batch in past.records(int(partition), [int(offset)])]
        except TimeoutError:
            raise CannotRetry(f"it was cut, and {letter.id} could not be read in time; try again") from None
        except history.MissingTopics as error:
            raise CannotRetry(f"it was cut, and cannot be read where it stood: {error}") from None
        return whole(letter, next((message for batch in batches for message in batch), None))

    async def _mark(self, letters: Sequence[Letter], status: Status) -> None:
        now = dt.datetime.now(dt.UTC)
        # The partition is named: a key that is null would choose any.
        said = [(marked(one, status, self._by, now), one.partition) for one in letters]
        _raise_first(await self._send(said))

    async def _send(self, messages: Sequence[tuple[ToSend, int | None]]) -> list[BaseException | None]:
        """Send and wait for delivery; what became of each, None where it is there."""
        async with asyncio.timeout(REQUEST_TIMEOUT_SECONDS):
            sent = [await begun(self._producer, self._settings, given, place) for given, place in messages]
            results = await asyncio.gather(*sent, return_exceptions=True)
        return [result if isinstance(result, BaseException) else None for result in results]


def _raise_first(failures: Sequence[BaseException | None]) -> None:
    """Raise the first that is more than a record too large."""
    for failure in failures:
        if failure is not None and not isinstance(failure, MessageSizeTooLargeError):
            raise failure


def _count(done: Done, chunk: Sequence[Letter], dealt_with: Sequence[Letter]) -> None:
    done.count += len(dealt_with)
    done.refused += len(chunk) - len(dealt_with)
    done.missing -= {letter.id for letter in chunk}


async def _chunks(letters: AsyncIterator[Letter]) -> AsyncIterator[list[Letter]]:
    chunk: list[Letter] = []
    async for letter in letters:
        chunk.append(letter)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


@asynccontextmanager
async def working(settings: Settings, by: str, tell: Tell, ends: Ends | None = None) -> AsyncIterator[Desk]:
    """A Desk over the letters that stand there now, or stood there at the ends of another log.

    Raises NoLetters, KafkaError, TimeoutError and OSError.
    """
    # Not idempotent: aiokafka counts what the broker refuses as too large, and then waits for ever.
    options = {"acks": "all", "enable_idempotence": False, "max_request_size": MAX_REQUEST_BYTES}
    async with opened(settings, ends) as log, running(AIOKafkaProducer, settings, **options) as producer:
        yield Desk(settings, log, producer, by, tell)
