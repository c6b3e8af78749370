"""Declares propositions for conversations that bring none."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from stream.platforms.lines import Line
from stream.platforms.recent import Recent
from tracker import keys
from tracker.records import EPOCH, CreateTurn, DeclareTarget, Reason, Refused, check
from tracker.targets import MAX_ACTIVE


def target(tenant: str, conversation: str, proposition: str, sent_at: datetime) -> DeclareTarget:
    """A target record whose id says what it declares: said twice, it is a repetition. Raises Refused."""
    record_id = keys.joined("target", keys.target_id(tenant, conversation, proposition))
    record = DeclareTarget(
        conversation=conversation, sent_at=sent_at, tenant=tenant, id=record_id, proposition=proposition
    )
    check(record)
    return record


def declare(lines: Iterable[Line], propositions: Sequence[str]) -> Iterator[Line]:
    """The lines, with the propositions before the first turn of every conversation.

    Raises Refused at once for propositions that no conversation could have. Where a conversation was not
    heard of for very long, they are declared again, which changes nothing.
    """
    if len(propositions) > MAX_ACTIVE:
        got, remedy = f"{len(propositions)} propositions", f"at most {MAX_ACTIVE} a conversation"
        raise Refused(Reason.TOO_MANY_TARGETS, "proposition", got, remedy)
    for proposition in propositions:
        _check(proposition)
    return _declared(lines, tuple(propositions))


def _declared(lines: Iterable[Line], propositions: Sequence[str]) -> Iterator[Line]:
    seen: Recent[None] = Recent()
    for line in lines:
        turn = line.result
        if isinstance(turn, CreateTurn) and seen.put((turn.tenant, turn.conversation), None):
            for proposition in propositions:
                declared = target(turn.tenant, turn.conversation, proposition, turn.sent_at)
                yield Line(line.number, declared)
        yield line


def _check(proposition: str) -> None:
    try:
        proposition.encode()
    except UnicodeEncodeError:  # a command line whose bytes were no UTF-8
        got, remedy = "half of a surrogate pair", "write it as UTF-8"
        raise Refused(Reason.LONE_SURROGATE, "proposition", got, remedy) from None
    if not proposition.strip():
        raise Refused(Reason.EMPTY_TEXT, "proposition", "empty string", "say what is debated")
    target("default", "any", proposition, EPOCH)
