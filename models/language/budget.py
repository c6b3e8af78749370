"""What of a request a reader is shown: its tokens are bounded, so turn 5,000 costs what turn 20 did.

One order, whatever the engine: the new turn, the proposition (the state is one word of the frame), the turn
replied to, the holder's own last turns, then the nearest turns, newest first. Shares keep one giant text
from starving what follows it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from models.reader import ObserveRequest
from tracker.context import WindowTurn

Counter = Callable[[str], int]

CUE_TOKENS = 5  # modality and marks of one media item
TURN_SHARE, PROPOSITION_SHARE = 0.5, 0.25  # of the budget, at most
LEAST_TOKENS = 12  # a turn cut shorter says nothing
GAP = " … "
NAME_CHARACTERS = 40
CHARACTERS_A_TOKEN = 8  # more than any language's mean: bounds the search for a cut, not the cut


@dataclass(frozen=True)
class Frame:
    """What an engine puts around texts, in tokens; `nearest` turns it shows before the holder's own."""

    tokens: int = 48  # headings, state and names around the texts
    turn: int = 16  # letter, marks and reply of one window turn
    share: float = 0.2  # of the budget, at most, that one window turn gets
    nearest: int = 0


PROMPT = Frame()


def fit(request: ObserveRequest, budget: int, count: Counter, frame: Frame = PROMPT) -> ObserveRequest:
    """The request cut to `budget` tokens as `count` counts them; its window keeps its order."""
    turn = _shrunk(request.turn, int(budget * TURN_SHARE), count)
    proposition = cut(request.proposition, int(budget * PROPOSITION_SHARE), count)
    left = budget - frame.tokens - cost(turn, count) - count(proposition)
    shown: dict[int, WindowTurn] = {}
    for place in places(request, frame.nearest):
        named = frame.turn + count(name(request.window[place].holder))
        room = min(left, int(budget * frame.share)) - named
        if room < LEAST_TOKENS:
            break
        shown[place] = _shrunk(request.window[place], room, count)
        left -= named + cost(shown[place], count)
    window = tuple(shown[place] for place in sorted(shown))
    return msgspec.structs.replace(request, turn=turn, proposition=proposition, window=window)


def cut(text: str, room: int, count: Counter) -> str:
    """`text` in at most `room` tokens: its head and its tail.

    People open with what they answer and close with what they conclude; the middle is what can go.
    """
    if count(text) <= room:
        return text
    low, high = 0, min(len(text), room * CHARACTERS_A_TOKEN)
    while low < high:
        kept = (low + high + 1) // 2
        low, high = (kept, high) if count(_ends(text, kept)) <= room else (low, kept - 1)
    return _ends(text, low)


def name(holder: str) -> str:
    """A holder's name as a prompt shows it: a name may be 512 bytes long."""
    return holder if len(holder) <= NAME_CHARACTERS else _ends(holder, NAME_CHARACTERS)


def _ends(text: str, characters: int) -> str:
    head = (characters + 1) // 2
    tail = characters - head
    return text[:head].rstrip() + GAP + (text[-tail:].lstrip() if tail else "")


def places(request: ObserveRequest, nearest: int = 0) -> Iterator[int]:
    """Window places in the order in which they may be shown, each once."""
    window = request.window
    newest_first = range(len(window) - 1, -1, -1)
    reply = next((place for place in newest_first if window[place].turn == request.turn.reply_to), None)
    own = [place for place in newest_first if window[place].holder == request.turn.holder]
    first = [] if reply is None else [reply]
    yield from dict.fromkeys([*first, *newest_first[:nearest], *own, *newest_first])


def cost(turn: WindowTurn, count: Counter) -> int:
    """What a turn's text and cues cost, without its letter and names."""
    return CUE_TOKENS * len(turn.media) + sum(count(text) for text in _texts(turn))


def _texts(turn: WindowTurn) -> list[str]:
    return [turn.text, *(media.description for media in turn.media if media.description)]


def _shrunk(turn: WindowTurn, room: int, count: Counter) -> WindowTurn:
    """The turn with its text and cues cut to `room` tokens together."""
    if cost(turn, count) <= room:
        return turn
    costs = [count(text) for text in _texts(turn)]
    room = max(0, room - CUE_TOKENS * len(turn.media))
    shares = iter(_shares(costs, room))
    text = cut(turn.text, next(shares), count)
    media = tuple(
        msgspec.structs.replace(item, description=cut(item.description, next(shares), count))
        if item.description
        else item
        for item in turn.media
    )
    return msgspec.structs.replace(turn, text=text, media=media)


def _shares(costs: Sequence[int], room: int) -> list[int]:
    """`room` divided so that small parts stay whole and the large ones share what is left evenly."""
    shares = [0] * len(costs)
    for done, part in enumerate(sorted(range(len(costs)), key=costs.__getitem__)):
        shares[part] = min(costs[part], room // (len(costs) - done))
        room -= shares[part]
    return shares
