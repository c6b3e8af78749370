"""What one new turn costs read from state and window, and read over the whole dialogue, as the papers do.

Both forms read the same turn of the same dialogue on the same backbone, and both answer emotion, sentiment
and stance: the incremental form in one scored pass over at most its budget, the other as Psychologist and
Discourse Analyst (StanceFlip section 4.1), each over the full history. Words are left out on both sides, and
so is the Cartographer, who would scan the whole dialogue again. A history that exceeds the model's context
loses its oldest turns: how many turns and tokens were shown stands in the table.
"""

from collections.abc import Callable, Iterator

import msgspec

from models.language.local_chat import LocalChat
from models.reader import ObserveRequest
from models.reasoning import prompts
from models.reasoning.dialogue import WholeDialogue
from models.reasoning.roles import Roles
from models.reasoning.room import whole
from tests.benchmarks import chat, engines
from tests.benchmarks.measuring import Figure, Result, Scale, interleaved, milliseconds, ratio
from tracker.context import WINDOW_TURNS, remembered
from tracker.stances import Stance

LENGTHS = (20, 50, 200)

Asked = dict[int, ObserveRequest]  # by length


def run(scale: Scale) -> Result:
    """Both forms at every length, side by side in each round."""
    rounds = scale.of(5, 1)
    local = _Settled(engines.backbone())
    roles = Roles(local, whole(local.room(prompts.INSTRUCTIONS), local.count))
    asked = {length: dialogue(length) for length in LENGTHS}
    return Result(
        name="reasoning",
        conditions={**engines.conditions(), "rounds": rounds, "context": local.backbone.positions},
        figures=(*_costs(roles, asked, rounds), *_shown(roles, asked)),
    )


class _Settled(LocalChat):
    """As after training, when no label's favourites are measured any more: that would fall into a round."""

    untrained = False


def dialogue(length: int) -> ObserveRequest:
    """A dialogue's last turn, with all that stands before it."""
    *history, last = (remembered(chat.turn("room", at)) for at in range(1, length + 1))
    return ObserveRequest("room", last, 0, "t-1", chat.PROPOSITION, Stance.UNKNOWN, tuple(history))


def windowed(asked: ObserveRequest) -> ObserveRequest:
    """The same turn as a stream asks for it."""
    return msgspec.structs.replace(asked, window=asked.window[-WINDOW_TURNS:])


def _costs(roles: Roles, asked: Asked, rounds: int) -> Iterator[Figure]:
    engine, reader = engines.engine(), WholeDialogue(roles)
    forms: dict[str, Callable[[ObserveRequest], object]] = {
        "incremental": lambda request: engine.observe([windowed(request)]),
        "whole": lambda request: reader.changes([request]),
    }
    for read in forms.values():  # the shortest alone: a round of the longest takes minutes on few cores
        read(asked[LENGTHS[0]])
    calls = {
        f"{form}: a turn at turn {length}": lambda _, read=read, request=request: read(request)
        for form, read in forms.items()
        for length, request in asked.items()
    }
    seconds = interleaved(calls, rounds, warm=True)
    yield from (milliseconds(name, spent) for name, spent in seconds.items())
    for length in asked:
        pair = [seconds[f"{form}: a turn at turn {length}"] for form in ("whole", "incremental")]
        yield ratio(f"whole to incremental at turn {length}", *pair)


def _shown(roles: Roles, asked: Asked) -> Iterator[Figure]:
    for length, request in asked.items():
        shown = roles.room.fitted(request)
        tokens = roles.room.count(prompts.felt(shown)[-1].content)
        yield _figure(f"incremental: tokens shown at turn {length}", engines.shown_tokens(windowed(request)))
        yield _figure(f"whole: tokens shown at turn {length}, twice", tokens)
        yield _figure(
            f"whole: oldest turns dropped at turn {length}", length - 1 - len(shown.window), "turns"
        )


def _figure(name: str, value: float, unit: str = "tokens") -> Figure:
    return Figure(name=name, unit=unit, rounds=(float(value),))
