from collections.abc import Sequence

import pytest

from models.execution import EngineFailed
from models.reader import ObserveRequest, ReaderUnavailable
from stream import isolation, waves
from stream.chain import Chain
from stream.store.memory import MemoryStore
from tests.stream.fakes import CountingReader, chains, items, target, turn
from tracker import keys
from tracker.conversation import Rules
from tracker.observations import Observation
from tracker.records import Record
from tracker.stances import Stance

RULES = Rules()
ROOMS = ("a", "b", "c")


async def started(given: Sequence[Record] = ()) -> list[Chain]:
    """Chains of three rooms, each with its target declared and its first turn applied."""
    records = [record for room in ROOMS for record in (target(room), turn("1", room=room))]
    found = await chains(MemoryStore("r"), [*records, *given])
    for _ in range(2):
        await waves.run(found, CountingReader(), RULES)
    return found


def seconds(text: str = "-1") -> list[Record]:
    return [turn(f"2{room}", text, room=room) for room in ROOMS]


async def test_a_wave_asks_once_to_observe_and_once_to_explain() -> None:
    found, reader = await started(seconds()), CountingReader()
    await waves.run(found, reader, RULES)
    assert reader.observed == [["2a", "2b", "2c"]]
    assert reader.explained == [["2a", "2b", "2c"]]
    assert all(chain.finished for chain in found)


async def test_nothing_is_asked_where_nothing_is_to_be_read() -> None:
    found, reader = await chains(MemoryStore("r"), [target(), turn("1", room="no target")]), CountingReader()
    await waves.run(found, reader, RULES)
    assert reader.observed == reader.explained == []
    assert [chain.conversation.header.version for chain in found] == [1, 1]


async def test_the_reader_sees_the_state_and_the_window_before_the_turn() -> None:
    seen: list[ObserveRequest] = []

    class Looking(CountingReader):
        async def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
            seen.extend(requests)
            return await super().observe(requests)

    await waves.run(await started(seconds()), Looking(), RULES)
    assert {request.state for request in seen} == {Stance.SUPPORT}
    assert {tuple(each.turn for each in request.window) for request in seen} == {("1",)}


async def test_a_rejected_turn_leaves_alone_and_the_rest_of_the_wave_lives() -> None:
    found, reader = await started(seconds()), CountingReader(rejects=frozenset({"2b"}))
    await waves.run(found, reader, RULES)
    assert reader.observed == [["2a", "2b", "2c"], ["2a"], ["2b", "2c"], ["2b"], ["2c"]]
    assert reader.explained == [["2a", "2c"]]
    states = [chain.conversation.holders["ann"] for chain in found]
    assert [next(iter(state.values())).stance for state in states] == ["oppose", "support", "oppose"]
    assert [[refusal.refused.reason for refusal in chain.refusals] for chain in found] == [[], ["failed"], []]


async def test_a_flip_that_cannot_be_explained_is_refused_alone() -> None:
    found, reader = await started(seconds()), CountingReader(explains_not=frozenset({"2c"}))
    await waves.run(found, reader, RULES)
    assert [len(chain.refusals) for chain in found] == [0, 0, 1]
    assert [chain.conversation.header.version for chain in found] == [3, 3, 2]


@pytest.mark.parametrize("at", ["observe", "explain"])
async def test_an_outage_moves_no_chain(at: str) -> None:
    found = await started(seconds())
    reader = CountingReader(away=lambda seen: at == "observe" or bool(seen.explained))
    before = [(chain.done, chain.conversation) for chain in found]
    with pytest.raises(ReaderUnavailable):
        await waves.run(found, reader, RULES)
    assert [(chain.done, chain.conversation) for chain in found] == before
    assert not any(chain.refusals for chain in found)


async def test_an_answer_of_another_turn_moves_nothing_and_refuses_nothing() -> None:
    class Mixed(CountingReader):
        async def observe(self, requests: Sequence[ObserveRequest]) -> list[Observation]:
            return (await super().observe(requests))[::-1]

    found = await started(seconds())
    with pytest.raises(ReaderUnavailable):
        await waves.run(found, Mixed(), RULES)
    assert {chain.conversation.header.version for chain in found} == {2}


