"""Tracebacks that may be logged."""

import traceback


def frames(error: BaseException) -> list[str]:
    """Where an error arose, innermost last; for errors whose message may quote a turn."""
    stack = traceback.extract_tb(error.__traceback__)
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in stack]
