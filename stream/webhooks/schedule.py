"""What becomes of a delivery after an attempt: pure, on the schedule of Standard Webhooks 1.0.0.

2xx is a success; 410 says that nobody is there any more, and disables the webhook; all else is tried again,
not before the receiver wants it (Retry-After), until the schedule ends. A redirect is no success, and is
never followed.
"""

import datetime as dt
import enum
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import msgspec

# Seconds after each attempt that failed: 5 s, 5 min, 30 min, then hours; about three days in all.
WAITS = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
JITTER = 0.1  # of a wait, at most, on top of it: receivers that come back are not met by all at once
LONGEST_WAIT = dt.timedelta(days=1)  # that a receiver may ask for


class State(enum.StrEnum):
    """Of a delivery."""

    WAITING = "waiting"  # for its first attempt, or for the next one
    DELIVERED = "delivered"
    FAILED = "failed"  # all attempts are used up: it is kept, and may be sent again by hand
    GONE = "gone"  # 410: the webhook is disabled


class Answer(msgspec.Struct, frozen=True):
    """How an attempt ended."""

    status: int | None  # None: no answer at all
    retry_after: str | None = None  # the header as it stands


class Outcome(msgspec.Struct, frozen=True):
    """What a delivery is after an attempt, and when the next one is due."""

    state: State
    due: dt.datetime | None = None


def after(answer: Answer, attempts: int, now: dt.datetime, chance: float) -> Outcome:
    """After the attempt that makes so many, counted from 1; `chance` from 0 to 1 spreads the waits."""
    status = answer.status or 0
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return Outcome(State.DELIVERED)
    if status == HTTPStatus.GONE:
        return Outcome(State.GONE)
    if attempts > len(WAITS):
        return Outcome(State.FAILED)
    wait = dt.timedelta(seconds=WAITS[attempts - 1] * (1 + JITTER * chance))
    return Outcome(State.WAITING, now + max(wait, _asked(answer.retry_after, now)))


def _asked(retry_after: str | None, now: dt.datetime) -> dt.timedelta:
    """How long a receiver wants to be left alone (RFC 9110, 10.2.3: seconds or a date)."""
    if retry_after is None:
        return dt.timedelta()
    return min(max(_wait(retry_after.strip(), now), dt.timedelta()), LONGEST_WAIT)


def _wait(text: str, now: dt.datetime) -> dt.timedelta:
    if text.isdecimal():
        return min(dt.timedelta(seconds=int(text[:9])), LONGEST_WAIT)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return dt.timedelta()
    return date.replace(tzinfo=date.tzinfo or dt.UTC) - now
