"""Which media a file is."""

import pytest

from stream.platforms.event_media import modality
from tracker.records import Modality


@pytest.mark.parametrize(
    ("mime", "file", "found"),
    [
        ("image/png", None, Modality.IMAGE),
        ("audio/ogg", "voice.ogg", Modality.AUDIO),
        ("video/mp4", None, Modality.VIDEO),
        ("application/pdf", "a.png", None),
        (None, "a.png", Modality.IMAGE),
        (None, "a.unheard", None),
        (None, None, None),
        ("", "a.png", None),
    ],
)
def test_by_mime_type_else_by_name(mime: str | None, file: str | None, found: Modality | None) -> None:
    assert modality(mime, file) == found
