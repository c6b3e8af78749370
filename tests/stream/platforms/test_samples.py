"""A file's beginning: how much of it is read, and what it shows."""

import io
import json

import pytest

from stream.platforms.samples import HEAD_BYTES, sampled


def test_a_line_shows_its_fields_with_their_values() -> None:
    raw = b'{"kind": "a", "n": 1, "flag": true, "none": null, "inner": {"deep": 2}, "list": [3]}\nnext\n'
    head, sample = sampled(io.BytesIO(raw))
    assert head == raw.splitlines(keepends=True)[0]  # no more is read than that needs
    assert sample.fields == {"kind": "a", "n": 1, "flag": True, "none": None, "inner": None, "list": None}
    assert (sample.is_document, sample.path) == (False, None)


@pytest.mark.parametrize("before", ["", "\n\n", "\ufeff", "\ufeff\n"])
@pytest.mark.parametrize("value", [{"id": 5, "a": {"id": 6}}, [{"id": 5}, {"id": 7, "b": 1}]])
def test_a_document_shows_the_fields_of_its_first_object(before: str, value: object) -> None:
    raw = (before + json.dumps(value, indent=2)).encode()
    head, sample = sampled(io.BytesIO(raw))
    assert (sample.is_document, sample.fields["id"], head) == (True, 5, raw)
    assert "b" not in sample.fields


def test_a_document_is_seen_as_far_as_its_beginning() -> None:
    raw = b'{\n "id": 5,\n "text": "' + b"x" * 3 * HEAD_BYTES + b'",\n "late": 1\n}'
    _, sample = sampled(io.BytesIO(raw))
    assert sample.fields == {"id": 5, "text": None}
    line = b'{"id": 5, "text": "' + b"x" * 2_000_000 + b'", "late": 1}'
    _, sample = sampled(io.BytesIO(line))
    assert (sample.fields, sample.is_document) == ({"id": 5, "text": None}, True)


@pytest.mark.parametrize(
    "raw", [b"", b"\n", b"x", b"\xff\xfe", b"{", b"[", b"[" * 100_000, b'"a"', b"\n" * 200_000]
)
def test_what_shows_nothing(raw: bytes) -> None:
    assert sampled(io.BytesIO(raw))[1].fields == {}
