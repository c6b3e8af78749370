"""The Cartographer: what a chat argues about, and whether it still does (StanceFlip section 4.1, step 1)."""

from collections.abc import Sequence

from models.language.chat import Chat, Talk
from models.reader import ObserveRequest
from models.reasoning import answers, prompts
from models.reasoning.impartial import fair
from models.reasoning.room import WORDS, Room
from tracker.context import Window, WindowTurn
from tracker.stances import Stance


class Cartographer:
    """Finds propositions; it is shown the turns alone, without anybody's state."""

    def __init__(self, chat: Chat, room: Room | None = None) -> None:
        self._chat, self._room = chat, room or Room()
        self._fair = fair(chat)

    def propose(self, turns: Sequence[WindowTurn]) -> str | None:
        """The proposition on which these turns take sides (equation 1); None where none does."""
        if not turns:
            return None
        shown = _turns(self._fitted(turns))
        if self._denies(prompts.held(shown)):
            return None
        return answers.proposition(self._chat.write([prompts.formulated(shown)], WORDS)[0])

    def drifted(self, proposition: str, turns: Sequence[WindowTurn]) -> bool:
        """Whether these turns are no longer about the proposition."""
        if not turns:
            return False
        shown = self._fitted(turns, proposition)
        return self._denies(prompts.drifted(shown.proposition, _turns(shown)))

    def same(self, proposition: str, other: str) -> bool:
        """Whether both are one debate in other words; one that cannot be told apart is another."""
        shown, beside = self._room.note(proposition), self._room.note(other)
        yes, no = self._fair.choose([prompts.same(shown, beside)], answers.YES_NO)[0]
        return yes > no

    def _denies(self, talk: Talk) -> bool:
        return answers.denied(self._fair.choose([talk], answers.YES_NO)[0])

    def _fitted(self, turns: Sequence[WindowTurn], proposition: str = "") -> ObserveRequest:
        """What there is room for, the newest turn first."""
        *before, last = turns
        return self._room.fitted(ObserveRequest("", last, 0, "", proposition, Stance.UNKNOWN, tuple(before)))


def _turns(shown: ObserveRequest) -> Window:
    return (*shown.window, shown.turn)
