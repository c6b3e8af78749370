"""Which time a record counts at: its own, held to the broker's clock in live mode."""

import datetime as dt

import msgspec

from tracker.observations import Mark
from tracker.records import Reason, Refused


class Clock(msgspec.Struct, frozen=True):
    """How far a sender's clock may run ahead, and how far back the ledger reaches."""

    skew: dt.timedelta = dt.timedelta(minutes=1)
    reach: dt.timedelta = dt.timedelta(days=7)


def counted(
    sent_at: dt.datetime, receipt: dt.datetime | None, clock: Clock
) -> tuple[dt.datetime, tuple[Mark, ...]]:
    """The time a record counts at, and `clamped` where that is not its own.

    `receipt` is the broker's append time in live mode, None in a replay, whose turns are old by nature.
    Raises Refused (too_late) for a record older than the ledger reaches.
    """
    if receipt is None:
        return sent_at, ()
    if receipt - sent_at > clock.reach:
        remedy = f"live turns are at most {clock.reach.days} days old; use replay for history"
        raise Refused(
            Reason.TOO_LATE, "sent_at", f"time {(receipt - sent_at).days} days before receipt", remedy
        )
    if sent_at - receipt > clock.skew:
        return receipt, (Mark.CLAMPED,)
    return sent_at, ()
