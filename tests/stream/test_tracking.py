import msgspec
import pytest

from stream import isolation
from stream.platforms import Line
from stream.processor import Bound, Processor
from stream.store.memory import MemoryStore
from stream.store.port import ConversationKey, Need
from stream.tracking import BATCH_LINES, PATIENCE, GaveUp, track
from tests.stream.fakes import START, CountingReader, target, turn
from tracker.conversation import Rules
from tracker.records import DeleteTurn, EditTurn, Reason, Refused

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


async def test_corrections_print_what_they_retract_and_what_holds_in_its_place() -> None:
    edited = EditTurn(conversation="a", turn="0", text="+0", sent_at=START)
    deleted = DeleteTurn(conversation="a", turn="1", sent_at=START)
    store = MemoryStore("track")
    processor = Processor(store, CountingReader(), Rules())
    lines, found = [*dialogue(2), Line(9, edited), Line(10, deleted)], list[str]()
    async for _, events in track(lines, processor, store, lambda number, why: None):
        found += [msgspec.json.decode(event)["type"].rpartition(".")[2] for event in events]
    assert found == [
        "established", "flipped", "retracted", "retracted", "established", "flipped", "retracted",
    ]  # fmt: skip


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
    monkeypatch.setattr(isolation, "PAUSE_SECONDS", 0.0)
    _, turns, refused = await tracked(dialogue(5), CountingReader(breaks=frozenset({"2"})))
    assert turns == ["0", "1", "4"]
    assert refused == [(6, "failed")]


async def test_an_engine_that_breaks_on_everything_is_given_up() -> None:
    with pytest.raises(GaveUp, match="the engine failed: RuntimeError"):
        await tracked(dialogue(3), CountingReader(breaks=frozenset({"any"})))


async def test_an_empty_file() -> None:
    assert await tracked([]) == ([], [], [])


@pytest.mark.parametrize(("waves", "read"), [(1, ["5", "6"]), (64, [])])
async def test_a_found_target_comes_back_before_what_is_left_of_its_batch(
    waves: int, read: list[str]
) -> None:
    store = MemoryStore("track")
    reader, rules = CountingReader(propositions=["whether tea"]), Rules(finds=True)
    processor = Processor(store, reader, rules, bound=Bound(waves=waves))
    lines = [Line(number, turn(str(number), holder=str(number))) for number in range(1, 7)]
    turns = [
        msgspec.json.decode(event)["data"]["turn"]
        async for _, events in track(lines, processor, store, lambda *refused: pytest.fail(str(refused)))
        for event in events
    ]
    assert turns == read
    [kept] = await store.load([Need(ConversationKey("default", "a"))])
    assert [target.proposition for target in kept.conversation.header.targets] == ["whether tea"]
    assert kept.conversation.header.awaited == ()


async def test_a_found_target_that_is_refused_names_the_line_that_was_reached() -> None:
    store, refused = MemoryStore("track"), list[tuple[int, str]]()
    processor = Processor(
        store, CountingReader(propositions=["whether tea"]), Rules(finds=True), bound=Bound(waves=64)
    )
    three = [target(proposition=f"whether {number}") for number in range(3)]
    lines = [Line(number, turn(str(number))) for number in range(1, 4)]
    lines += [Line(4, turn("4")), *(Line(5, record) for record in three)]
    async for _ in track(lines, processor, store, lambda line, why: refused.append((line, why.reason))):
        pass
    assert refused == [(5, "too_many_targets")]
