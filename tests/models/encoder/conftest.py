"""A tiny encoder, made here: random weights, a tokenizer learned from a few lines."""

from pathlib import Path

import pytest

from models.encoder.engine import EncoderEngine
from models.encoder.loading import Loaded, load
from models.language.backbone import Placement, local
from models.language.weights import Found
from models.reader import ObserveRequest
from tests.models.encoder.tiny import make_encoder
from tracker.context import WindowTurn
from tracker.records import Media, Modality
from tracker.stances import Stance

CPU = Placement("cpu", "float32", threads=1)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="session")
def found(folder: Path) -> Found:
    return local(folder)


@pytest.fixture(scope="session")
def loaded(found: Found) -> Loaded:
    return load(found, placement=CPU)


@pytest.fixture
def engine(loaded: Loaded) -> EncoderEngine:
    return EncoderEngine(loaded)


@pytest.fixture
def request_() -> ObserveRequest:
    """Maya's new turn with a meme, in reply to Tom; four others' turns and one of her own before it."""
    window = (
        WindowTurn("0", "Maya", "one dog is plenty"),
        WindowTurn("1", "Ines", "two dogs are loud"),
        WindowTurn("2", "Tom", "a lone dog gets ill", reply_to="0"),
        WindowTurn("3", "Ines", "hm"),
        WindowTurn("4", "Ines", "what does it cost"),
        WindowTurn("5", "Ines", "anyone", media=(Media(Modality.IMAGE, description="a sad dog"),)),
    )
    meme = Media(Modality.MEME, description="a happy dog")
    turn = WindowTurn("9", "Maya", "ok. you convinced me", reply_to="2", media=(meme,), language="en")
    return ObserveRequest("room", turn, 3, "t-1", "whether to get a dog", Stance.OPPOSE, window)
