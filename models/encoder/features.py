"""What the encoder is shown of a request, and where each thing stands in it: in training as in service.

    <s> proposition </s> Maya: new turn [meme] its description </s> Maya: oppose </s> > Tom (support): turn
    replied to </s> the four nearest turns, newest first </s> the holder's own earlier ones </s>

An earlier turn comes with the side that it was read to take: "me too" says nothing without it.
What users wrote never gives a special token: a text cannot close itself and pose as another.
"""

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from transformers import PreTrainedTokenizerBase

from models.language.budget import Frame, fit, name, places
from models.reader import ObserveRequest
from tracker.context import WINDOW_TURNS, WindowTurn
from tracker.stances import Expressed

TOKENS = 192
NEAREST = 4
FRAME = Frame(tokens=20, turn=7, share=0.3, nearest=NEAREST)
SHOWN_TURNS = WINDOW_TURNS + 1  # the window and the new turn
TEXT = "text"

Span = tuple[int, int]  # from the first token to behind the last


class Role(enum.IntEnum):
    """What a turn is to the new turn's holder."""

    SELF = 0  # the new turn
    REPLY = 1
    OWN = 2
    OTHER = 3


@dataclass(frozen=True)
class Part:
    """A turn's text, or one of its media items; `turn` counts the turns shown, the new one first."""

    turn: int
    modality: str
    span: Span


@dataclass(frozen=True)
class Features:
    """Token ids, and the places of what is pooled and pointed at."""

    ids: tuple[int, ...]
    proposition: Span
    turn: Span
    shown: tuple[str, ...]  # turn ids, the new turn's first, then as they stand in the text
    roles: tuple[Role, ...]  # of the turns shown
    parts: tuple[Part, ...]


@dataclass
class _Draft:
    ids: list[int] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    roles: list[Role] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)


class Featurizer:
    """Requests to features, within `tokens`. It keeps nothing of what it was shown."""

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, tokens: int = TOKENS, *, sides: bool = True
    ) -> None:
        """Without `sides`, earlier turns are shown as to an adapter that never learned what they are."""
        self._tokenizer, self.tokens, self._sides = tokenizer, tokens, sides
        first = tokenizer.cls_token_id if tokenizer.cls_token_id is not None else tokenizer.bos_token_id
        after = tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id
        if first is None or after is None:
            raise ValueError("this tokenizer has no tokens to open and to part texts with")
        self._first, self._after = int(first), int(after)
        self.pad = int(tokenizer.pad_token_id or 0)
        self.unknown = int(tokenizer.unk_token_id or 0)
        self._special = frozenset(tokenizer.all_special_ids) - {tokenizer.unk_token_id}

    def __call__(self, requests: Sequence[ObserveRequest]) -> list[Features]:
        """The features of each request, in order."""
        known: dict[str, list[int]] = {}  # windows overlap: a text is encoded once a call
        return [self._features(request, known) for request in requests]

    def _features(self, request: ObserveRequest, known: dict[str, list[int]]) -> Features:
        request = fit(request, self.tokens, lambda text: len(self._encoded(text, known)), FRAME)
        draft = _Draft([self._first])
        proposition = self._put(draft, self._encoded(request.proposition, known))
        turn = self._put_turn(draft, request.turn, Role.SELF, None, known)
        self._put(draft, self._encoded(f"{name(request.turn.holder)}: {request.state}", known))
        for place in places(request, NEAREST):
            earlier = request.window[place]
            side = earlier.sides.get(request.target) if self._sides else None
            self._put_turn(draft, earlier, _role(request, earlier), side, known)
        shown, roles = tuple(draft.shown), tuple(draft.roles)
        return Features(tuple(draft.ids), proposition, turn, shown, roles, tuple(draft.parts))

    def _put(self, draft: _Draft, ids: Sequence[int]) -> Span:
        start = len(draft.ids)
        draft.ids += [*ids, self._after]
        return start, start + len(ids)

    def _put_turn(
        self,
        draft: _Draft,
        turn: WindowTurn,
        role: Role,
        side: Expressed | None,
        known: dict[str, list[int]],
    ) -> Span:
        """The turn's span; a turn that would pass the budget is left out (only the new turn never is)."""
        parts = [(modality, self._encoded(text, known)) for modality, text in _parts(turn, role, side)]
        size = sum(len(ids) for _, ids in parts)
        start = at = len(draft.ids)
        if role is not Role.SELF and start + size >= self.tokens:
            return start, start
        for modality, ids in parts:
            draft.parts.append(Part(len(draft.shown), modality, (at, at + len(ids))))
            at += len(ids)
        draft.shown.append(turn.turn)
        draft.roles.append(role)
        return self._put(draft, [token for _, ids in parts for token in ids])

    def _encoded(self, text: str, known: dict[str, list[int]]) -> list[int]:
        if text not in known:
            ids = self._tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
            # A unigram vocabulary holds "</s>" as a piece like any other, and gives its id all the same.
            known[text] = [token for token in ids if token not in self._special]
        return known[text]


def _parts(turn: WindowTurn, role: Role, side: Expressed | None) -> Iterator[tuple[str, str]]:
    mark = "> " if role is Role.REPLY else ""
    took = f" ({side})" if side else ""
    yield TEXT, f"{mark}{name(turn.holder)}{took}: {turn.text}"
    for media in turn.media:
        yield media.modality.value, f"[{media.modality}] {media.description or ''}"


def _role(request: ObserveRequest, turn: WindowTurn) -> Role:
    if turn.turn == request.turn.reply_to:
        return Role.REPLY
    return Role.OWN if turn.holder == request.turn.holder else Role.OTHER
