import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.pseudonyms import check, concealed, is_pseudonym, pseudonym
from tracker.records import (
    EPOCH,
    ClearTurns,
    CreateTurn,
    DeclareTarget,
    DeleteTurn,
    EditTurn,
    EraseHolder,
    OverrideStance,
    Reason,
    Record,
    Refused,
)
from tracker.stances import Stance

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
PLACE = {"conversation": "room", "sent_at": EPOCH + dt.timedelta(days=1), "tenant": "acme"}
NAMED: list[Record] = [
    CreateTurn(turn="t", holder="ann", text="hello", display_name="Ann", **PLACE),
    ClearTurns(id="c", holder="ann", **PLACE),
    OverrideStance(id="o", by="mod", reason="r", to=Stance.OPPOSE, holder="ann", target="t-1", **PLACE),
    EraseHolder(id="e", holder="ann", **PLACE),
]
NAMELESS: list[Record] = [
    EditTurn(turn="t", text="hello", **PLACE),
    DeleteTurn(turn="t", **PLACE),
    ClearTurns(id="c", **PLACE),
    DeclareTarget(id="d", proposition="p", **PLACE),
    OverrideStance(id="o", by="mod", reason="r", to=Stance.OPPOSE, turn="t", **PLACE),
]


def test_a_pseudonym_is_the_same_for_ever() -> None:
    assert pseudonym(KEY, "acme", "ann") == "p-03a688b9daaec66eff732beefe7635fa"


@given(st.text(), st.text())
def test_each_tenant_key_and_holder_has_another(tenant: str, holder: str) -> None:
    made = pseudonym(KEY, tenant, holder)
    assert is_pseudonym(made)
    others = [
        pseudonym(OTHER, tenant, holder),
        pseudonym(KEY, tenant + "x", holder),
        pseudonym(KEY, tenant, holder + "x"),
    ]
    assert made not in others


def test_tenant_and_holder_do_not_run_together() -> None:
    assert pseudonym(KEY, "a", "b/c") != pseudonym(KEY, "a/b", "c")


def test_a_short_key_is_none() -> None:
    with pytest.raises(ValueError, match="at least 32 bytes"):
        pseudonym(KEY[:31], "acme", "ann")


@pytest.mark.parametrize(
    "name", ["ann", "", "p-", "p-" + "g" * 32, "p-" + "A" * 32, "p-" + "a" * 33, " p-" + "a" * 32]
)
def test_what_is_a_name(name: str) -> None:
    assert not is_pseudonym(name)


@pytest.mark.parametrize("record", NAMED)
def test_a_name_in_clear_is_refused_and_can_be_concealed(record: Record) -> None:
    with pytest.raises(Refused) as refusal:
        check(record)
    assert (refusal.value.reason, refusal.value.field) == (Reason.IN_CLEAR, "holder")
    assert "ann" not in str(refusal.value)
    made = concealed(KEY, record)
    check(made)
    assert concealed(KEY, made) == made
    assert b"ann" not in repr(made).lower().encode()


def test_a_display_name_is_a_name() -> None:
    with pytest.raises(Refused, match="display_name"):
        check(
            CreateTurn(turn="t", holder=pseudonym(KEY, "acme", "ann"), text="x", display_name="Ann", **PLACE)
        )


@pytest.mark.parametrize("record", NAMELESS)
def test_who_names_nobody_stays(record: Record) -> None:
    check(record)
    assert concealed(KEY, record) is record
