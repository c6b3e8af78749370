"""Table 8 of StanceFlip, value by value."""

from types import SimpleNamespace

import pytest
import torch

from models.language.settings import InvalidSetting
from models.training import quantization
from models.training.stages import LINEAR, PAPER, SMALL

TABLE_8 = {
    "quantization": ("fp16", "int8", "nf4"),
    "optimizer": ("adamw", "adamw", "paged_adamw_32bit"),
    "rate": (2e-5, 1e-4, 5e-5),
    "shape": ("cosine", "linear", "linear"),
    "warmup": (0.0, 0.03, 0.03),
    "batch": (4, 1, 4),
    "accumulation": (1, 32, 16),
    "clip": (1.0, 1.0, 0.3),
    "epochs": (3, 2, 2),
    "decay": (0.0, 0.0, 0.0),  # of which Table 8 says nothing
}


@pytest.mark.parametrize("name", TABLE_8)
def test_the_papers_settings_are_table_8(name: str) -> None:
    stages = (PAPER.alignment, PAPER.reasoning, PAPER.reflection)
    assert tuple(getattr(stage, name) for stage in stages) == TABLE_8[name]


def test_lora_is_table_8s_on_every_linear_layer() -> None:
    for stage in (PAPER.reasoning, PAPER.reflection):
        assert (stage.lora.rank, stage.lora.alpha, stage.lora.dropout) == (16, 32, 0.05)
    assert set(LINEAR) == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
    assert PAPER.alignment.projector == "mlp"
    assert (PAPER.reflection.above, PAPER.reflection.rehearsed) == (0.4, 1.0)


def test_stage_3_can_go_on_from_stage_2() -> None:
    for stages in (PAPER, SMALL):
        two, three = stages.reasoning.lora, stages.reflection.lora
        assert (two.rank, two.alpha) == (three.rank, three.alpha)


def test_the_small_settings_need_no_gpu() -> None:
    for stage in (SMALL.alignment, SMALL.reasoning, SMALL.reflection):
        quantization.check(stage.quantization, stage.optimizer)
    assert (SMALL.reasoning.lora.rank, SMALL.reasoning.rate) == (16, 3e-4)


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without a GPU")
@pytest.mark.parametrize("asked", [("fp16", "adamw"), ("int8", "adamw"), ("nf4", "paged_adamw_32bit")])
def test_without_a_gpu_what_needs_one_is_refused_by_name(asked: tuple[str, str]) -> None:
    with pytest.raises(InvalidSetting, match=f"^quantize: {asked[0]} needs a GPU.*--quantize none$"):
        quantization.check(*asked)


def test_without_bitsandbytes_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(quantization, "find_spec", lambda name: None)
    with pytest.raises(InvalidSetting, match=r"^quantize: int8 needs bitsandbytes; pip install"):
        quantization.check("int8")
    quantization.check("fp16")


@pytest.mark.parametrize(
    ("device", "quantized", "dtype", "half"),
    [
        ("cuda", "none", torch.float32, False),  # as asked for
        ("cuda", "none", torch.bfloat16, True),
        ("cuda", "nf4", torch.float32, True),  # of its norms
        ("cpu", "none", torch.bfloat16, False),
    ],
)
def test_passes_are_in_bfloat16_where_it_is_fast_and_not_refused(
    device: str, quantized: str, dtype: torch.dtype, half: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quantization, "bf16_on_cpu", lambda: False)
    backbone = SimpleNamespace(device=torch.device(device), model=SimpleNamespace(dtype=dtype))
    assert quantization.halved(backbone, quantized) is half


def test_nf4_is_doubly_quantized() -> None:
    four = quantization.bits("nf4")
    assert (four.load_in_4bit, four.bnb_4bit_quant_type, four.bnb_4bit_use_double_quant) == (
        True,
        "nf4",
        True,
    )
    assert quantization.bits("int8").load_in_8bit
