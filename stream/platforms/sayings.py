"""What a person says of a file that does not say it itself."""

from enum import StrEnum
from zoneinfo import ZoneInfo

import msgspec

from tracker.records import Name, Reason, Refused


class DateOrder(StrEnum):
    """In which order a date's numbers stand: day, month, year."""

    DMY = "dmy"
    MDY = "mdy"
    YMD = "ymd"


class Sayings(msgspec.Struct, frozen=True):
    """Taken where the file is silent; what the file says itself comes first."""

    zone: ZoneInfo | None = None  # of times that name none; default: UTC
    dates: DateOrder | None = None
    conversation: Name | None = None
    file: str | None = None  # the file's own name, for a form whose files are conversations


UNSAID = Sayings()


def sayings(zone: str | None = None, dates: str | None = None, conversation: str | None = None) -> Sayings:
    """From a command line's words. Raises Refused, naming the option."""
    return Sayings(None if zone is None else _zone(zone), _dates(dates), _conversation(conversation))


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):  # unknown; a folder of zones; a path
        remedy = "name it as the IANA does: Europe/Berlin, America/Sao_Paulo, UTC"
        raise Refused(Reason.INVALID_VALUE, "--zone", "name of no time zone", remedy) from None


def _dates(word: str | None) -> DateOrder | None:
    if word is None:
        return None
    try:
        return DateOrder(word)
    except ValueError:
        remedy = f"one of {', '.join(DateOrder)}"
        raise Refused(Reason.INVALID_VALUE, "--dates", "no order of dates", remedy) from None


def _conversation(name: str | None) -> str | None:
    if name is not None and not name.strip():
        raise Refused(Reason.INVALID_VALUE, "--conversation", "empty string", "name the conversation")
    return name
