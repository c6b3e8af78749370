"""Times as platforms write them, as moments in UTC."""

import datetime as dt
from zoneinfo import ZoneInfo

import structlog

from tracker.records import EPOCH, Reason, Refused

log = structlog.get_logger(__name__)

_SECOND = dt.timedelta(seconds=1)


def since_epoch(field: str, count: float, unit: dt.timedelta) -> dt.datetime:
    """So many units after 1970 began. Raises Refused, naming the field."""
    try:
        return EPOCH + count * unit
    except (OverflowError, ValueError):  # beyond the calendar; no number
        raise _beyond(field) from None


class LocalClock:
    """Local times without a zone, in the order of a file, as moments that keep that order.

    An hour that comes twice, when the clock goes back, is the second one where the first is over. A time
    that never was, when the clock goes forward, is the moment of that change. Without a zone it is UTC; it
    says so.
    """

    def __init__(self, zone: ZoneInfo | None) -> None:
        self._zone, self._last = zone or ZoneInfo("UTC"), EPOCH
        self._told = zone is not None

    def moment(self, field: str, local: dt.datetime) -> dt.datetime:
        """The moment of a local time. Raises Refused, naming the field."""
        if not self._told:
            log.warning(
                "platforms.zone_assumed", zone="UTC", remedy="--zone says in which the file was written"
            )
            self._told = True
        try:
            first, second = (self._utc(local, fold) for fold in (0, 1))
        except OverflowError:
            raise _beyond(field) from None
        if first > second:
            first = self._change(second, first)
        elif first < self._last:
            first = second
        self._last = first
        return first

    def restart(self) -> None:
        """Another conversation begins, with an order of its own."""
        self._last = EPOCH

    def _utc(self, local: dt.datetime, fold: int) -> dt.datetime:
        return local.replace(tzinfo=self._zone, fold=fold).astimezone(dt.UTC)

    def _change(self, before: dt.datetime, after: dt.datetime) -> dt.datetime:
        """When the zone's offset changed between the two, to the second."""
        offset = before.astimezone(self._zone).utcoffset()
        while after - before > _SECOND:
            middle = before + (after - before) // _SECOND // 2 * _SECOND
            if middle.astimezone(self._zone).utcoffset() == offset:
                before = middle
            else:
                after = middle
        return after


def _beyond(field: str) -> Refused:
    return Refused(Reason.INVALID_VALUE, field, "time outside the years 1 to 9999", "send the real time")
