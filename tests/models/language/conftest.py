"""A tiny language model for these tests, and the real embedded one."""

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
