import time
from pathlib import Path

import pytest
from huggingface_hub.errors import LocalEntryNotFoundError, OfflineModeIsEnabled

from models.language import conversion, weights
from models.language.weights import SMOLLM2, Found, is_complete, resolve
from models.language.wheels import WeightsUnavailable

CONVERTED = "SmolLM2-135M-Instruct-b179c9523d0e"


def fill(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (folder / name).write_text("{}")
    return folder


class Sources:
    """Stands where the hub's cache, the hub and the wheel do; remembers who was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.asked: list[str] = []
        self.folder = folder
        self.local: Path | None = None
        self.online = False
        monkeypatch.setattr(weights, "snapshot_download", self.snapshot_download)
        monkeypatch.setattr(weights, "HfApi", lambda: self)
        monkeypatch.setattr(weights, "member", lambda wheel, cache, progress: self)
        monkeypatch.setattr(conversion, "convert_once", self.convert_once)

    def snapshot_download(
        self, repository: str, *, revision: str, local_files_only: bool = False, **_: object
    ) -> str:
        assert (repository, revision) == (SMOLLM2.repository, SMOLLM2.revision)
        self.asked.append("cache" if local_files_only else "hub")
        if local_files_only and self.local is None:
            raise LocalEntryNotFoundError("nothing here")
        return str(self.local or fill(self.folder / "snapshot"))

    def model_info(self, repository: str, *, revision: str, timeout: float) -> None:
        assert timeout <= 2.0
        self.asked.append("probe")
        if not self.online:
            raise OfflineModeIsEnabled("offline")

    def __enter__(self) -> Path:
        self.asked.append("wheel")
        return self.folder / "model.gguf"

    def __exit__(self, *_: object) -> None: ...

    def convert_once(self, gguf: Path, folder: Path) -> None:
        fill(folder)


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Sources:
    return Sources(monkeypatch, tmp_path)


def test_the_hubs_cache_comes_first(sources: Sources, tmp_path: Path) -> None:
    sources.local = fill(tmp_path / "snapshot")
    fill(tmp_path / CONVERTED)
    assert resolve(SMOLLM2, cache=tmp_path) == Found(sources.local, SMOLLM2.name, SMOLLM2.revision)
    assert sources.asked == ["cache"]


def test_half_a_snapshot_is_none(sources: Sources, tmp_path: Path) -> None:
    sources.local = fill(tmp_path / "snapshot")
    (sources.local / "model.safetensors").unlink()
    assert not is_complete(sources.local)
    assert resolve(SMOLLM2, cache=tmp_path).folder == tmp_path / CONVERTED


def test_what_was_converted_is_used_again_and_no_network_is_asked(sources: Sources, tmp_path: Path) -> None:
    first = resolve(SMOLLM2, cache=tmp_path)
    assert first == Found(tmp_path / CONVERTED, SMOLLM2.name, "gguf-b179c9523d0e")
    assert sources.asked == ["cache", "wheel"]
    assert resolve(SMOLLM2, cache=tmp_path, hub=True) == first
    assert sources.asked == ["cache", "wheel", "cache"]


def test_the_hub_is_asked_where_it_may_be_and_its_silence_costs_nothing(
    sources: Sources, tmp_path: Path
) -> None:
    said: list[str] = []
    assert resolve(SMOLLM2, cache=tmp_path, hub=True, progress=said.append).folder == tmp_path / CONVERTED
    assert sources.asked == ["cache", "probe", "wheel"]
    assert said[0].startswith("the model hub did not give SmolLM2-135M-Instruct (OfflineModeIsEnabled)")


def test_the_hubs_answer_is_used(sources: Sources, tmp_path: Path) -> None:
    sources.online = True
    assert resolve(SMOLLM2, cache=tmp_path, hub=True).revision == SMOLLM2.revision
    assert sources.asked == ["cache", "probe", "hub"]


def test_a_cache_folder_that_cannot_be_is_said_with_the_remedy(sources: Sources, tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.touch()
    with pytest.raises(WeightsUnavailable, match=r"VOLTEFACE_CACHE.*VOLTEFACE_MODEL"):
        resolve(SMOLLM2, cache=taken)


def test_looking_into_the_real_hubs_cache_takes_no_time(tmp_path: Path) -> None:
    fill(tmp_path / CONVERTED)
    start = time.perf_counter()
    resolve(SMOLLM2, cache=tmp_path)
    assert time.perf_counter() - start < 2.0
