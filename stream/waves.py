"""A wave: the next record of every conversation of a batch, read by one request and explained by one.

A record that the reader cannot read, or that breaks its engine alone again and again, is refused and holds
nobody up; an engine that breaks on a harmless turn, too, is an outage. A conversation for which no target can
be found has none, and its turn is applied all the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from models.reader import ExplainRequest, ObserveRequest, ProposeRequest, Reader
from stream.chain import Chain
from stream.isolation import ATTEMPTS, Isolation
from tracker.context import extended
from tracker.conversation import (
    Admitted,
    Conversation,
    Folded,
    Rules,
    explained,
    folded,
    state_before,
)
from tracker.observations import Explanation, Observation
from tracker.proposals import records
from tracker.records import CreateTurn, DeclareTarget
from tracker.settlement import settled
from tracker.stances import TransitionKind

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Step:
    """One chain's part of a wave: what it asks the reader, and what came of it."""

    chain: Chain
    admission: Admitted
    requests: list[ObserveRequest]
    folds: list[Folded] = field(default_factory=list)
    found: tuple[DeclareTarget, ...] = ()
    rejected: str | None = None

    @property
    def asks(self) -> bool:
        """Whether the Cartographer is to be asked."""
        return self.admission.inquiry is not None and self.rejected is None

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

    def reject(self, why: str) -> None:
        """Its record cannot be read."""
        self.rejected = why


async def run(chains: Sequence[Chain], reader: Reader, rules: Rules, attempts: int = ATTEMPTS) -> None:
    """Apply one record of every chain. Raises ReaderUnavailable, with no chain moved by a reading."""
    isolation = Isolation(reader, attempts)
    steps = [step for chain in chains if (step := _step(chain, rules)) is not None]
    await isolation.each(steps, lambda part: _observe(part, reader, rules), Step.reject)
    flipped = [step for step in steps if step.flips]
    await isolation.each(flipped, lambda part: _explain(part, reader, rules), Step.reject)
    if asking := [step for step in steps if step.asks]:
        await isolation.each(asking, lambda part: _propose(part, reader), _find_nothing)
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


async def _observe(steps: list[Step], reader: Reader, rules: Rules) -> None:
    requests = [request for step in steps for request in step.requests]
    answers = iter(await reader.observe(requests) if requests else [])
    for step in steps:
        observations: list[Observation] = [next(answers) for _ in step.requests]
        step.folds = list(folded(step.chain.conversation, step.admission, observations, rules))


async def _explain(steps: list[Step], reader: Reader, rules: Rules) -> None:
    requests = [request for step in steps for request in step.explain_requests()]
    answers = iter(await reader.explain(requests) if requests else [])
    for step in steps:
        for at in step.flips:
            explanation: Explanation = next(answers)
            step.folds[at] = explained(step.chain.conversation, step.folds[at], explanation, rules)


async def _propose(steps: list[Step], reader: Reader) -> None:
    for step, proposal in zip(steps, await reader.propose([*map(_question, steps)]), strict=True):
        record, asked = step.admission.record, step.admission.inquiry
        assert isinstance(record, CreateTurn)
        assert asked is not None
        targets = step.chain.conversation.header.targets
        step.found = records(targets, asked, record, step.admission.sent_at, proposal)


def _question(step: Step) -> ProposeRequest:
    conversation, asked, turn = step.chain.conversation, step.admission.inquiry, step.admission.turn
    assert asked is not None
    assert turn is not None
    known = asked.target.proposition if asked.target else ""
    return ProposeRequest(conversation.name, extended(conversation.window, turn), known, conversation.tenant)


def _find_nothing(step: Step, why: str) -> None:
    log.warning("target.not_found", arrival=step.chain.conversation.header.version + 1)


def _settle(step: Step, rules: Rules) -> None:
    chain = step.chain
    if step.rejected is not None:
        chain.reject(step.rejected)
        return
    if step.found:
        log.info("target.found", records=len(step.found))
    outcome = settled(
        chain.conversation, step.admission, step.folds, rules, chain.item.source, found=step.found
    )
    chain.settle(outcome)
