"""What it means that a server gave no answer: it is away, it is set up wrong, or it minds this one call.

Its own words are not repeated, but for a plain one: they may quote a turn.
"""

from models.guard import Ended
from models.reader import ReaderRejected, ReaderUnavailable
from models.remote.forms import Unreadable
from models.remote.spent import Call
from models.worker.channel import Faulty

_LIMITED = 429
_AGAIN = frozenset({408, 425, _LIMITED})  # and every 5xx
# What may lie in this one call's content; 403 is said of moderated content, too, and by firewalls before it.
_OF_THE_CALL = frozenset({400, 403, 413, 422})
_BREAKS = 500  # other 5xx say that it is away or overloaded, whatever it is asked
_REMEDIES = {
    401: "set VOLTEFACE_REMOTE_KEY to a key that the server takes",
    402: "the account behind VOLTEFACE_REMOTE_KEY has to be paid up",
    403: "set VOLTEFACE_REMOTE_KEY to a key that may use VOLTEFACE_REMOTE_MODEL",
    404: "set VOLTEFACE_REMOTE_MODEL to a model it serves, and VOLTEFACE_REMOTE_URL up to /v1",
}
_ANOTHER = "set VOLTEFACE_REMOTE_URL to an OpenAI-compatible server's address, up to /v1"


def remedy_for(status: int) -> str:
    """What a person can do about calls that all end with this status."""
    return _REMEDIES.get(status, _ANOTHER)


class Refused(Exception):
    """The server takes this call's content, or one of its parameters, not at all."""

    def __init__(self, status: int, reason: str) -> None:
        self.status, self.reason = status, reason
        super().__init__(f"status {status}{f', {reason}' if reason else ''}")


class Away(ReaderUnavailable):
    """The server does not answer, not in time, or not yet: no call's fault."""


class Misconfigured(ReaderUnavailable):
    """The server is there and takes no call, until a setting is another."""


class Broken(Away):
    """The server broke on this call at every attempt: it is ill, or this one call is too much for it."""


class Breakage(Faulty):
    """An answer that may be this call's fault as well as the server's."""


def meaning(error: BaseException) -> Ended:
    """How what raised this ended: a refusal is an answer; a quiet that was asked for before says nothing."""
    if isinstance(error, Away):
        return Ended.FAILED
    there = isinstance(error, Misconfigured | Refused | ReaderRejected | Unreadable)
    return Ended.REFUSED if there else Ended.CANCELLED


def ended(status: int) -> Call:
    """How a call ended that got this status, another than 200."""
    if status == _LIMITED:
        return Call.LIMITED
    return Call.FAILED if status in _AGAIN or status >= 500 else Call.REFUSED


def failure(status: int, reason: str, *, retry_after: float | None, pause: float) -> Exception:
    """What an answer other than 200 means; `pause`: before asking again where only a setting can help."""
    refused = Refused(status, reason)
    if status in _AGAIN or status >= 500:
        kind = Breakage if status == _BREAKS else Faulty
        return kind(str(refused), again=True, retry_after=retry_after)
    if status in _OF_THE_CALL:
        return refused
    return Misconfigured(f"the remote server: {refused}; {remedy_for(status)}", pause)
