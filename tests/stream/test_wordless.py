import msgspec

from models.reader import ExplainRequest, ObserveRequest, ProposeRequest
from stream.wordless import Wordless
from tests.stream.fakes import CountingReader
from tracker.context import WindowTurn
from tracker.stances import Stance

TURN = WindowTurn("1", "ann", "+1")
OPEN = ObserveRequest("a", TURN, 0, "t", "whether x", Stance.UNKNOWN)
PRIVATE = msgspec.structs.replace(OPEN, tenant="acme")


async def test_the_rationales_of_some_tenants_are_left_out() -> None:
    inner = CountingReader(propositions=["whether x"])
    reader = Wordless(inner, frozenset({"acme"}))
    observations = await reader.observe([PRIVATE, OPEN])
    assert observations == await inner.observe([PRIVATE, OPEN])
    asked = [ExplainRequest(one, observations[0], Stance.SUPPORT) for one in (PRIVATE, OPEN)]
    expected = await inner.explain(asked)
    quiet, open_ = await reader.explain(asked)
    assert open_ == expected[1]
    assert open_.rationale
    assert quiet == msgspec.structs.replace(expected[0], rationale="")
    [proposal] = await reader.propose([ProposeRequest("a", (TURN,), tenant="acme")])
    assert proposal.proposition == "whether x"
    assert await reader.proposes()
    await reader.close()
