"""How much of a dialogue a role is shown: tokens, as some tokenizer counts them."""

from dataclasses import dataclass

from models.language.budget import PROMPT, Counter, Frame, cut, fit
from models.language.prompts import quoted
from models.reader import ObserveRequest

TOKENS = 640  # as engine `generative` shows
BYTES_A_TOKEN = 3
WORDS = 64  # tokens that a role may write
NOTE = 96  # tokens, at most, of what one role is shown of another's words: theirs, once quoted
QUESTION = 4 * NOTE  # tokens behind what is shown of a request: two notes, names, and what is asked
SMALLEST = 128  # tokens that must be left for a request, or the model is too small to reason with


def estimated(text: str) -> int:
    """About how many tokens a text has, where no tokenizer is at hand."""
    return len(text.encode()) // BYTES_A_TOKEN + 1


@dataclass(frozen=True)
class Room:
    """Tokens of a request that a prompt may show; a question comes on top, of QUESTION tokens at most.

    In a `whole` room turns are dropped from the oldest on, but for the one replied to. Else the order is
    `models.language.budget`'s, where the holder's own turns come before nearer ones.
    """

    tokens: int = TOKENS
    count: Counter = estimated
    whole: bool = False

    def fitted(self, request: ObserveRequest) -> ObserveRequest:
        """The request with as much of its window as there is room for."""
        frame = Frame(nearest=len(request.window)) if self.whole else PROMPT
        return fit(request, self.tokens, self._quoted, frame)

    def note(self, text: str) -> str:
        """What a role said, as short as another role is shown it."""
        return cut(text, NOTE, self._quoted)

    def _quoted(self, text: str) -> int:
        return self.count(quoted(text))


def within(tokens: int, positions: int, count: Counter) -> Room:
    """So many tokens, or fewer where a model's context leaves fewer behind an instruction.

    Raises ValueError where that is too little to show a turn.
    """
    return Room(min(tokens, whole(positions, count).tokens), count)


def whole(positions: int, count: Counter) -> Room:
    """All that a model can attend to, given what its context leaves behind an instruction.

    Raises ValueError where that is too little to show a turn.
    """
    tokens = positions - QUESTION - WORDS
    if tokens < SMALLEST:
        raise ValueError(f"{positions} tokens of context leave no room for a dialogue")
    return Room(tokens, count, whole=True)
