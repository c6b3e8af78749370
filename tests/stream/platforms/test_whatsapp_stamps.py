"""Stamps as locales write them, and what a file's dates say of their order."""

import datetime as dt

import pytest

from stream.platforms.sayings import DateOrder
from stream.platforms.whatsapp_stamps import DateEvidence, stamped
from tracker.records import Refused

DMY, MDY, YMD = DateOrder.DMY, DateOrder.MDY, DateOrder.YMD
NNBSP, LRM, NBSP = "\u202f", "\u200e", "\xa0"
EVENING = dt.datetime(2026, 10, 3, 21, 41)


@pytest.mark.parametrize(
    ("stamp", "order"),
    [
        ("03/10/2026, 21:41 - ", DMY),
        ("3/10/26, 21:41 - ", DMY),
        ("10/3/26, 9:41 PM - ", MDY),
        (f"10/3/26, 9:41{NNBSP}PM - ", MDY),
        ("10/3/26, 9:41 p.m. - ", MDY),
        ("3/10/26 9:41 p. m. - ", DMY),
        (f"3/10/26 9:41{NNBSP}p.{NBSP}m. - ", DMY),
        ("03/10/2026 21:41 - ", DMY),
        ("03/10/2026 à 21:41 - ", DMY),
        ("03.10.26, 21:41 - ", DMY),
        ("3. 10. 2026 21:41 - ", DMY),
        ("03-10-2026 21:41 - ", DMY),
        ("2026-10-03 21:41 - ", DMY),
        ("2026/10/03 21:41 - ", DMY),
        ("2026/10/3 下午9:41 - ", DMY),
        ("2026年10月3日 下午9:41 - ", DMY),
        ("2026. 10. 3. 오후 9:41 - ", DMY),
        ("26/10/03, 21:41 - ", YMD),
        ("[03/10/2026, 21:41:00] ", DMY),
        ("[03.10.26, 21:41:00] ", DMY),
        (f"{LRM}[10/3/26, 9:41:00{NNBSP}PM] ", MDY),
        ("[3.10.2026 klo 21.41.00] ", DMY),
        ("[2026/10/3 下午9:41:00] ", DMY),
        ("٠٣/١٠/٢٠٢٦، ٢١:٤١ - ", DMY),
    ],
)
def test_locales(stamp: str, order: DateOrder) -> None:
    found = stamped(stamp + "Ines: yes - 9:41")
    assert found is not None
    assert (found[0].local(order), found[1]) == (EVENING, "Ines: yes - 9:41")


@pytest.mark.parametrize(
    ("time", "hour"),
    [
        ("12:05 AM", 0),
        ("12:05 PM", 12),
        ("11:05 am", 11),
        ("1:05 pm", 13),
        ("12:05 a. m.", 0),
        ("12:05 p.m.", 12),
    ],
)
def test_a_clock_of_twelve_hours(time: str, hour: int) -> None:
    found = stamped(f"13/10/2026, {time} - Ines: yes")
    assert found is not None
    assert found[0].local(DMY).hour == hour


def test_seconds_are_kept() -> None:
    found = stamped("[13/10/2026, 21:41:59] Ines: yes")
    assert found is not None
    assert found[0].local(DMY).second == 59


@pytest.mark.parametrize(
    "line",
    [
        "",
        "yes",
        "21:41 - yes",
        "13/10/2026",
        "13/10/2026, 21:41",
        "[13/10/2026] yes",
        "1/2/3 of it",
        "13/10/2026, 21:41: x",
    ],
)
def test_other_lines_go_on_with_the_last_message(line: str) -> None:
    assert stamped(line) is None


@pytest.mark.parametrize(
    "stamp", ["31/02/2026, 21:41 - ", "13/13/2026, 21:41 - ", "01/01/2026, 25:41 - ", "0/0/0000, 1:00 - "]
)
def test_no_date_of_a_calendar(stamp: str) -> None:
    found = stamped(stamp)
    assert found is not None
    with pytest.raises(Refused, match="--dates"):
        found[0].local(DMY)


def order(*dates: str) -> DateOrder:
    evidence = DateEvidence()
    for date in dates:
        found = stamped(f"{date}, 12:00 - Ines: yes")
        assert found is not None
        evidence.see(found[0])
    return evidence.order()


@pytest.mark.parametrize(
    ("dates", "found"),
    [
        (["05/06/2026", "13/06/2026"], DMY),
        (["05/06/2026", "06/13/2026"], MDY),
        (["31/12/26"], DMY),
        (["2026-05-06"], YMD),
        (["2026/05/06", "2026/13/06"], YMD),
        (["99/05/06"], YMD),
        (["05.06.26"], DMY),
        (["30/11/2026", "01/12/2026"], DMY),
        (["05/06/2026", "01/07/2026"], DMY),  # as months first, it goes from May back to January
        (["06/05/2026", "07/01/2026"], MDY),
        ([], YMD),
    ],
)
def test_the_order_is_found_in_the_file(dates: list[str], found: DateOrder) -> None:
    assert order(*dates) == found


@pytest.mark.parametrize(
    "dates",
    [
        ["05/06/2026"],
        ["05/06/2026", "05/06/2026"],
        ["01/02/2026", "02/02/2026", "03/02/2026"],
        ["05/06/2026", "06/05/2026", "05/06/2026"],
        ["13/06/2026", "06/13/2026"],
    ],
)
def test_dates_that_decide_nothing_are_asked_for(dates: list[str]) -> None:
    with pytest.raises(Refused, match=r"date: .*--dates dmy or --dates mdy"):
        order(*dates)
