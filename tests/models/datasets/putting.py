"""The type of the fixture that writes a source's files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

Put = Callable[[str, Any], Path]
