import subprocess
import sys

import pytest
import torch

from models.hardware import bf16_on_cpu, int8_on_cpu


@pytest.mark.parametrize(
    ("told", "native"), [({"avx512_bf16": True}, True), ({"avx2": True}, False), ({}, False)]
)
def test_bf16_is_native_where_the_processor_says_so(
    told: dict[str, object], native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: told, raising=False)
    assert bf16_on_cpu() is native


def test_a_torch_that_cannot_tell_counts_as_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert not bf16_on_cpu()


def test_threads_that_wait_do_not_spin_unless_somebody_asked_for_it() -> None:
    code = "import os, models; print(os.environ['OMP_WAIT_POLICY'])"
    for environment, policy in (({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        assert done.stdout.strip() == policy


@pytest.mark.parametrize(
    ("told", "native"), [({"avx512_vnni": True}, True), ({"amx_int8": True}, True), ({"avx2": True}, False)]
)
def test_int8_is_native_where_the_processor_says_so(
    told: dict[str, object], native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: told, raising=False)
    assert int8_on_cpu() is native
    monkeypatch.delattr(torch, "_int_mm")
    assert not int8_on_cpu()
