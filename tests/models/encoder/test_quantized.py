from pathlib import Path

import msgspec
import pytest
import torch
from torch import nn

from models.encoder import loading, quantized
from models.encoder.engine import EncoderEngine
from models.encoder.loading import Loaded, load
from models.encoder.quantized import Int8Linear
from models.language.backbone import Placement
from models.language.registry import ReaderSettings, build_engine
from models.language.settings import InvalidSetting
from models.language.weights import Found
from models.reader import ExplainRequest, ObserveRequest
from tests.models.encoder.test_engine import apart
from tests.models.encoder.tiny import make_encoder
from tracker.stances import Stance

INT8 = Placement("cpu", "int8", threads=1)
BOUND = 0.02  # of a probability, on random weights that are wide on purpose


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is computed does not depend on how fast it is."""
    monkeypatch.setattr(quantized, "int8_on_cpu", lambda: True)


@pytest.fixture
def int8(found: Found) -> Loaded:
    return load(found, placement=INT8)


@pytest.fixture
def requests(request_: ObserveRequest) -> list[ObserveRequest]:
    states = [msgspec.structs.replace(request_, state=state) for state in Stance]
    return [*states, msgspec.structs.replace(request_, window=())]


def test_answers_are_close_to_float32(loaded: Loaded, int8: Loaded, requests: list[ObserveRequest]) -> None:
    exact, close = (EncoderEngine(one).observe(requests) for one in (loaded, int8))
    assert 0 < max(map(apart, exact, close)) < BOUND


def test_it_answers_the_same_every_time_and_when_loaded_again(
    found: Found, int8: Loaded, requests: list[ObserveRequest]
) -> None:
    engine = EncoderEngine(int8)
    seen = engine.observe(requests)
    assert engine.observe(requests) == seen
    assert EncoderEngine(load(found, placement=INT8)).observe(requests) == seen
    (why,) = engine.explain([ExplainRequest(requests[0], seen[0], Stance.SUPPORT)])
    assert why.trigger.turns


def test_neighbours_hardly_change_an_answer(int8: Loaded, requests: list[ObserveRequest]) -> None:
    together = EncoderEngine(int8).observe(requests)
    alone = EncoderEngine(int8, batch_tokens=1).observe(requests)
    assert max(map(apart, together, alone)) < BOUND


def test_a_row_is_rounded_to_its_own_scale() -> None:
    rows = torch.tensor([[0.5, -1.0, 0.25], [100.0, 1.0, -50.0], [0.0, 0.0, 0.0]])
    values, scales = quantized.quantized(rows)
    assert values.dtype is torch.int8
    assert values.abs().amax(-1).tolist() == [127, 127, 0]
    assert ((values * scales - rows).abs() <= scales / 2).all()


@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_is_close_to_its_own(bias: bool) -> None:
    torch.manual_seed(0)
    linear, inputs = nn.Linear(48, 20, bias=bias), torch.randn(2, 5, 48)
    exact, close = linear(inputs), Int8Linear(linear)(inputs)
    assert close.shape == exact.shape
    assert (close - exact).norm() < 0.02 * exact.norm()


def test_every_linear_layer_of_the_encoder_is_int8_and_the_heads_are_not(int8: Loaded) -> None:
    inside = [type(module) for module in int8.network.encoder.modules()]
    assert inside.count(Int8Linear) == 2 * 6
    assert nn.Linear not in inside
    assert type(int8.network.pool) is nn.Linear


def test_an_encoder_without_token_types_reads_too(tmp_path: Path, request_: ObserveRequest) -> None:
    make_encoder(tmp_path, types=1)
    (exact,), (close,) = (
        build_engine(ReaderSettings(engine="encoder", path=tmp_path, device="cpu", dtype=dtype, threads=1))
        .observe([request_])
        for dtype in ("float32", "int8")
    )  # fmt: skip
    assert apart(exact, close) < BOUND


def test_a_gpu_is_refused_with_a_remedy() -> None:
    with pytest.raises(
        InvalidSetting, match=r"^dtype: int8 is made for CPUs.*cuda.*; use auto there"
    ) as told:
        quantized.check(torch.device("cuda:0"))
    assert told.value.field == "dtype"


def test_a_cpu_that_gains_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantized, "int8_on_cpu", lambda: False)
    with pytest.raises(InvalidSetting, match=r"^dtype: .*avx512_vnni.*; use auto or float32$"):
        loading.serving(INT8)


def test_nothing_is_trained_in_int8() -> None:
    with pytest.raises(InvalidSetting, match=r"^dtype: int8 is for reading"):
        loading.precision(INT8)
