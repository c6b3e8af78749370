"""Pins: a person's word on a holder's state, which holds until it is lifted or expires."""

import datetime as dt

import msgspec

from tracker.stances import Stance

MAX_PINS = 64  # at a time: all of them stand in every header and journal entry


class Pin(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a holder's state toward a target is said to be; observations fold beneath it and emit nothing."""

    holder: str
    target: str
    to: Stance
    arrival: int  # of the override that set it
    expires_at: dt.datetime | None = None


Pins = tuple[Pin, ...]


def find(pins: Pins, holder: str, target: str) -> Pin | None:
    """The pin on a holder's state toward a target."""
    return next((pin for pin in pins if (pin.holder, pin.target) == (holder, target)), None)


def pinned(pins: Pins, holder: str) -> tuple[str, ...]:
    """The targets toward which a holder's state is pinned."""
    return tuple(pin.target for pin in pins if pin.holder == holder)


def expired(pins: Pins, sent_at: dt.datetime) -> Pins:
    """The pins that a record sent then unpins."""
    return tuple(pin for pin in pins if pin.expires_at is not None and sent_at >= pin.expires_at)


def placed(pins: Pins, pin: Pin) -> Pins:
    """The pins with one more, in the place of the one before it on the same state."""
    return (*without(pins, find(pins, pin.holder, pin.target)), pin)


def without(pins: Pins, *ended: Pin | None) -> Pins:
    """The pins that are left."""
    return tuple(pin for pin in pins if pin not in ended)
