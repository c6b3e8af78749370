"""Loading without progress bars: a stream product's stderr is read by people and machines."""

from collections.abc import Iterator
from contextlib import contextmanager

from transformers.utils import logging


@contextmanager
def quietly() -> Iterator[None]:
    """transformers' progress bars off, and as they were afterwards."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
