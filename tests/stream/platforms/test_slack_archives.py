"""A Slack export's files: from a folder and from a .zip, also within a folder of its own."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from stream.platforms.slack_archives import Layout, opened

Make = Callable[[Path, dict[str, str]], Path]


def packed(tmp_path: Path, files: dict[str, str]) -> Path:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return path


def unpacked(tmp_path: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (tmp_path / "export" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "export" / name).write_text(content)
    return tmp_path / "export"


@pytest.mark.parametrize("make", [packed, unpacked])
def test_both_kinds_have_the_same_files(make: Make, tmp_path: Path) -> None:
    with opened(make(tmp_path, {"channels.json": "[]", "quay/2026-10-01.json": "[1]"})) as archive:
        assert sorted(archive.names()) == ["channels.json", "quay/2026-10-01.json"]
        with archive.open("quay/2026-10-01.json") as stream:
            assert stream.read() == b"[1]"


@pytest.mark.parametrize("root", ["", "Tide export/"])
def test_a_layout(root: str) -> None:
    names = ["quay/2026-10-02.json", "quay/2026-10-01.json", "a/canvas.json", "a/b/2026-10-01.json"]
    names += ["dms.json", "channels.json", "users.json", "integration_logs.json"]
    layout = Layout([root + name for name in names] + ["__MACOSX/x/2026-10-01.json"] * bool(root))
    assert layout.lists() == [f"{root}channels.json", f"{root}dms.json"]
    assert layout.users() == f"{root}users.json"
    days = layout.days()
    assert days["quay"] == [f"{root}quay/2026-10-01.json", f"{root}quay/2026-10-02.json"]
    assert list(days) == ["quay"]


def test_other_files_are_no_export() -> None:
    layout = Layout(["users.json", "a/2026-10-01.json"])
    assert not layout.is_export
    assert Layout(["groups.json"]).users() is None


def test_a_broken_zip_is_an_os_error(tmp_path: Path) -> None:
    path = packed(tmp_path, {"channels.json": "[]" * 1000})
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    with pytest.raises(OSError, match="broken or locked"), opened(path):
        pass
    path.write_bytes(whole[:45] + b"\xff\xff\xff" + whole[48:])  # within what is packed
    with pytest.raises(OSError, match="broken or locked"), opened(path) as archive:
        archive.open("channels.json").read()
    with pytest.raises(FileNotFoundError), opened(tmp_path / "missing.zip"):
        pass
