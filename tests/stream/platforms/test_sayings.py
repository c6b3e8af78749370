"""What a command line says of a file, or a word that names the option."""

from zoneinfo import ZoneInfo

import pytest

from stream.platforms.sayings import DateOrder, Sayings, sayings
from tracker.records import Refused


def test_words_become_what_they_mean() -> None:
    said = sayings("Europe/Berlin", "mdy", "room")
    assert said == Sayings(ZoneInfo("Europe/Berlin"), DateOrder.MDY, "room")
    assert sayings() == Sayings()


@pytest.mark.parametrize("zone", ["", "Berlin", "../etc/passwd", "/etc/localtime", "Europe", "a\0b", "é"])
def test_a_zone_that_is_none(zone: str) -> None:
    with pytest.raises(Refused) as refused:
        sayings(zone=zone)
    assert refused.value.field == "--zone"
    assert "Europe/Berlin" in refused.value.remedy


def test_an_order_that_is_none() -> None:
    with pytest.raises(Refused, match=r"--dates: .*dmy, mdy, ymd"):
        sayings(dates="dym")


def test_a_name_that_is_none() -> None:
    with pytest.raises(Refused, match="--conversation"):
        sayings(conversation=" ")
