"""Ids that are made: the same again, and different for equals."""

import datetime as dt

from stream.platforms.ordinals import Ordinals

NOON = dt.datetime(2026, 10, 13, 12, tzinfo=dt.UTC)


def ids(*texts: str, speaker: str = "ines", conversation: str = "quay", at: dt.datetime = NOON) -> list[str]:
    ordinals = Ordinals()
    return [ordinals.turn("whatsapp", conversation, speaker, at, text) for text in texts]


def test_the_same_file_has_the_same_ids() -> None:
    assert ids("yes", "no", "yes") == ids("yes", "no", "yes")


def test_equals_are_told_apart_by_their_order() -> None:
    assert len(set(ids("yes", "yes", "yes"))) == 3


def test_a_longer_export_keeps_the_ids_of_the_shorter() -> None:
    assert ids("yes", "no", "yes")[:2] == ids("yes", "no")


def test_all_that_makes_a_turn_makes_its_id() -> None:
    others = [
        ids("yes"), ids("yes "), ids("yes", speaker="bo"), ids("yes", conversation="pier"),
        ids("yes", at=NOON + dt.timedelta(seconds=1)),
    ]  # fmt: skip
    assert len({other[0] for other in others}) == len(others)
