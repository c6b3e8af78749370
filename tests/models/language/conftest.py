"""A tiny language model for these tests, and the real embedded one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from models.language.backbone import Backbone, Placement, load, local
from models.language.rule import RuleEngine
from models.reader import ObserveRequest
from tests.models.language.tiny import make_model
from tracker.context import WindowTurn
from tracker.observations import Observation
from tracker.stances import Stance


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def tiny(tiny_folder: Path) -> Backbone:
    return load(local(tiny_folder), placement=Placement("cpu", "float32", threads=1))


@pytest.fixture(scope="session")
def smollm2() -> Backbone:
    """The real embedded model, converted once a machine."""
    from models.language.weights import SMOLLM2, resolve
    from models.language.wheels import cache_folder

    return load(resolve(SMOLLM2, cache=cache_folder()), placement=Placement("cpu", "float32", threads=1))


@pytest.fixture
def observation() -> Observation:
    """Any observation: what asks for an explanation does not read it."""
    return RuleEngine().observe(
        [ObserveRequest("", WindowTurn("9", "Maya", "+1"), 0, "t-1", "", Stance.OPPOSE)]
    )[0]


@pytest.fixture
def ask() -> Callable[..., ObserveRequest]:
    """A request whose new turn is `text` by Maya, in a short argument with Tom."""

    def made(text: str = "ok you convinced me", **changes: object) -> ObserveRequest:
        fields: dict[str, object] = {
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
        turn = {"turn": "9", "holder": "Maya", "reply_to": "2"}
        turn |= {key: changes.pop(key) for key in ("holder", "reply_to", "media") if key in changes}
        return ObserveRequest(turn=WindowTurn(text=text, **turn), **(fields | changes))

    return made
