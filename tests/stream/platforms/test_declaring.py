"""Declaring propositions: before each conversation's first turn, in bounded memory; wrong ones refused."""

import datetime as dt
from collections.abc import Iterator
from itertools import islice

import pytest

from stream.platforms import Line, declare, declaring
from stream.platforms.recent import Recent
from tracker.records import ClearTurns, CreateTurn, DeclareTarget, Reason, Refused, record_id

NOON = dt.datetime(2026, 11, 29, 12, tzinfo=dt.UTC)


def line(number: int, conversation: str, tenant: str = "default") -> Line:
    at = NOON + dt.timedelta(seconds=number)
    turn = CreateTurn(
        conversation=conversation, tenant=tenant, sent_at=at, turn=str(number), holder="ada", text="hi"
    )
    return Line(number, turn)


def shape(lines: Iterator[Line]) -> list[tuple[int, str]]:
    return [(each.number, each.result.conversation + type(each.result).__name__[0]) for each in lines]  # type: ignore[union-attr]


def test_a_conversation_is_declared_before_its_first_turn_only() -> None:
    lines = declare([line(1, "a"), line(2, "b"), line(3, "a")], ["p", "q"])
    assert shape(lines) == [(1, "aD"), (1, "aD"), (1, "aC"), (2, "bD"), (2, "bD"), (2, "bC"), (3, "aC")]


def test_the_target_has_its_turns_tenant_and_time() -> None:
    first = next(declare([line(5, "a", "school")], ["p"])).result
    assert isinstance(first, DeclareTarget)
    assert (first.tenant, first.proposition) == ("school", "p")
    assert first.sent_at == NOON + dt.timedelta(seconds=5)


def test_tenants_have_conversations_of_their_own() -> None:
    assert len(list(declare([line(1, "a"), line(2, "a", "school")], ["p"]))) == 4


def test_other_lines_pass_and_declare_nothing() -> None:
    refused = Line(1, Refused(Reason.NOT_JSON, "value", "x", "y"))
    clear = Line(2, ClearTurns(conversation="a", sent_at=NOON, id="c"))
    assert list(declare([refused, clear], ["p"])) == [refused, clear]


def test_without_propositions_the_lines_stay_as_they_are() -> None:
    lines = [line(1, "a"), line(2, "b")]
    assert list(declare(lines, [])) == lines


def test_lines_are_taken_one_by_one() -> None:
    endless = (line(number, "a") for number in iter(int, 1))
    assert len(list(islice(declare(endless, ["p"]), 3))) == 3


def test_a_forgotten_conversation_is_declared_again_as_a_repetition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declaring, "Recent", lambda: Recent(limit=1))
    found = list(declare([line(1, "a"), line(2, "b"), line(3, "a")], ["p"]))
    targets = [each.result for each in found if isinstance(each.result, DeclareTarget)]
    assert [target.conversation for target in targets] == ["a", "b", "a"]
    assert record_id(targets[0]) == record_id(targets[2])


@pytest.mark.parametrize(
    ("propositions", "reason"),
    [
        (["a", "b", "c", "d"], Reason.TOO_MANY_TARGETS),
        ([""], Reason.EMPTY_TEXT),
        ([" "], Reason.EMPTY_TEXT),
        (["a", "猫" * 342], Reason.TOO_LONG),
        (["\udcff"], Reason.LONE_SURROGATE),
    ],
)
def test_wrong_propositions_are_refused_before_anything_is_read(
    propositions: list[str], reason: Reason
) -> None:
    with pytest.raises(Refused) as caught:
        declare(iter([]), propositions)
    assert (caught.value.reason, caught.value.field) == (reason, "proposition")


def test_memory_keeps_what_was_put_last() -> None:
    recent: Recent[int] = Recent(limit=2)
    assert [recent.put(("t", name), n) for n, name in enumerate("abab")] == [True, True, False, False]
    assert recent.put(("t", "a"), 4) is False
    assert recent.put(("t", "c"), 5) is True
    assert [recent.get(("t", name)) for name in "abc"] == [4, None, 5]
