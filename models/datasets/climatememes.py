"""ClimateMemes (English): memes about climate change, the words in them, and the stance they take."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from models.datasets.dialogue import Dialogue, LabelledTurn
from models.datasets.files import Malformed, decode, in_part, one_file, part_by_hash
from tracker.records import Media, Modality
from tracker.stances import Expressed

SOURCE = "climatememes"
PROPOSITION = "The debate concerning whether climate change is real and must be acted upon"
STANCES = {"convinced": Expressed.SUPPORT, "skeptical": Expressed.OPPOSE, "neither": Expressed.NONE}
_MIMES = {".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png"}


class _Meme(msgspec.Struct):
    file: str
    stance: str
    title: str
    ocr: str
    caption: str


def load(path: Path, split: str | None = None) -> Iterator[Dialogue]:
    """One post a meme, its title the text; not every meme's picture need be there. Parts are by hash."""
    file = one_file(path, "images/labels.json")
    return in_part((_dialogue(file, meme) for meme in decode(file, list[_Meme])), split)


def _dialogue(file: Path, meme: _Meme) -> Dialogue:
    if meme.stance not in STANCES:
        raise Malformed(f"{file}: {meme.file}: no stance {meme.stance!r}")
    turn = LabelledTurn(
        index=0,
        speaker="poster",
        text=meme.title.strip(),
        media=(_media(file.parent / meme.file, meme),),
        expressed=STANCES[meme.stance],
        # The caption says what the meme means: as a description it would give the label away.
        rationale=meme.caption.strip(),
        label=meme.stance,
    )
    return Dialogue(
        id=f"{SOURCE}-{Path(meme.file).stem}",
        source=SOURCE,
        language="en",
        split=part_by_hash(meme.file),
        proposition=PROPOSITION,
        register="forum post",
        domain="climate change",
        turns=(turn,),
    )


def _media(image: Path, meme: _Meme) -> Media:
    words = " / ".join(part.strip() for part in meme.ocr.split("/n") if part.strip())  # "/n": a line's end
    return Media(
        modality=Modality.MEME,
        uri=image.resolve().as_uri() if image.is_file() else None,
        mime=_MIMES.get(image.suffix.lower()),
        description=f'A meme that reads "{words}"' if words else None,
    )
