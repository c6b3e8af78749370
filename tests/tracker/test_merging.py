"""Rows and a journal with gaps give the states; all else that merging tells is tested with the rebuild."""

import pytest

from tests.tracker.living import Live
from tests.tracker.strategies import PROPOSITIONS, create, debate, target_of
from tracker import merging
from tracker.merging import Rows

TARGET = target_of(PROPOSITIONS[0]).id
LIVE = Live(debate(create("m-1", "+1", 1), create("m-2", "-1", 2, "çem"), create("m-3", "-1", 3)))


def test_an_entry_tells_whose_states_it_changed() -> None:
    declared, established, *_ = LIVE.journal
    assert list(merging.changes(declared)) == []
    assert [pair for pair, _, _ in merging.changes(established)] == [("ann", TARGET)]


def test_the_newest_word_counts_be_it_a_row_or_an_entry() -> None:
    for journal in (LIVE.journal, LIVE.journal[2:], LIVE.journal[:0]):
        found = merging.merged(LIVE.rows(), iter(journal), 4, 4)
        assert found is not None
        assert found.header == LIVE.kept[4].conversation.header
        assert found.holders == LIVE.kept[4].conversation.holders


@pytest.mark.parametrize(("gone", "told"), [([], True), ([1], True), ([2], False), ([3], False)])
def test_an_older_version_is_told_where_what_changed_since_had_been_told_just_before(
    gone: list[int], told: bool
) -> None:
    journal = [one for one in LIVE.journal if one.entry.arrival not in gone]
    found = merging.merged(LIVE.rows(), journal, 3, 4)
    assert (found is not None) is told
    assert found is None or found.holders == LIVE.kept[3].conversation.holders


def test_nothing_is_left_of_whom_nothing_is_told() -> None:
    found = merging.merged(LIVE.rows(), [], 4, 4, {"bo", "ann"})
    assert found is not None
    assert {holder for holder, states in found.holders.items() if not states} == {"bo"}
    assert merging.merged(Rows(), [], 4, 4) is None
