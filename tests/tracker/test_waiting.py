"""A turn meets the corrections that came before it."""

import itertools

import pytest

from tests.tracker.strategies import at, create
from tracker.context import remembered
from tracker.ledger import LedgerEntry, Word
from tracker.stances import Stance
from tracker.waiting import met

TURN = remembered(create("m-1", "as it came"))
ENTRY = LedgerEntry(id="c", op="create", arrival=9, sent_at=at(0), turn="m-1", revision=2)
WORDS = [Word("mod", "because", to) for to in (Stance.SUPPORT, Stance.OPPOSE)]


def early(arrival: int, op: str, **rest: object) -> LedgerEntry:
    fields = {"id": f"r-{arrival}", "op": op, "arrival": arrival, "sent_at": at(0), "waits": True}
    return LedgerEntry(**(fields | rest))


EDITS = [early(n, "edit", revision=revision, text=f"edit {n}") for n, revision in enumerate((1, 2, 5, 5, 4))]


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_the_last_revision_counts_and_none_below_the_turns_own(order: tuple[int, ...]) -> None:
    entry, turn = met(ENTRY, TURN, [EDITS[at] for at in order])
    assert (entry.revision, turn.text) == (5, "edit 2")
    assert met(ENTRY, TURN, EDITS[:1]) == (ENTRY, TURN)


def test_of_one_revision_the_later_arrival_counts() -> None:
    assert met(ENTRY, TURN, EDITS)[1].text == "edit 3"


def test_the_last_word_counts_be_it_that_there_is_none() -> None:
    words = [early(at, "override", word=word) for at, word in enumerate([*WORDS, None])]
    assert met(ENTRY, TURN, words[:2])[0].word == WORDS[1]
    assert met(ENTRY, TURN, words)[0].word is None


def test_a_deletion_is_final() -> None:
    entry, _ = met(ENTRY, TURN, [early(1, "delete"), EDITS[2]])
    assert entry.gone
