"""Reads other people's formats: every one becomes the same lines of records and refusals."""

from stream.platforms.declaring import declare
from stream.platforms.detection import FORMS, detect, open_records
from stream.platforms.forms import UnknownForm
from stream.platforms.lines import Line
from stream.platforms.sayings import Sayings, sayings

__all__ = ["FORMS", "Line", "Sayings", "UnknownForm", "declare", "detect", "open_records", "sayings"]
