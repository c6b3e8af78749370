"""Which media an attached file is."""

import mimetypes

from tracker.records import Modality

_KINDS = {"image": Modality.IMAGE, "audio": Modality.AUDIO, "video": Modality.VIDEO}


def modality(mime: str | None, file: str | None = None) -> Modality | None:
    """By the MIME type, else by the file's name; none of a file that is no media."""
    if mime is None and file is not None:
        mime = mimetypes.guess_type(file)[0]
    return _KINDS.get((mime or "").partition("/")[0])
