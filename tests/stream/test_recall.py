from collections.abc import Sequence

import msgspec
import pytest

from models.language.rule import RuleEngine
from models.reader import ExplainRequest, ObserveRequest, ProposeRequest, ReaderUnavailable
from stream.recall import RecallingReader
from tests.stream.fakes import START, CountingReader
from tracker.context import WindowTurn
from tracker.conversation import Header
from tracker.ledger import JournalEntry, LedgerEntry
from tracker.observations import Explanation, Observation
from tracker.stances import Stance


def request(name: str = "1", text: str = "+1", state: Stance = Stance.UNKNOWN) -> ObserveRequest:
    return ObserveRequest("a", WindowTurn(name, "ann", text), 0, "t", "whether x", state)


def read(asked: ObserveRequest) -> Observation:
    return RuleEngine().observe([asked])[0]


def explained(asked: ObserveRequest, after: Stance) -> tuple[ExplainRequest, Explanation]:
    question = ExplainRequest(asked, read(asked), after)
    return question, RuleEngine().explain([question])[0]


def journal(
    observations: Sequence[Observation],
    explanations: Sequence[Explanation] = (),
    changed: Sequence[LedgerEntry] = (),
    under: tuple[Stance, ...] = (),
) -> JournalEntry:
    entry = LedgerEntry(
        id="x",
        op="create",
        arrival=1,
        sent_at=START,
        observations=tuple(observations),
        explanations=tuple(explanations),
        under=under,
    )
    return JournalEntry(
        tenant="default",
        run="r",
        conversation="a",
        source="",
        entry=entry,
        changed=tuple(changed),
        header=Header(),
    )


async def test_what_was_read_is_not_read_again_and_the_rest_keeps_its_place() -> None:
    kept = msgspec.structs.replace(read(request()), relevance=0.25)  # as the model would never say it
    inner = CountingReader()
    asked = [request("0"), request(), request("2")]
    found = await RecallingReader(inner, [journal([kept])]).observe(asked)
    assert [one.turn for one in found] == ["0", "1", "2"]
    assert found[1].relevance == 0.25
    assert inner.observed == [["0", "2"]]


@pytest.mark.parametrize(
    "other",
    [
        request(state=Stance.OPPOSE),
        msgspec.structs.replace(request(), revision=1),
        msgspec.structs.replace(request(), target="t-2"),
        msgspec.structs.replace(request(), conversation="b"),
        msgspec.structs.replace(request(), tenant="other"),
    ],
)
async def test_another_question_is_asked(other: ObserveRequest) -> None:
    inner = CountingReader()
    await RecallingReader(inner, [journal([read(request())])]).observe([other])
    assert inner.observed == [["1"]]


async def test_what_a_correction_read_anew_is_known_from_the_entries_it_changed() -> None:
    anew = read(request(state=Stance.OPPOSE))
    later = msgspec.structs.replace(journal([anew]).entry, arrival=2)
    inner = CountingReader()
    recalling = RecallingReader(inner, [journal([], changed=[later])])
    assert await recalling.observe([request(state=Stance.OPPOSE)]) == [anew]
    assert inner.observed == []


async def test_a_flip_is_explained_as_it_was_from_the_same_state() -> None:
    asked = request(state=Stance.OPPOSE)
    question, told = explained(asked, Stance.SUPPORT)
    kept = msgspec.structs.replace(told, rationale="as it was told")
    inner = CountingReader()
    recalling = RecallingReader(inner, [journal([read(asked)], [kept])])
    assert await recalling.explain([question]) == [kept]
    assert inner.explained == []
    other, _ = explained(request(state=Stance.NEUTRAL), Stance.SUPPORT)
    await recalling.explain([other])
    assert inner.explained == [["1"]]


async def test_a_flip_under_another_state_than_was_shown_is_found_by_the_state_it_was_folded_under() -> None:
    shown, folded = request(state=Stance.UNKNOWN), request(state=Stance.OPPOSE)
    question, told = explained(folded, Stance.SUPPORT)
    entry = journal([read(shown)], [told], under=(Stance.OPPOSE,))
    inner = CountingReader()
    assert await RecallingReader(inner, [entry]).explain([question]) == [told]
    assert inner.explained == []


async def test_a_flip_of_another_revision_is_explained_anew() -> None:
    asked = request(state=Stance.OPPOSE)
    _, told = explained(asked, Stance.SUPPORT)
    inner = CountingReader()
    edited = msgspec.structs.replace(asked, revision=1)
    question, _ = explained(edited, Stance.SUPPORT)
    await RecallingReader(inner, [journal([read(asked)], [told])]).explain([question])
    assert inner.explained == [["1"]]


@pytest.mark.parametrize("awaited", [(), ("found-1",)])
async def test_targets_are_looked_for_only_where_some_were_found(awaited: tuple[str, ...]) -> None:
    entry = msgspec.structs.replace(journal([]), header=Header(awaited=awaited))
    inner = CountingReader(propositions=["whether x"])
    question = ProposeRequest("a", (WindowTurn("1", "ann", "x"),))
    [proposal] = await RecallingReader(inner, [entry]).propose([question])
    assert proposal.proposition == ("whether x" if awaited else None)
    assert len(inner.asked) == bool(awaited)


async def test_a_model_that_is_away_is_an_outage_here_too() -> None:
    recalling = RecallingReader(CountingReader(away=lambda reader: True), [])
    with pytest.raises(ReaderUnavailable):
        await recalling.observe([request()])
