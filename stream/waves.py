"""A wave: the next record of every conversation of a batch, read by one request and explained by one.

A record that the reader cannot read, or that breaks its engine alone again and again, is refused and holds
nobody up; an engine that breaks on a harmless turn, too, is an outage.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from models.execution import PROBE, EngineFailed
from models.reader import ExplainRequest, ObserveRequest, Reader, ReaderRejected, ReaderUnavailable
from stream.chain import Chain
from tracker.conversation import (
    Admitted,
    Conversation,
    Folded,
    Rules,
    WrongObservation,
    explained,
    folded,
    state_before,
)
from tracker.observations import Explanation, Observation
from tracker.records import CreateTurn, Reason, Refused
from tracker.settlement import settled
from tracker.stances import TransitionKind

ATTEMPTS = 5  # with a record that breaks the engine
PAUSE_SECONDS = 0.2  # after the first of them, then longer each time

Ask = Callable[[list["Step"]], Awaitable[None]]


@dataclass(slots=True)
class Step:
    """One chain's part of a wave: what it asks the reader, and what came of it."""

    chain: Chain
    admission: Admitted
    requests: list[ObserveRequest]
    folds: list[Folded] = field(default_factory=list)
    rejected: str | None = None

    @property
    def flips(self) -> list[int]:
        """Which of the folds flipped."""
        return [at for at, fold in enumerate(self.folds) if fold.transition.kind is TransitionKind.FLIP]

    def explain_requests(self) -> list[ExplainRequest]:
        """What is to be explained."""
        return [
            ExplainRequest(self.requests[at], self.folds[at].observation, self.folds[at].after.stance)
            for at in self.flips
        ]


async def run(chains: Sequence[Chain], reader: Reader, rules: Rules, attempts: int = ATTEMPTS) -> None:
    """Apply one record of every chain. Raises ReaderUnavailable, with no chain moved by a reading."""
    isolation = _Isolation(reader, attempts)
    steps = [step for chain in chains if (step := _step(chain, rules)) is not None]
    await isolation.each(steps, lambda part: _observe(part, reader, rules))
    flipped = [step for step in steps if step.flips]
    await isolation.each(flipped, lambda part: _explain(part, reader, rules))
    for step in steps:
        _settle(step, rules)


def _step(chain: Chain, rules: Rules) -> Step | None:
    admission = chain.admit(rules)
    if admission is None:
        return None
    return Step(chain, admission, _requests(chain.conversation, admission))


def _requests(conversation: Conversation, admission: Admitted) -> list[ObserveRequest]:
    record = admission.record
    if not isinstance(record, CreateTurn) or admission.turn is None:
        return []
    return [
        ObserveRequest(
            conversation.name,
            admission.turn,
            record.revision,
            target.id,
            target.proposition,
            state_before(conversation, record.holder, target.id).stance,
            conversation.window,
            conversation.tenant,
        )
        for target in admission.targets
    ]


@dataclass(frozen=True, slots=True)
class _Isolation:
    """Asks a reader for all steps at once; where that fails, for each half, to find which step it is."""

    reader: Reader
    attempts: int

    async def each(self, steps: list[Step], ask: Ask, attempt: int = 1) -> None:
        """Ask for the steps; those that cannot be read are marked. Raises ReaderUnavailable."""
        try:
            await ask(steps)
            return
        except WrongObservation as wrong:  # the reader mixed answers up; a turn is never refused for that
            raise ReaderUnavailable(str(wrong)) from wrong
        except ReaderRejected as rejected:
            why = str(rejected)
        except EngineFailed as failed:
            if not await self._reads():
                raise  # it breaks on everything: no record's fault
            why = f"{failed}, {self.attempts} times"
            if len(steps) == 1 and attempt < self.attempts:
                await asyncio.sleep(PAUSE_SECONDS * attempt)
                await self.each(steps, ask, attempt + 1)
                return
        if len(steps) == 1:
            steps[0].rejected = why
            return
        middle = len(steps) // 2
        for half in (steps[:middle], steps[middle:]):
            await self.each(half, ask)

    async def _reads(self) -> bool:
        """Whether a harmless turn is read now."""
        try:
            await self.reader.observe([PROBE])
        except (ReaderUnavailable, ReaderRejected):
            return False
        return True


async def _observe(steps: list[Step], reader: Reader, rules: Rules) -> None:
    requests = [request for step in steps for request in step.requests]
    answers = iter(await reader.observe(requests) if requests else [])
    for step in steps:
        observations: list[Observation] = [next(answers) for _ in step.requests]
        step.folds = list(folded(step.chain.conversation, step.admission, observations, rules.policy))


async def _explain(steps: list[Step], reader: Reader, rules: Rules) -> None:
    requests = [request for step in steps for request in step.explain_requests()]
    answers = iter(await reader.explain(requests) if requests else [])
    for step in steps:
        for at in step.flips:
            explanation: Explanation = next(answers)
            step.folds[at] = explained(step.chain.conversation, step.folds[at], explanation, rules.policy)


def _settle(step: Step, rules: Rules) -> None:
    chain = step.chain
    if step.rejected is not None:
        remedy = "see the reader's log; retry once it can take this turn"
        chain.refuse(Refused(Reason.FAILED, "turn", step.rejected, remedy))
        return
    chain.settle(settled(chain.conversation, step.admission, step.folds, rules, chain.item.source))
