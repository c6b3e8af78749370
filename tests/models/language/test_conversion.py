import threading
import time
from pathlib import Path

import pytest

from models.language import conversion
from models.language.conversion import convert_once


def test_an_interrupted_conversion_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(gguf: Path, folder: Path) -> None:
        (folder / "config.json").write_text("{}")
        raise KeyboardInterrupt

    monkeypatch.setattr(conversion, "_convert", interrupted)
    with pytest.raises(KeyboardInterrupt):
        convert_once(tmp_path / "m.gguf", tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model.lock"]


def test_what_a_killed_conversion_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.partial-killed").mkdir()
    (tmp_path / "model.partial-killed" / "config.json").write_text("{")
    monkeypatch.setattr(
        conversion, "_convert", lambda gguf, folder: (folder / "config.json").write_text("{}")
    )
    convert_once(tmp_path / "m.gguf", tmp_path / "model")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "model.lock"]
    assert (tmp_path / "model" / "config.json").read_text() == "{}"


def test_two_at_once_convert_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Path] = []

    def slow(gguf: Path, folder: Path) -> None:
        assert not (tmp_path / "model").exists()
        time.sleep(0.2)
        done.append(folder)

    monkeypatch.setattr(conversion, "_convert", slow)
    both = [
        threading.Thread(target=convert_once, args=(tmp_path / "m.gguf", tmp_path / "model"))
        for _ in range(2)
    ]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(timeout=10)
    assert len(done) == 1
    assert (tmp_path / "model").is_dir()
