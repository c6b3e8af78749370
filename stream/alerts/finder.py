"""From a batch of a run's events to delivered alerts and kept states.

Alerts are sent before the states are kept: who is killed between the two reads the same events again, under
the same states, and sends the same alerts under the same ids.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import structlog

from models.tracebacks import frames
from stream.alerts.port import AlertStore, Kept
from stream.alerts.vitals import Vitals
from stream.delivery import Sends
from stream.store.port import ConversationKey, Message
from tracker import alert_events, keys
from tracker.alert_events import AlertEvent
from tracker.alert_rules import Rule
from tracker.alerts import State, detect, matters
from tracker.events import Event

log = structlog.get_logger(__name__)

TOPIC = "alerts"
ATTEMPTS = 10  # while another process, which has the same events still, keeps its own

_event = msgspec.json.Decoder(Event)

ByConversation = Mapping[ConversationKey, Sequence[Event]]


class Contended(Exception):
    """Another process kept states again and again: try later."""


class Finder:
    """Finds what rules look for; may be given the same events any number of times."""

    def __init__(
        self, store: AlertStore, sender: Sends, rules: Sequence[Rule], vitals: Vitals | None = None
    ) -> None:
        self._store, self._sender, self._rules = store, sender, rules
        self._vitals = vitals or Vitals()

    async def take(self, values: Sequence[bytes | None]) -> None:
        """Events as their topic has them, in order. Raises StoreUnavailable, SenderUnavailable, Contended."""
        events = self._grouped(self._decoded(values))
        for _ in range(ATTEMPTS):
            changed, alerts = await self._found(events)
            await self._sender.send([_message(alert) for alert in alerts])
            if await self._store.save(changed):
                break
        else:
            raise Contended(f"states moved {ATTEMPTS} times: another process reads the same partition")
        for alert in alerts:
            told = {"alert": alert.id, "rule": alert.data.rule, "severity": alert.data.severity.value}
            log.info(alert.type.removeprefix("volteface."), conversation=alert.data.conversation, **told)
        self._vitals.finish(len(values), alerts)

    def _decoded(self, values: Iterable[bytes | None]) -> Iterable[Event]:
        for value in values:
            try:
                event = _event.decode(value or b"")
            except (
                msgspec.DecodeError
            ) as error:  # ValidationError, too: whoever wrote it, it is no event of ours
                self._skip("unreadable", error)
                continue
            if matters(event, self._rules):
                yield event

    def _grouped(self, events: Iterable[Event]) -> ByConversation:
        grouped: dict[ConversationKey, list[Event]] = defaultdict(list)
        for event in events:
            grouped[ConversationKey(event.data.tenant, event.data.conversation)].append(event)
        return grouped

    async def _found(self, events: ByConversation) -> tuple[dict[ConversationKey, Kept], list[AlertEvent]]:
        """The states that these events change, and the alerts that they make."""
        changed: dict[ConversationKey, Kept] = {}
        alerts: list[AlertEvent] = []
        for key, kept in zip(events, await self._store.load([*events]), strict=True):
            state = self._folded(kept.state, events[key], alerts)
            if state != kept.state:
                changed[key] = Kept(state, kept.version)
        return changed, alerts

    def _folded(self, state: State, events: Sequence[Event], alerts: list[AlertEvent]) -> State:
        for event in events:
            try:
                state, found = detect(state, event, self._rules)
            except Exception as error:  # a defect of ours must hold up neither this conversation nor others
                self._skip("failed", error)
                continue
            alerts += found
        return state

    def _skip(self, reason: str, error: Exception) -> None:
        self._vitals.skipped[reason] += 1
        log.error("alerts.event_skipped", reason=reason, error=type(error).__name__, frames=frames(error))


def _message(alert: AlertEvent) -> Message:
    key = keys.conversation_key(alert.data.tenant, alert.data.conversation)
    return Message(TOPIC, key, alert_events.encode(alert))
