"""The roles of Thought-of-Stance played by one model (StanceFlip section 4.1), each for many turns at once.

Psychologist, Discourse Analyst, Synthesizer and Critic; the Cartographer reads no single turn and stands in
`models.reasoning.cartographer`. Requests must fit the room already.
"""

from collections.abc import Sequence

import msgspec

from models.language.chat import Chat
from models.language.triggers import plain_reason
from models.reader import ObserveRequest
from models.reasoning import answers, prompts
from models.reasoning.answers import Verdict, likeliest
from models.reasoning.impartial import fair
from models.reasoning.prompts import CRITERIA, Change, Draft, Feelings, Objection
from models.reasoning.room import WORDS, Room
from tracker.observations import Probabilities, Trigger
from tracker.stances import Stance

SILENT = "It does not answer yes to: {questions}"  # a critic that finds no words


class Review(msgspec.Struct, frozen=True):
    """What the Critic says of a draft; feedback only where a criterion failed."""

    verdict: Verdict
    feedback: str = ""


class Roles:
    """Asks a model what each role has to say."""

    def __init__(self, chat: Chat, room: Room | None = None) -> None:
        self.chat, self.room = chat, room or Room()
        self._fair = fair(chat)

    def feelings(self, requests: Sequence[ObserveRequest]) -> list[Feelings]:
        """Psychologist: how the author of each turn feels."""
        shares = self._fair.choose([*map(prompts.felt, requests)], list(answers.FEELINGS))
        return [likeliest(list(answers.FEELINGS.values()), row)[0] for row in shares]

    def stances(self, requests: Sequence[ObserveRequest], feelings: Sequence[Feelings]) -> list[Stance]:
        """Discourse Analyst: where each author stands after the turn; unknown where nothing tells it."""
        shares = self._fair.choose([*map(prompts.stood, requests, feelings)], list(answers.STANCES))
        return [likeliest(list(answers.STANCES.values()), row)[0] for row in shares]

    def expressed(
        self,
        requests: Sequence[ObserveRequest],
        feelings: Sequence[Feelings],
        critiques: Sequence[str],
    ) -> list[Probabilities]:
        """Discourse Analyst: what each turn itself says, in view of a critique of a first reading."""
        talks = [*map(prompts.expressed, requests, feelings, map(self.room.note, critiques))]
        return [*map(answers.probabilities, self._fair.choose(talks, list(answers.EXPRESSED)))]

    def drafts(
        self, changes: Sequence[Change], objections: Sequence[Objection | None] | None = None
    ) -> list[Draft]:
        """Synthesizer: trigger and rationale of each flip, in view of an objection where there is one."""
        seen = [one and self._cut(one) for one in objections or [None] * len(changes)]
        triggers = self._triggers(changes, seen)
        written = self.chat.write([*map(prompts.reason, changes, triggers, seen)], WORDS)
        reasons = map(_reason, written, changes, triggers, objections or seen)
        return [*map(Draft, triggers, reasons)]

    def reviews(self, changes: Sequence[Change], drafts: Sequence[Draft]) -> list[Review]:
        """Critic: a verdict on each draft, and feedback on those that fail (section 4.2)."""
        shown = [*map(self._short, drafts)]
        talks = [talk for pair in zip(changes, shown, strict=True) for talk in prompts.checked(*pair)]
        shares = iter(self._fair.choose(talks, answers.YES_NO))
        verdicts = [answers.verdict([next(shares) for _ in CRITERIA]) for _ in changes]
        asked = [
            prompts.criticised(change, draft, verdict.failed)
            for change, draft, verdict in zip(changes, shown, verdicts, strict=True)
            if not verdict.passed
        ]
        written = iter(self.chat.write(asked, WORDS))
        return [Review(one) if one.passed else Review(one, next(written) or _silent(one)) for one in verdicts]

    def _triggers(self, changes: Sequence[Change], objections: Sequence[Objection | None]) -> list[Trigger]:
        kinds = self._fair.choose([*map(prompts.kind, changes, objections)], list(answers.KINDS))
        return [
            self._trigger(change, objection, row)
            for change, objection, row in zip(changes, objections, kinds, strict=True)
        ]

    def _trigger(self, change: Change, objection: Objection | None, kinds: Sequence[float]) -> Trigger:
        """One at a time, since each flip is shown turns of its own number."""
        kind, confidence = likeliest(list(answers.KINDS.values()), kinds)
        shown = prompts.numbered(change.request)
        (turns,) = self.chat.choose([prompts.source(change, objection)], list(shown))
        mover, _ = likeliest(list(shown.values()), turns)
        return Trigger(kind, (mover.turn,), (mover.holder,), confidence)

    def _short(self, draft: Draft) -> Draft:
        return msgspec.structs.replace(draft, rationale=self.room.note(draft.rationale))

    def _cut(self, objection: Objection) -> Objection:
        return Objection(self._short(objection.draft), self.room.note(objection.feedback))


def _reason(written: str, change: Change, trigger: Trigger, objection: Objection | None) -> str:
    """The rationale that was written, else the one that was sent back, else what is known without words."""
    kept = objection.draft.rationale if objection else ""
    return answers.rationale(written) or kept or plain_reason(change.request, change.after, trigger.turns[0])


def _silent(verdict: Verdict) -> str:
    return SILENT.format(questions=" ".join(CRITERIA[name] for name in verdict.failed))
