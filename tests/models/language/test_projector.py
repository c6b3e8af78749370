from pathlib import Path

import pytest
import torch
from torch import nn

from models.language import projector
from models.language.projector import MEDIA, Projector, ProjectorConfig, spliced
from models.language.settings import InvalidSetting

CONFIG = ProjectorConfig(kind="mlp", inputs=8, hidden=6, base_revision="1")
LINEAR = ProjectorConfig(kind="linear", inputs=8, hidden=6, base_revision="1")


def test_equation_7() -> None:
    made, vectors = Projector(CONFIG), torch.randn(3, 8)
    first, norm, act, last = made.layers
    unit = vectors / vectors.norm(dim=-1, keepdim=True)
    assert torch.allclose(made(vectors), last(nn.functional.gelu(norm(first(unit)))), atol=1e-6)
    assert isinstance(act, nn.GELU)
    assert [tuple(values.shape) for values in (first.weight, last.weight)] == [(6, 8), (6, 6)]


def test_a_linear_one_is_one_layer_and_length_does_not_count() -> None:
    made, vectors = Projector(LINEAR), torch.randn(3, 8)
    assert sum(values.numel() for values in made.parameters()) == 6 * 8 + 6
    assert torch.allclose(made(vectors), made(5 * vectors), atol=1e-6)


def test_vectors_take_their_places_in_order_and_gradients_reach_them() -> None:
    embedding, vectors = nn.Embedding(10, 6), torch.randn(3, 6, requires_grad=True)
    ids = torch.tensor([[1, MEDIA, 2, MEDIA], [3, 4, MEDIA, 5]])
    made = spliced(embedding, ids, vectors)
    assert torch.equal(made[0, 1], vectors[0])
    assert torch.equal(made[0, 3], vectors[1])
    assert torch.equal(made[1, 2], vectors[2])
    assert torch.equal(made[1, 0], embedding.weight[3])
    made.sum().backward()
    assert torch.equal(vectors.grad, torch.ones(3, 6))


def test_places_and_vectors_must_be_equally_many() -> None:
    with pytest.raises(ValueError, match="1 places for 2 media vectors"):
        spliced(nn.Embedding(10, 6), torch.tensor([[1, MEDIA]]), torch.randn(2, 6))


@pytest.mark.parametrize("config", [CONFIG, LINEAR])
def test_what_is_saved_comes_back(config: ProjectorConfig, tmp_path: Path) -> None:
    made, vectors = Projector(config), torch.randn(2, 8)
    projector.save(made, tmp_path)
    again = projector.load(tmp_path)
    assert again.config == config
    assert torch.equal(again(vectors), made(vectors))
    assert {path.name for path in tmp_path.iterdir()} == {projector.CONFIG, projector.WEIGHTS}


def test_a_folder_without_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=f"^projector: {tmp_path}.*; name a folder made by"):
        projector.load(tmp_path)
