"""Files of a source's own form, written where a loader will look for them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.models.datasets.putting import Put


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Writes a file under the test's folder, what is no string as JSON, and gives the folder."""

    def _put(name: str, content: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        path.write_bytes(text.encode())
        return tmp_path

    return _put
