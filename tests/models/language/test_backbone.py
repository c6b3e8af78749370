import os
from pathlib import Path

import pytest
import torch

from models.language.backbone import Backbone, Placement, fingerprint, load, local
from models.language.settings import MOST_THREADS, InvalidSetting


def test_a_template_without_a_system_role_gets_the_instruction_from_the_user(tiny_folder: Path) -> None:
    backbone = load(local(tiny_folder), placement=Placement("cpu", threads=1))
    backbone.tokenizer.chat_template = (
        "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('none') }}{% endif %}"
        "[{{ m['content'] }}]{% endfor %}"
    )
    head, tail = backbone.frame("Judge.")
    assert (backbone.decode(head), backbone.decode(tail)) == ("[Judge.\n\n", "]")


def test_no_template_is_plain_text(tiny_folder: Path) -> None:
    backbone = load(local(tiny_folder), placement=Placement("cpu", threads=1))
    backbone.tokenizer.chat_template = None
    head, tail = backbone.frame("Judge.")
    assert (backbone.decode(head), backbone.decode(tail)) == ("Judge.\n\n", "\n\n")


def test_threads_are_what_was_asked_for(tiny_folder: Path) -> None:
    load(local(tiny_folder), placement=Placement("cpu", threads=1))
    assert torch.get_num_threads() == 1


def test_unasked_threads_are_bounded() -> None:
    before = torch.get_num_threads()
    try:
        Placement().apply_threads()
        assert torch.get_num_threads() == min(len(os.sched_getaffinity(0)), MOST_THREADS)
    finally:
        torch.set_num_threads(before)


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without a GPU")
@pytest.mark.parametrize(("native", "dtype"), [(True, torch.bfloat16), (False, torch.float32)])
def test_without_a_gpu_auto_is_the_cpu_in_what_is_native_there(
    native: bool, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("models.language.backbone.bf16_on_cpu", lambda: native)
    assert Placement().resolved() == (torch.device("cpu"), dtype)


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without a GPU")
def test_without_a_gpu_cuda_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="device: 'cuda:0', but torch sees no GPU; use auto or cpu"):
        Placement(device="cuda:0").resolved()


def test_a_fingerprint_tells_weights_apart(tiny_folder: Path, tmp_path: Path) -> None:
    for name, size in (("a", 10), ("b", 3 << 20)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(bytes(size))
    prints = {fingerprint(folder) for folder in (tiny_folder, tmp_path / "a", tmp_path / "b")}
    assert len(prints) == 3
    assert all(len(one) == 12 for one in prints)


def test_an_answer_ends_where_the_model_says(tiny: Backbone) -> None:
    assert tiny.stops == {2}


@pytest.mark.parametrize("field", ["path", "adapter"])
def test_a_folder_without_a_model_is_named(field: str, tiny_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=f"^{field}: {tmp_path} ") as error:
        load(local(tmp_path)) if field == "path" else load(local(tiny_folder), tmp_path)
    assert error.value.field == field


def test_int8_is_for_the_encoder(tiny_folder: Path) -> None:
    with pytest.raises(InvalidSetting, match=r"^dtype: int8, which only engine encoder reads in"):
        load(local(tiny_folder), placement=Placement("cpu", "int8", threads=1))
