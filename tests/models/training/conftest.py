from pathlib import Path

import pytest

from models.language.backbone import local
from models.language.weights import Found
from tests.models.encoder.tiny import make_encoder
from tests.models.language.tiny import make_model


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    return local(make_encoder(tmp_path_factory.mktemp("encoder")))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture(scope="session")
def speaker(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """A tiny causal language model."""
    return local(make_model(tmp_path_factory.mktemp("speaker")))
