"""Reads other people's formats: every one becomes the same lines of records and refusals."""

from stream.platforms.declaring import declare
from stream.platforms.detection import FORMS, UnknownForm, detect, open_records
from stream.platforms.lines import Line

__all__ = ["FORMS", "Line", "UnknownForm", "declare", "detect", "open_records"]
