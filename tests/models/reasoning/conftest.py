"""The tiny language model that the tests of `models/language/` make, with a context that is soon full."""

import pytest

from models.language.backbone import Backbone
from tests.models.language.conftest import tiny, tiny_folder

__all__ = ["narrow", "tiny", "tiny_folder"]


@pytest.fixture
def narrow(tiny: Backbone, monkeypatch: pytest.MonkeyPatch) -> Backbone:
    monkeypatch.setattr(Backbone, "positions", 1600)
    return tiny