async def test_a_turn_that_breaks_the_engine_is_refused_alone_after_so_many_attempts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(isolation, "PAUSE_SECONDS", 0.0)
    found, reader = await started(seconds()), CountingReader(breaks=frozenset({"2b"}))
    await waves.run(found, reader, RULES, 3)
    asked = [turns for turns in reader.observed if turns != ["0"]]
    assert asked == [["2a", "2b", "2c"], ["2a"], ["2b", "2c"], ["2b"], ["2b"], ["2b"], ["2c"]]
    assert [len(chain.refusals) for chain in found] == [0, 1, 0]
    [refusal] = found[1].refusals
    assert refusal.refused.got == "the engine failed: RuntimeError, 3 times"


async def test_an_engine_that_breaks_on_a_harmless_turn_too_refuses_nothing() -> None:
    found, reader = await started(seconds()), CountingReader(breaks=frozenset({"any"}))
    with pytest.raises(EngineFailed):
        await waves.run(found, reader, RULES)
    assert reader.observed == [["2a", "2b", "2c"], ["0"]]
    assert not any(chain.refusals for chain in found)


FINDS = Rules(finds=True)


def talk(turns: int, start: int = 1) -> list[Record]:
    return [turn(str(number), "hm", room="talk") for number in range(start, start + turns)]


async def found(reader: CountingReader, given: Sequence[Record], attempts: int = 3) -> Chain:
    [chain] = await chains(MemoryStore("r"), given)
    while not chain.finished:
        await waves.run([chain], reader, FINDS, attempts)
    return chain


async def test_the_cartographer_is_shown_the_window_with_the_turn_that_prompts_it() -> None:
    reader = CountingReader(propositions=["whether tea"])
    chain = await found(reader, talk(5))
    assert [[shown.turn for shown in asked.turns] for asked in reader.asked] == [["1", "2", "3", "4"]]
    assert [len(outcome.found) for outcome in chain.outcomes] == [0, 0, 0, 1, 0]
    [record] = chain.outcomes[3].found
    assert (record.id, record.proposition) == (keys.found_id("create/4/0", "declare"), "whether tea")
    assert (record.conversation, record.sent_at) == ("talk", talk(4)[3].sent_at)


async def test_where_nothing_is_found_it_is_asked_again_but_not_for_ever() -> None:
    reader = CountingReader()
    chain = await found(reader, talk(40))
    assert [asked.turns[-1].turn for asked in reader.asked] == ["4", "8", "12"]
    assert not any(outcome.found for outcome in chain.outcomes)


async def test_a_refused_proposal_finds_nothing_and_costs_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "PAUSE_SECONDS", 0.0)
    for reader in (
        CountingReader(propositions=["whether tea"], proposes_not=frozenset({"4"})),
        CountingReader(propositions=["whether tea"], breaks_on_proposing=frozenset({"4"})),
    ):
        chain = await found(reader, talk(8))
        assert (len(chain.outcomes), chain.refusals) == (8, [])
        assert [len(outcome.found) for outcome in chain.outcomes] == [0] * 7 + [1]


async def test_a_proposal_that_is_refused_takes_none_of_its_neighbours_down() -> None:
    given = [turn(f"{number}{room}", "hm", room=room) for number in range(1, 5) for room in ROOMS]
    found, reader = await chains(MemoryStore("r"), given), CountingReader()
    reader.propositions, reader.proposes_not = ["whether tea"], frozenset({"4b"})
    for _ in range(4):
        await waves.run(found, reader, FINDS)
    assert [len(chain.outcomes[3].found) for chain in found] == [1, 0, 1]


async def test_an_outage_of_the_cartographer_moves_no_chain() -> None:
    [chain] = await chains(MemoryStore("r"), talk(4))
    reader = CountingReader(away=lambda seen: len(seen.asked) == 1)
    for _ in range(3):
        await waves.run([chain], reader, FINDS)
    with pytest.raises(ReaderUnavailable):
        await waves.run([chain], reader, FINDS)
    assert (chain.done, chain.refusals) == (3, [])


async def test_a_found_target_is_asked_about_again_and_gives_way() -> None:
    reader = CountingReader(propositions=["whether tea", "whether milk"])
    chain = await found(reader, talk(4))
    [first] = chain.outcomes[3].found
    chain.items += items([first, *talk(10, 5)])
    while not chain.finished:
        await waves.run([chain], reader, FINDS)
    assert [asked.proposition for asked in reader.asked] == ["", "whether tea"]
    [after] = [outcome for outcome in chain.outcomes[4:] if outcome.found]
    assert after.journal.entry.arrival == 12
    assert [(record.proposition, record.status) for record in after.found] == [
        ("whether tea", "retired"),
        ("whether milk", "active"),
    ]
