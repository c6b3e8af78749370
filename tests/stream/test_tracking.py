import msgspec
import pytest

from stream import waves as module
from stream.platforms import Line
from stream.processor import Bound, Processor
from stream.store.memory import MemoryStore
from stream.tracking import BATCH_LINES, PATIENCE, GaveUp, track
from tests.stream.fakes import CountingReader, target, turn
from tracker.conversation import Rules
from tracker.records import Reason, Refused

WRONG = Refused(Reason.NOT_JSON, "value", "got", "remedy")


async def tracked(
    lines: list[Line], reader: CountingReader | None = None, waves: int = 64
) -> tuple[list[int], list[str], list[tuple[int, str]]]:
    """Lines a batch, the turns of its events, and the refusals."""
    store, refused = MemoryStore("track"), list[tuple[int, str]]()
    processor = Processor(store, reader or CountingReader(), Rules(), bound=Bound(waves=waves))
    taken, turns = [], []
    async for count, events in track(
        lines, processor, store, lambda number, why: refused.append((number, why.reason))
    ):
        taken.append(count)
        turns += [msgspec.json.decode(event)["data"]["turn"] for event in events]
    return taken, turns, refused


def dialogue(turns: int) -> list[Line]:
    """A target, and turns that each move their holder; the file has two lines before."""
    records = [turn(str(number), "+1" if number % 2 else "-1") for number in range(turns)]
    return [Line(3, target()), *(Line(number, record) for number, record in enumerate(records, 4))]


@pytest.mark.parametrize("waves", [1, 64])
async def test_every_event_once_and_in_order(waves: int) -> None:
    taken, turns, refused = await tracked(dialogue(150), waves=waves)
    assert taken == [BATCH_LINES, BATCH_LINES, 151 - 2 * BATCH_LINES]
    assert turns == [str(number) for number in range(150)]
    assert refused == []


async def test_refusals_say_their_line_wherever_they_arise() -> None:
    lines = [
        *dialogue(2),
        Line(50, WRONG),
        Line(51, turn("0", id="x")),
        Line(52, turn("bad")),
        Line(53, turn("2")),
    ]
    _, turns, refused = await tracked(lines, CountingReader(rejects=frozenset({"bad"})))
    assert turns == ["0", "1"]
    assert sorted(refused) == [(50, "not_json"), (51, "repeated_turn"), (52, "failed")]


async def test_a_reader_that_comes_back_is_waited_for() -> None:
    reader = CountingReader(away=lambda seen: len(seen.observed) % PATIENCE != 0)
    assert (await tracked(dialogue(3), reader))[1] == ["0", "1", "2"]


async def test_a_reader_that_stays_away_is_given_up() -> None:
    reader = CountingReader(away=lambda seen: True)
    with pytest.raises(GaveUp, match=f"{PATIENCE} times: away"):
        await tracked(dialogue(3), reader)
    assert len(reader.observed) == PATIENCE


async def test_a_turn_that_breaks_the_engine_is_refused_and_the_file_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.0)
    _, turns, refused = await tracked(dialogue(5), CountingReader(breaks=frozenset({"2"})))
    assert turns == ["0", "1", "4"]
    assert refused == [(6, "failed")]


async def test_an_engine_that_breaks_on_everything_is_given_up() -> None:
    with pytest.raises(GaveUp, match="the engine failed: RuntimeError"):
        await tracked(dialogue(3), CountingReader(breaks=frozenset({"any"})))


async def test_an_empty_file() -> None:
    assert await tracked([]) == ([], [], [])
