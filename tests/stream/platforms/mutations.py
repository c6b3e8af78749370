"""Bad data made of good: bytes and JSON values changed at places that Hypothesis chooses."""

import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from stream.platforms import Line
from tracker.records import Refused

SAMPLES = Path(__file__).parent / "samples"

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["", "a", "-1", "99999999999999999999", "2026-10-01T08:00:00", "0001-01-01T00:00:00Z"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def changed_bytes(draw: st.DrawFn, sample: bytes) -> bytes:
    """The sample with up to four places cut, filled with other bytes, or doubled."""
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(sample)))
        until = at + draw(st.integers(0, 12))
        put = draw(st.binary(max_size=6) | st.sampled_from([b"\\", b"\\x", b'"', b"{", b"]", b"\n", b"\xff"]))
        sample = sample[:at] + put + sample[until:]
    return sample


@st.composite
def changed_json(draw: st.DrawFn, value: Any) -> Any:
    """The value with one to three of its parts replaced or taken away."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        holders = [part for part in _parts(value) if isinstance(part, dict | list) and part]
        if not holders:
            break
        holder = draw(st.sampled_from(holders))
        key = draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
        if draw(st.booleans()):
            holder[key] = draw(json_values)
        else:
            del holder[key]
    return value


def _parts(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(part for each in inner for part in _parts(each))]


def encoded(value: Any) -> bytes:
    """JSON as a platform would write it."""
    return json.dumps(value).encode()


def sound(lines: list[Line]) -> None:
    """Records or refusals, their numbers in order, and what is told of a refusal is whole."""
    assert [line.number for line in lines] == sorted(line.number for line in lines)
    for line in lines:
        if isinstance(line.result, Refused):
            assert line.result.field and line.result.got and line.result.remedy
