"""The project's own sources as syntax trees."""

import ast
import gc
from pathlib import Path


def parsed(path: Path) -> ast.Module:
    """The syntax tree. CPython 3.11 cannot build one while a collection runs what other tests left over."""
    source = path.read_text(encoding="utf-8")
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        gc.enable()
