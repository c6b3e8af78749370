"""What rules would have raised on a file of events, such as `volteface track` prints."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from stream.platforms.lines import RawLine
from tracker.alert_events import AlertEvent, AlertType
from tracker.alert_rules import Rule, counted_turns
from tracker.alerts import State, detect
from tracker.events import Event, EventType
from tracker.parsing import decode
from tracker.records import Refused

Conversation = tuple[str, str, str]  # tenant, run, name

_event = msgspec.json.Decoder(Event)


class DryRun:
    """Goes through a file once, and counts what the rules found. Sends nothing, keeps nothing."""

    def __init__(self, rules: Sequence[Rule], refused: Callable[[int, Refused], None]) -> None:
        """`refused` is told of each line that holds no event, by its number."""
        self._rules, self._refused = rules, refused
        self._states: dict[Conversation, State] = defaultdict(State)
        self._persisted = False
        self.events = 0
        self.raised: Counter[str] = Counter()  # by rule
        self.withdrawn: Counter[str] = Counter()

    def alerts(self, lines: Iterable[RawLine]) -> Iterator[AlertEvent]:
        """The alerts of the file's events, each as soon as it is found. Raises what the lines raise."""
        for line in lines:
            try:
                event = _read(line)
            except Refused as refused:
                self._refused(line.number, refused)
            else:
                yield from self._found(event)

    def _found(self, event: Event) -> Iterator[AlertEvent]:
        self.events += 1
        self._persisted |= event.type is EventType.PERSISTED
        of = event.data.tenant, event.data.run, event.data.conversation
        self._states[of], alerts = detect(self._states[of], event, self._rules)
        for alert in alerts:
            counts = self.raised if alert.type is AlertType.RAISED else self.withdrawn
            counts[alert.data.rule] += 1
            yield alert

    @property
    def turns_unseen(self) -> bool:
        """Whether a rule counts turns, and the file tells only of those at which something moved."""
        return counted_turns(self._rules) > 0 and self.events > 0 and not self._persisted


def _read(line: RawLine) -> Event:
    if isinstance(line.content, Refused):
        raise line.content
    return decode(line.content, _event)
