"""A wave: the next record of every conversation of a batch, read by one request and explained by one."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

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


async def run(chains: Sequence[Chain], reader: Reader, rules: Rules) -> None:
    """Apply one record of every chain. Raises ReaderUnavailable, with no chain moved by a reading."""
    steps = [step for chain in chains if (step := _step(chain, rules)) is not None]
    await _each(steps, lambda part: _observe(part, reader, rules))
    await _each([step for step in steps if step.flips], lambda part: _explain(part, reader, rules))
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


async def _each(steps: list[Step], ask: Callable[[list[Step]], Awaitable[None]]) -> None:
    """Ask for all steps at once; where the reader rejects that, for each half, to find which it cannot."""
    try:
        await ask(steps)
    except WrongObservation as wrong:  # the reader mixed answers up; a turn is never refused for that
        raise ReaderUnavailable(str(wrong)) from wrong
    except ReaderRejected as rejected:
        if len(steps) == 1:
            steps[0].rejected = str(rejected)
            return
        middle = len(steps) // 2
        for half in (steps[:middle], steps[middle:]):
            await _each(half, ask)


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
