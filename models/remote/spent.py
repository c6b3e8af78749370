"""What a server was asked for: counted by client, and by process for whoever scrapes it.

The counters are the process's, since a worker may have clients of several servers behind one engine; they
belong to no registry until a worker puts them into its own.
"""

import enum
from time import monotonic

import msgspec
import structlog
from prometheus_client import Counter

from models.remote import wire

TOLD_EVERY = 60.0  # seconds between two log lines about what was spent

CALLS = Counter(
    "volteface_remote_calls",
    "Calls to a server, retries included, by how they ended: answered, refused, limited and so on.",
    ["model", "ended"],
    registry=None,
)
TOKENS = Counter(
    "volteface_remote_tokens",
    "Tokens that a server counted, by kind: prompt (cached ones included), cached, completion.",
    ["model", "kind"],
    registry=None,
)
OPENED = Counter("volteface_remote_circuit_opened", "Times that a circuit opened.", ["model"], registry=None)
COUNTERS = (CALLS, TOKENS, OPENED)

_log = structlog.get_logger(__name__)


class Call(enum.Enum):
    """How a call ended."""

    ANSWERED = "answered"
    REFUSED = "refused"  # over its content, or a setting
    LIMITED = "limited"  # too many calls, says the server
    TIMED_OUT = "timed_out"
    FAILED = "failed"
    CANCELLED = "cancelled"  # nobody waits for it any more


class Spent(msgspec.Struct, frozen=True):
    """What was spent since the start."""

    calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0  # of the prompt's
    completion_tokens: int = 0

    def plus(self, usage: wire.Usage) -> "Spent":
        """With one more call."""
        return Spent(
            self.calls + 1,
            self.prompt_tokens + usage.prompt_tokens,
            self.cached_tokens + usage.cached_tokens,
            self.completion_tokens + usage.completion_tokens,
        )


class Account:
    """One client's."""

    def __init__(self, model: str) -> None:
        self.spent, self._told = Spent(), monotonic()
        # Made now: a counter that appears with its first count hides that one from whoever looks at rates.
        self._calls = {ended: CALLS.labels(model, ended.value) for ended in Call}
        self._tokens = {kind: TOKENS.labels(model, kind) for kind in ("prompt", "cached", "completion")}
        self._opened = OPENED.labels(model)

    def ended(self, call: Call) -> None:
        """One more call."""
        self._calls[call].inc()

    def opened(self) -> None:
        """The circuit did."""
        self._opened.inc()

    def add(self, usage: wire.Usage) -> None:
        """What an answer cost."""
        self.spent = self.spent.plus(usage)
        self._tokens["prompt"].inc(usage.prompt_tokens)
        self._tokens["cached"].inc(usage.cached_tokens)
        self._tokens["completion"].inc(usage.completion_tokens)
        if monotonic() - self._told >= TOLD_EVERY:
            self._told = monotonic()
            _log.info("remote.spent", **msgspec.structs.asdict(self.spent))
