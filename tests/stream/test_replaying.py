import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from stream import replaying
from stream.platforms import Line
from stream.replaying import CHUNK_RECORDS, Progress, default_run, drained, fingerprint, produce
from stream.store.port import Message
from tests.stream.fakes import MemorySender, target, turn
from tracker import keys, records
from tracker.parsing import parse_keyed
from tracker.records import Reason, Refused

WRONG = Refused(Reason.NOT_JSON, "value", "got", "remedy")


class KeptProgress:
    """Progress in memory, and all it was told."""

    def __init__(self, start: int = 0) -> None:
        self.told = [start]

    async def lines(self) -> int:
        return self.told[-1]

    async def reached(self, line: int) -> None:
        self.told.append(line)


async def produced(
    lines: list[Line], sender: Any = None, progress: Any = None, rate: float = 0.0
) -> tuple[int, MemorySender, list[int]]:
    sender, refused = sender or MemorySender(), list[int]()
    sent = await produce(
        lines, sender, progress or KeptProgress(), lambda number, _: refused.append(number), rate=rate
    )
    return sent, sender, refused


def file(turns: int) -> list[Line]:
    return [Line(number, turn(str(number))) for number in range(1, turns + 1)]


def sent_turns(sender: MemorySender) -> list[str]:
    return [getattr(records_of(message), "turn", "") for message in sender.sent]


def records_of(message: Message) -> Any:
    return parse_keyed(message.key, message.value)


async def test_progress_waits_for_a_redis_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    class Away(KeptProgress):
        left = 2

        async def reached(self, line: int) -> None:
            self.left -= 1
            if self.left >= 0:
                raise (TimeoutError, RedisConnectionError)[self.left]
            await super().reached(line)

    monkeypatch.setattr(replaying, "RETRY_SECONDS", 0.0)
    progress = Away()
    sent, sender, _ = await produced(file(3), progress=progress)
    assert (sent, len(sender.sent), progress.told) == (3, 3, [0, 3])


async def test_records_go_to_the_turns_topic_under_their_keys_and_in_order() -> None:
    sent, sender, refused = await produced([*file(3), Line(4, WRONG), Line(5, turn("5", room="ü/b"))])
    assert (sent, refused) == (4, [4])
    assert {message.topic for message in sender.sent} == {"turns"}
    assert sender.sent[-1].key == keys.conversation_key("default", "ü/b")
    assert sender.sent[0].value == records.encode(turn("1"))
    assert sent_turns(sender) == ["1", "2", "3", "5"]


async def test_it_goes_on_where_it_was_left() -> None:
    progress = KeptProgress()

    class Stopped(MemorySender):
        async def send(self, messages: Sequence[Message]) -> None:
            if len(self.sent) >= CHUNK_RECORDS:
                raise KeyboardInterrupt
            await super().send(messages)

    first = Stopped()
    with pytest.raises(KeyboardInterrupt):
        await produced(file(500), first, progress)
    assert progress.told == [0, CHUNK_RECORDS]
    _, second, _ = await produced(file(500), progress=progress)
    assert sent_turns(first) + sent_turns(second) == [str(number) for number in range(1, 501)]
    assert (await produced(file(500), progress=progress))[0] == 0


async def test_refused_lines_count_as_reached() -> None:
    progress = KeptProgress()
    await produced([Line(1, turn("1")), Line(7, WRONG)], progress=progress)
    assert progress.told == [0, 7]


async def test_progress_counts_whole_lines() -> None:
    """A line of 500 records, as a benchmark's dialogue is, is never left in its middle."""
    lines = [Line(1, target()), *(Line(2, turn(str(number))) for number in range(500)), Line(3, turn("x"))]
    progress = KeptProgress()
    await produced(lines, progress=progress)
    assert progress.told == [0, 2, 3]


async def test_a_broker_that_is_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "RETRY_SECONDS", 0.001)
    sender = MemorySender()
    sender.down = 3
    assert (await produced(file(5), sender))[0] == 5
    assert sent_turns(sender) == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize("rate", [100.0, 400.0])
async def test_no_more_records_a_second_than_asked_for(rate: float) -> None:
    sizes: list[int] = []

    class Sized(MemorySender):
        async def send(self, messages: Sequence[Message]) -> None:
            sizes.append(len(messages))
            await super().send(messages)

    began = time.monotonic()
    await produced(file(50), Sized(), rate=rate)
    took = time.monotonic() - began
    assert 50 / rate <= took < 50 / rate + 0.5
    assert max(sizes) <= rate / 4


async def test_drained_asks_until_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "DRAIN_POLL_SECONDS", 0.001)
    answers: list[int | Exception] = [7, KafkaConnectionError(), TimeoutError(), 3, 0]

    class Behind:
        async def records(self) -> int:
            if isinstance(answer := answers.pop(0), Exception):
                raise answer
            return answer

    await drained(Behind())  # type: ignore[arg-type]
    assert answers == []


async def test_progress_is_kept_in_redis_by_run_and_file(redis_url: str, topic_prefix: str) -> None:
    async with Redis.from_url(redis_url, protocol=2) as client:
        progress = Progress(client, topic_prefix, "a run", "file")
        assert await progress.lines() == 0
        await progress.reached(41)
        assert await Progress(client, topic_prefix, "a run", "file").lines() == 41
        assert await Progress(client, topic_prefix, "a run", "other").lines() == 0
        assert await Progress(client, topic_prefix, "other", "file").lines() == 0


def test_a_run_is_named_by_the_files_content(tmp_path: Path) -> None:
    one, same, other = (tmp_path / name for name in ("one", "same", "other"))
    one.write_bytes(b"x" * 1_000_000 + b"a")
    same.write_bytes(b"x" * 1_000_000 + b"a")
    other.write_bytes(b"x" * 1_000_000 + b"b")
    assert fingerprint(one) == fingerprint(same) != fingerprint(other)
    assert default_run(one).startswith("replay-")


async def test_what_may_be_found_is_waited_for_before_the_turns_it_is_for() -> None:
    sender, waits = MemorySender(), list[list[str]]()

    async def folded() -> None:
        waits.append(sent_turns(sender))

    progress = KeptProgress(2)
    sent = await produce(file(9), sender, progress, print, folded=folded)  # type: ignore[arg-type]
    assert sent == 7
    assert waits == [["3", "4"], ["3", "4", "5", "6", "7", "8"]]
    assert sent_turns(sender)[-1] == "9"
