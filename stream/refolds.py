"""Refolds: the next record of conversations that left the waves, each on its own chain, read side by side."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from models.reader import ExplainRequest, ObserveRequest, Reader, ReaderUnavailable
from stream.chain import Chain
from stream.isolation import ATTEMPTS, Isolation
from tracker.conversation import Conversation, Rules, WrongObservation
from tracker.folding import Answer, Question, Read, Wanted
from tracker.records import Refused
from tracker.refold import Refold


@dataclass(slots=True)
class _Asked:
    """One thing that a refold wants to know, and the answer; none where it cannot be read."""

    work: "_Work"
    wanted: Wanted
    answer: Answer = None

    def refuse(self, why: str) -> None:
        """It cannot be read: a record that needs it is refused, else the turn is folded as it was."""
        if isinstance(self.wanted, Read) and self.wanted.needed:
            self.work.rejected = why


@dataclass(slots=True)
class _Work:
    """A chain's next record on its way."""

    chain: Chain
    refold: Refold
    rejected: str | None = None

    @property
    def conversation(self) -> Conversation:
        return self.chain.conversation

    @property
    def waits(self) -> bool:
        return bool(self.refold.wanted) and self.rejected is None

    def take(self, asked: Sequence[_Asked]) -> None:
        """Go on with what was asked for it. Raises ReaderUnavailable where answers were mixed up."""
        if self.rejected is None:
            try:
                self.refold.take([one.answer for one in asked if one.work is self])
            except WrongObservation as wrong:
                raise ReaderUnavailable(str(wrong)) from wrong

    def settle(self) -> None:
        if self.rejected is not None:
            self.chain.reject(self.rejected)
            return
        assert self.refold.outcome is not None
        self.chain.settle(self.refold.outcome)


async def run(chains: Sequence[Chain], reader: Reader, rules: Rules, attempts: int = ATTEMPTS) -> None:
    """Refold the next record of every chain, all of them with their ledgers.

    Raises ReaderUnavailable, with no chain moved by a reading.
    """
    works = list(_started(chains, rules))
    isolation = Isolation(reader, attempts)
    while waiting := [work for work in works if work.waits]:
        asked = [_Asked(work, wanted) for work in waiting for wanted in work.refold.wanted]
        reads = [one for one in asked if isinstance(one.wanted, Read)]
        if reads:
            await isolation.each(reads, lambda part: _observe(part, reader), _Asked.refuse)
        questions = [one for one in asked if isinstance(one.wanted, Question)]
        if questions:
            await isolation.each(questions, lambda part: _explain(part, reader), _Asked.refuse)
        for work in waiting:
            work.take(asked)
    for work in works:
        work.settle()


def _started(chains: Sequence[Chain], rules: Rules) -> Iterator[_Work]:
    for chain in chains:
        item = chain.item
        try:
            refold = Refold(chain.conversation, chain.known, item.record, item.receipt, rules, item.source)
        except Refused as refused:
            chain.refuse(refused)
        else:
            yield _Work(chain, refold)


async def _observe(asked: list[_Asked], reader: Reader) -> None:
    answers = await reader.observe([_request(one, one.wanted) for one in asked])
    for one, answer in zip(asked, answers, strict=True):
        one.answer = answer


async def _explain(asked: list[_Asked], reader: Reader) -> None:
    answers = await reader.explain([_question(one) for one in asked])
    for one, answer in zip(asked, answers, strict=True):
        one.answer = answer


def _request(asked: _Asked, wanted: Wanted) -> ObserveRequest:
    read = wanted.read if isinstance(wanted, Question) else wanted
    return ObserveRequest(
        asked.work.conversation.name,
        read.turn,
        read.revision,
        read.target.id,
        read.target.proposition,
        read.state,
        read.window,
        asked.work.conversation.tenant,
    )


def _question(asked: _Asked) -> ExplainRequest:
    assert isinstance(asked.wanted, Question)
    return ExplainRequest(_request(asked, asked.wanted), asked.wanted.observation, asked.wanted.after)
