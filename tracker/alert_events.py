"""The alert events: CloudEvents 1.0 with deterministic ids, and without a sequence."""

import datetime as dt
import enum
from collections.abc import Sequence
from typing import Literal

import msgspec

from tracker import keys
from tracker.alert_rules import MOST_COUNT, Flip, Kind, Rule, Severity, Subject
from tracker.events import Event, TargetRef
from tracker.stances import Stance

LISTED = MOST_COUNT  # events and holders that an alert names: the newest, where there are more


class AlertType(enum.StrEnum):
    """The CloudEvents types."""

    RAISED = "volteface.alert.raised"
    WITHDRAWN = "volteface.alert.withdrawn"  # too few of its flips are left, since others were retracted


class Alert(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"before": "from", "after": "to"}
):
    """What a rule found. `target`, `from` and `to` stand there where all its flips have the same.

    `count` is how many flips made it, `events` are their ids, `holders` those who flipped, `source` who moved
    them, where the rule is about one. One that is withdrawn names the alert (`withdraws`), the retraction
    that was the cause, and nobody.
    """

    tenant: str
    run: str
    conversation: str
    rule: str
    kind: Kind
    severity: Severity
    target: TargetRef | msgspec.UnsetType = msgspec.UNSET
    before: Stance | msgspec.UnsetType = msgspec.UNSET
    after: Stance | msgspec.UnsetType = msgspec.UNSET
    holders: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    source: str | msgspec.UnsetType = msgspec.UNSET
    count: int | msgspec.UnsetType = msgspec.UNSET
    events: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    withdraws: str | msgspec.UnsetType = msgspec.UNSET
    cause: str | msgspec.UnsetType = msgspec.UNSET


class AlertEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A CloudEvent of an alert; `subject` is the rule's name, escaped."""

    specversion: Literal["1.0"] = "1.0"
    id: str
    source: str
    type: AlertType
    subject: str
    time: dt.datetime
    datacontenttype: Literal["application/json"] = "application/json"
    dataschema: Literal["urn:volteface:alert:1"] = "urn:volteface:alert:1"
    data: Alert


class Raised(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of an alert, to be silent for a while and to withdraw it; it names no event's holder."""

    id: str
    rule: str
    kind: Kind
    severity: Severity
    subject: Subject
    sequence: int  # of the flip that ended it
    at: dt.datetime  # by the clock of the conversation's flips
    events: tuple[str, ...]
    needs: int


def raised(rule: Rule, subject: Subject, flips: Sequence[Flip], event: Event) -> AlertEvent:
    """The alert that these flips make; `event` is the last one's."""
    data, listed = event.data, flips[-LISTED:]
    targets, befores, afters = ({get(flip) for flip in flips} for get in (_target, _before, _after))
    alert = Alert(
        tenant=data.tenant,
        run=data.run,
        conversation=data.conversation,
        rule=rule.name,
        kind=rule.kind,
        severity=rule.severity,
        target=data.target if len(targets) == 1 else msgspec.UNSET,
        before=data.before if len(befores) == 1 else msgspec.UNSET,
        after=data.after if len(afters) == 1 else msgspec.UNSET,
        holders=tuple(dict.fromkeys(flip.holder for flip in listed)),
        source=subject[0] if rule.kind in {Kind.SAME_WAY, Kind.ONE_SOURCE} else msgspec.UNSET,
        count=len(flips),
        events=tuple(flip.id for flip in listed),
    )
    parts = (*subject, *(flip.id for flip in listed))
    return _event(alert, AlertType.RAISED, event.time, parts)


def withdrawn(known: Raised, cause: Event) -> AlertEvent:
    """That an alert no longer holds, by the retraction that was the cause."""
    alert = Alert(
        tenant=cause.data.tenant,
        run=cause.data.run,
        conversation=cause.data.conversation,
        rule=known.rule,
        kind=known.kind,
        severity=known.severity,
        withdraws=known.id,
        cause=cause.id,
    )
    return _event(alert, AlertType.WITHDRAWN, cause.time, (known.id,))


def _event(alert: Alert, kind: AlertType, time: dt.datetime, parts: Sequence[str]) -> AlertEvent:
    named = (alert.tenant, alert.run, alert.conversation, kind, alert.rule)
    return AlertEvent(
        id=keys.digest(*named, *parts, length=32),
        source=keys.event_source(alert.tenant, alert.run, alert.conversation),
        type=kind,
        subject=keys.escape(alert.rule),
        time=time,
        data=alert,
    )


def encode(event: AlertEvent) -> bytes:
    """The alert in CloudEvents structured JSON."""
    return msgspec.json.encode(event)


def schema() -> dict[str, object]:
    """The JSON Schema of every alert event."""
    return msgspec.json.schema(AlertEvent)


def _target(flip: Flip) -> str:
    return flip.target


def _before(flip: Flip) -> str:
    return flip.before


def _after(flip: Flip) -> str:
    return flip.after
