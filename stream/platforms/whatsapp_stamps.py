"""The stamp before a message in WhatsApp's export: a date and a time as the phone's locale writes them.

`[31/12/2020, 21:41:05] ` on iOS, `31/12/2020, 21:41 - ` on Android, with as many variations as locales.
"""

import datetime as dt
import re

import msgspec

from stream.platforms.sayings import DateOrder
from tracker.records import Reason, Refused

_AM = ("am", "a.m.", "a. m.", "vorm.", "上午", "凌晨", "早上", "清晨", "오전", "午前")
_PM = ("pm", "p.m.", "p. m.", "nachm.", "下午", "晚上", "中午", "傍晚", "오후", "午後")
_HALF = "|".join(
    sorted((re.escape(word).replace(r"\ ", r"\s?") for word in (*_AM, *_PM)), key=len, reverse=True)
)
_MARKS = "\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff"
_STAMP = re.compile(
    rf"""[{_MARKS}\s]*(?P<bracket>\[)?
    (?P<first>\d{{1,4}}) (?P<by>[./\-年]) \s? (?P<second>\d{{1,2}}) [./\-月] \s? (?P<third>\d{{1,4}}) [.日]?
    (?:,|،|、)? [{_MARKS}\s]* (?:(?:à|às|a\s+las|um|at|klo|kl\.?)\s+)?
    (?P<before>{_HALF})? \s?
    (?P<hour>\d{{1,2}}) [:.] (?P<minute>\d{{2}}) (?:[:.](?P<s>\d{{2}}))?
    (?:\s?(?P<after>{_HALF}))?
    (?(bracket)\]|\s[-–]) (?:\s|$)""",
    re.VERBOSE | re.IGNORECASE,
)
_CENTURY = 2000  # WhatsApp is younger


class Stamp(msgspec.Struct, frozen=True):
    """A stamp's numbers, before it is known which is the day."""

    numbers: tuple[int, int, int]
    dotted: bool
    year_first: bool  # it has four digits
    time: tuple[int, int, int]
    half: str | None  # "am" or "pm" of a clock of twelve hours

    def local(self, order: DateOrder) -> dt.datetime:
        """The local time, its date read in that order. Raises Refused."""
        first, second, third = self.numbers
        year, month, day = {
            DateOrder.YMD: (first, second, third),
            DateOrder.MDY: (third, first, second),
            DateOrder.DMY: (third, second, first),
        }[DateOrder.YMD if self.year_first else order]
        hour, minute, seconds = self.time
        if self.half is not None:
            hour = hour % 12 + (12 if self.half == "pm" else 0)
        try:
            return dt.datetime(year + _CENTURY if year < 100 else year, month, day, hour, minute, seconds)
        except ValueError:
            remedy = f"--dates says the order, read here as {order}: {', '.join(DateOrder)}"
            raise Refused(Reason.INVALID_VALUE, "date", "no date or time of a calendar", remedy) from None


def stamped(line: str) -> tuple[Stamp, str] | None:
    """The stamp a message begins with, and the rest of its line; None where the line goes on with another."""
    found = _STAMP.match(line)
    if found is None:
        return None
    half = found["before"] or found["after"]
    stamp = Stamp(
        numbers=(int(found["first"]), int(found["second"]), int(found["third"])),
        dotted=found["by"] == ".",
        year_first=len(found["first"]) == 4,
        time=(int(found["hour"]), int(found["minute"]), int(found["s"] or 0)),
        half=None if half is None else _half(half),
    )
    return stamp, line[found.end() :]


def _half(word: str) -> str:
    plain = re.sub(r"\s", " ", word.casefold())
    return "am" if plain in _AM or plain.replace(".m", ". m") in _AM else "pm"


class DateEvidence:
    """What a file's dates say of their order, in memory that does not grow with it."""

    def __init__(self) -> None:
        self._most = (0, 0)
        self._dotted = self._any = False
        self._last: dict[DateOrder, tuple[int, int, int]] = {}
        self._back = {DateOrder.DMY: 0, DateOrder.MDY: 0}

    def see(self, stamp: Stamp) -> None:
        """Take another stamp into account."""
        if stamp.year_first:
            return
        first, second, year = stamp.numbers
        self._any, self._dotted = True, self._dotted or stamp.dotted
        self._most = (max(self._most[0], first), max(self._most[1], second))
        for order, date in ((DateOrder.DMY, (year, second, first)), (DateOrder.MDY, (year, first, second))):
            self._back[order] += date < self._last.get(order, date)
            self._last[order] = date

    def order(self) -> DateOrder:
        """The one order that fits. Raises Refused where several do, or none."""
        if not self._any or self._most[0] > 31:
            return DateOrder.YMD
        day_first, month_first = self._most[0] > 12, self._most[1] > 12
        if day_first and month_first:
            raise _undecided("dates that fit neither order, day or month first")
        if day_first or month_first:
            return DateOrder.DMY if day_first else DateOrder.MDY
        if self._dotted:  # every locale that writes dots puts the day first
            return DateOrder.DMY
        in_order = [order for order, back in self._back.items() if not back]
        if len(in_order) == 1:
            return in_order[0]
        raise _undecided("dates that fit both orders, day and month first")


def _undecided(got: str) -> Refused:
    return Refused(Reason.INVALID_VALUE, "date", got, "say which it is: --dates dmy or --dates mdy (or ymd)")
