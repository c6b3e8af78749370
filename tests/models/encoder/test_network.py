from pathlib import Path

import msgspec
import pytest
import torch

from models.encoder import adapter
from models.encoder.batching import collate
from models.encoder.loading import Loaded, encoder
from models.encoder.network import FAR
from models.reader import ObserveRequest
from tests.models.encoder.tiny import make_encoder


def test_shapes_and_that_padding_changes_nothing(loaded: Loaded, request_: ObserveRequest) -> None:
    short = msgspec.structs.replace(request_, window=())
    features = loaded.featurizer([request_, short])
    with torch.no_grad():
        both = loaded.network(collate(features, 1))
        alone = loaded.network(collate(features[1:], 1))
    whole = [(2, 4), (2, 4), (2, 7), (2, 3), (2,), (2, 4)]
    assert [tuple(part.shape) for part in both] == [*whole, (2, 9), (2, 9, 4)]  # the last two: of parts
    for together, single in zip(both[:-2], alone[:-2], strict=True):
        assert torch.allclose(together[1], single[0], atol=1e-5)
    assert torch.allclose(both.sides[1, :2], alone.sides[0], atol=1e-5)
    assert torch.allclose(both.pointer[1, :2], alone.pointer[0], atol=1e-5)
    assert (both.pointer[1, 2:] == FAR).all()


def test_regions_are_means_of_their_spans(loaded: Loaded, request_: ObserveRequest) -> None:
    (one,) = loaded.featurizer([request_])
    batch = collate([one], 1)
    assert torch.allclose(batch.regions.sum(-1), torch.ones(1, 3))
    assert torch.allclose(batch.parts.sum(-1), torch.ones(1, len(one.parts)))
    assert batch.types[0].nonzero()[:, 0].tolist() == list(range(*one.turn))
    assert batch.regions[0, 2].nonzero()[:, 0].tolist() == list(range(*one.proposition))


def test_an_encoder_without_token_types_learns_a_mark(
    tmp_path: Path, loaded: Loaded, request_: ObserveRequest
) -> None:
    network = adapter.fresh(encoder(make_encoder(tmp_path, types=1)))
    batch = collate(loaded.featurizer([request_]), 1)
    before = network(batch).expressed
    assert before.isfinite().all()
    with torch.no_grad():
        network.mark.fill_(1.0)
    assert not torch.allclose(before, network(batch).expressed)


def test_heads_are_the_same_for_a_seed(folder: Path) -> None:
    torch.manual_seed(7)
    one, same, other = (adapter.fresh(encoder(folder), seed).pool.weight for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_it_stays_in_eval_mode(loaded: Loaded) -> None:
    assert not any(module.training for module in loaded.network.modules())


@pytest.mark.parametrize("lora", [None, adapter.Lora(4, 8)])
def test_what_training_may_change(folder: Path, lora: adapter.Lora | None) -> None:
    network = adapter.fresh(encoder(folder))
    adapter.freeze(network, lora)
    names = set(adapter.trainable(network))
    assert {"pool.weight", "trigger.bias", "role.weight"} <= names
    assert not any("word_embeddings" in name for name in names)
    inside = {name for name in names if name.startswith("encoder.")}
    assert all("lora_" in name for name in inside) is (lora is not None)
    assert inside
