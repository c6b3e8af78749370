"""What the tests of every engine ask."""

from collections.abc import Callable
from typing import Any

import pytest

from models.reader import ObserveRequest
from tracker.context import WindowTurn
from tracker.stances import Stance


@pytest.fixture
def ask() -> Callable[..., ObserveRequest]:
    """A request whose new turn is `text` by Maya, in a short argument with Tom."""

    def made(text: str = "ok you convinced me", turn: str = "9", **changes: Any) -> ObserveRequest:
        fields: dict[str, Any] = {
            "conversation": "room",
            "revision": 0,
            "target": "t-1",
            "proposition": "The debate concerning whether the office should get a second dog",
            "state": Stance.OPPOSE,
            "window": (
                WindowTurn("1", "Maya", "one dog is plenty"),
                WindowTurn("2", "Tom", "the vet says a lone dog gets ill", reply_to="1"),
            ),
        }
        said: dict[str, Any] = {"holder": "Maya", "reply_to": "2", "media": (), "language": None}
        said |= {key: changes.pop(key) for key in said if key in changes}
        return ObserveRequest(turn=WindowTurn(turn, text=text, **said), **(fields | changes))

    return made
