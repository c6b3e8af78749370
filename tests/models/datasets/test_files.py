import gzip
from pathlib import Path

import pytest

from models.datasets import files
from models.datasets.files import Malformed, MissingPart
from tests.models.datasets.putting import Put

PATTERNS = {"train": "*/train.json", "dev": "*/valid.json"}


def test_a_part_is_found_by_its_pattern(put: Put) -> None:
    root = put("a/train.json", [])
    put("b/train.json", [])
    put("a/valid.json", [])
    assert list(files.part_files(root, PATTERNS, "train")) == [
        ("train", root / "a/train.json"),
        ("train", root / "b/train.json"),
    ]
    assert [part for part, _ in files.part_files(root, PATTERNS, None)] == ["train", "train", "dev"]


def test_a_part_that_is_not_there_is_an_error_and_not_empty(put: Put) -> None:
    root = put("a/train.json", [])
    for split in ("dev", "test"):
        with pytest.raises(MissingPart):
            list(files.part_files(root, PATTERNS, split))
    with pytest.raises(MissingPart):
        list(files.part_files(root / "elsewhere", PATTERNS, None))


def test_a_misspelled_part_is_an_error() -> None:
    with pytest.raises(ValueError, match="no part 'valid'"):
        files.check_part("valid")


def test_parts_by_hash_keep_to_their_shares_and_never_change() -> None:
    parts = [files.part_by_hash(f"dialogue {number}") for number in range(2000)]
    assert 0.77 < parts.count("train") / 2000 < 0.83
    assert 0.07 < parts.count("dev") / 2000 < 0.13
    assert [files.part_by_hash(key) for key in "abc"] == ["test", "train", "dev"]


def test_groups_are_named_by_all_their_parts() -> None:
    assert files.short_hash("ab", "c") != files.short_hash("a", "bc")
    assert len(files.short_hash("a")) == 12


def test_a_refusal_names_the_file_and_the_line(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"a": 1}\n\n{"a": "x"}\n', encoding="utf-8")
    lines = files.decode_lines(path, dict[str, int])
    assert next(lines) == {"a": 1}
    with pytest.raises(Malformed, match=r"lines\.jsonl:3"):
        next(lines)


def test_gzipped_lines_read_alike(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a": 1}\n'))
    assert list(files.decode_lines(path, dict[str, int])) == [{"a": 1}]


@pytest.mark.parametrize("content", [b"[1,", b"\xff", b'["a"]'])
def test_what_is_not_the_json_asked_for_is_malformed(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(Malformed, match=r"file\.json"):
        files.decode(path, list[int])


def test_rows_know_quotes_line_ends_and_a_mark_at_the_start(put: Put) -> None:
    path = put("t.csv", '\ufeffid,text\r\n1,"He said ""no"",\nand left"\r\n') / "t.csv"
    assert list(files.rows(path, "id", "text")) == [{"id": "1", "text": 'He said "no",\nand left'}]


@pytest.mark.parametrize("content", ["id,words\n1,a\n", "id,text\n1,a,b\n", "id,text\n1\n"])
def test_rows_of_another_form_are_malformed(put: Put, content: str) -> None:
    with pytest.raises(Malformed):
        list(files.rows(put("t.csv", content) / "t.csv", "id", "text"))
