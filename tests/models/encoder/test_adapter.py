from pathlib import Path

import msgspec
import pytest
import torch

from models.encoder import adapter, calibration
from models.encoder.adapter import AdapterConfig, Lora
from models.encoder.calibration import Calibration
from models.encoder.engine import EncoderEngine
from models.encoder.loading import encoder, load
from models.language.settings import InvalidSetting
from models.language.weights import Found
from models.reader import ObserveRequest
from tests.models.encoder.conftest import CPU
from tracker.observations import Mark
from tracker.stances import Expressed


def saved(found: Found, folder: Path, lora: Lora | None = None, **changes: object) -> adapter.StanceNetwork:
    network = adapter.fresh(encoder(found.folder), seed=5)
    adapter.freeze(network, lora)
    with torch.no_grad():
        for values in adapter.trainable(network).values():
            values.add_(0.05)
            values.copy_(values.half().float())  # so that fp16 keeps it whole
    fields = {"base": found.name, "base_revision": found.revision, "tokens": 128, "lora": lora}
    adapter.save(network, AdapterConfig(**(fields | changes)), folder)
    return network


@pytest.mark.parametrize("lora", [None, Lora(4, 8)])
def test_what_was_saved_reads_the_same_when_loaded(
    found: Found, tmp_path: Path, request_: ObserveRequest, lora: Lora | None
) -> None:
    network = saved(found, tmp_path, lora)
    made = load(found, tmp_path, CPU)
    features = made.featurizer([request_])
    from models.encoder.batching import collate

    batch = collate(features, 1)
    with torch.no_grad():
        for kept, again in zip(network(batch), made.network(batch), strict=True):
            assert torch.allclose(kept, again, atol=1e-5)
    assert made.featurizer.tokens == 128
    assert not made.untrained
    assert made.revision.startswith(f"{found.revision}+")
    (seen,) = EncoderEngine(made).observe([request_])
    assert Mark.UNTRAINED not in seen.marks


def test_only_an_adapter_that_learned_beside_sides_is_shown_them(
    found: Found, tmp_path: Path, request_: ObserveRequest
) -> None:
    heard = {request_.target: Expressed.SUPPORT}
    window = tuple(msgspec.structs.replace(turn, sides=heard) for turn in request_.window)
    sided = msgspec.structs.replace(request_, window=window)
    for learned in (False, True):
        saved(found, tmp_path / str(learned), sides=learned)
        featurizer = load(found, tmp_path / str(learned), CPU).featurizer
        assert (featurizer([sided]) != featurizer([request_])) is learned


def test_word_embeddings_are_not_saved_and_all_is_fp16(found: Found, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    saved(found, tmp_path)
    tensors = load_file(tmp_path / adapter.WEIGHTS)
    assert not any("word_embeddings" in name for name in tensors)
    assert {values.dtype for values in tensors.values()} == {torch.float16}
    assert {path.name for path in tmp_path.iterdir()} == {adapter.CONFIG, adapter.WEIGHTS}


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"base_revision": "other"}, "was trained on"), ({"kind": "lora"}, "of kind 'lora'")],
)
def test_another_adapter_is_refused(
    found: Found, tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    saved(found, tmp_path, **changes)
    with pytest.raises(InvalidSetting, match=said):
        load(found, tmp_path, CPU)


def test_no_adapter_is_refused(found: Found, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="volteface train encoder"):
        load(found, tmp_path, CPU)
    saved(found, tmp_path)
    (tmp_path / adapter.WEIGHTS).write_bytes(b"spoilt")
    with pytest.raises(InvalidSetting, match="adapter"):
        load(found, tmp_path, CPU)


def test_calibration_is_read_from_beside_it(found: Found, tmp_path: Path, request_: ObserveRequest) -> None:
    saved(found, tmp_path)
    plain = EncoderEngine(load(found, tmp_path, CPU)).observe([request_])[0].expressed
    calibration.save(Calibration(expressed=4.0), tmp_path)
    cooled = EncoderEngine(load(found, tmp_path, CPU)).observe([request_])[0].expressed
    assert max(msgspec.structs.astuple(cooled)) < max(msgspec.structs.astuple(plain))
    (tmp_path / calibration.FILE).write_text('{"expressed": 0}')
    with pytest.raises(InvalidSetting, match="train policy"):
        load(found, tmp_path, CPU)
