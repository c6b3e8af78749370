"""PanoSent (English part): multimodal dialogues with sextuples and sentiment flips (ACM MM 2024, section 3).

The labels name no turn; four in ten holders of a flip speak once: what they felt before is told, not shown.
`doc_id` restarts in each file; the source has no parts, so they are by hash.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from models.datasets.dialogue import Dialogue, LabelledTurn
from models.datasets.files import Malformed, MissingPart, decode, in_part, naming, part_by_hash
from models.datasets.panosent_labels import flips, opinions, strip_tags
from tracker.records import Media, Modality

SOURCE = "panosent"
_DOMAINS = (
    "art",
    "electronic",
    "fashion",
    "finance",
    "food",
    "health",
    "movie",
    "sport",
    "technology",
    "travel",
)
_MODALITIES = {"img": Modality.IMAGE, "aud": Modality.AUDIO, "vid": Modality.VIDEO, "video": Modality.VIDEO}
_MIMES = {".jpg": "image/jpeg", ".png": "image/png", ".wav": "audio/wav", ".mp3": "audio/mpeg"}
_MIMES[".mp4"] = "video/mp4"
_SETS = "[ei][xm]p.*flip"  # explicit or implicit, text or with media, with a flip or without

_Key = tuple[str, str, str, str]  # set, kind of media, domain, name of the file


class _Speaker(msgspec.Struct):
    id: int
    name: str


class _Turn(msgspec.Struct):
    speaker: int
    utterance: str
    reply: int
    annotation: Any = None
    modality: Any = None  # "None", null, or a dict


class _Dialogue(msgspec.Struct):
    doc_id: str
    speakers: list[_Speaker]
    dialogue: list[_Turn]
    hexatuple: list[Any]
    # The flips' key is spelled in three ways.
    spaced: Any = msgspec.field(default=None, name="sentiment flip")
    joined: Any = msgspec.field(default=None, name="sentiment_flip")
    short: Any = msgspec.field(default=None, name="sentiment")


def load(path: Path, split: str | None = None) -> Iterator[Dialogue]:
    """The dialogues under `path`; media files are found there, or in `../media/<name of path>`.

    Raises MissingPart where no set is there, Malformed on a file of another form.
    """
    files = sorted(path.glob(f"{_SETS}/**/*.json"))
    if not files:
        raise MissingPart(f"{path}: no {_SETS} folder with JSON here")
    media = _media_files(path) | _media_files(path.parent / "media" / path.name)
    return in_part((dialogue for file in files for dialogue in _file(path, file, media)), split)


def _media_files(root: Path) -> dict[_Key, Path]:
    return {
        (file.parts[-4], file.parts[-3], _domain(file.parts[-2]), file.stem): file
        for file in sorted(root.glob(f"{_SETS}/*/*/*"))
        if file.suffix in _MIMES
    }


def _domain(name: str) -> str:
    """The domain that "elec", "test_elec" or "exp.txt.flip.electronic" ends in."""
    word = re.split(r"[._]", name)[-1]
    matching = [domain for domain in _DOMAINS if word[:4] and domain.startswith(word[:4])]
    if len(matching) != 1:
        raise Malformed(f"{name}: none of PanoSent's domains")
    return matching[0]


def _file(root: Path, file: Path, media: Mapping[_Key, Path]) -> Iterator[Dialogue]:
    """A file's dialogues; one file is an empty list."""
    subset, *folders = file.relative_to(root).parent.parts
    kind = folders[0] if folders else "txt"
    domain = _domain(file.stem)
    for raw in decode(file, list[_Dialogue]):
        name = f"{SOURCE}-{subset}-{kind}-{domain}-{raw.doc_id}"
        with naming(f"{file}: {raw.doc_id}"):
            names = _names(raw.speakers)
            turns = tuple(
                _turn(index, turn, names, _media(turn.modality, (subset, kind, domain), media))
                for index, turn in enumerate(raw.dialogue)
            )
        yield Dialogue(
            id=name,
            source=SOURCE,
            language="en",
            split=part_by_hash(name),
            domain=domain,
            turns=turns,
            opinions=tuple(opinions(raw.hexatuple)),
            sentiment_flips=tuple(
                flip for value in (raw.spaced, raw.joined, raw.short) for flip in flips(value)
            ),
        )


def _names(speakers: list[_Speaker]) -> dict[int, str]:
    """Names by id, which do not always count from 0; a second person of one name is told apart by it."""
    counts: Counter[str] = Counter()
    names = {}
    for speaker in speakers:
        counts[speaker.name] += 1
        repeated = counts[speaker.name] > 1
        names[speaker.id] = f"{speaker.name} ({speaker.id})" if repeated else speaker.name
    return names


def _turn(index: int, turn: _Turn, names: Mapping[int, str], media: tuple[Media, ...]) -> LabelledTurn:
    if turn.speaker not in names:
        raise ValueError(f"turn {index}: no speaker {turn.speaker}")
    return LabelledTurn(
        index=index,
        speaker=names[turn.speaker],
        text=_text(turn),
        reply_to=turn.reply if 0 <= turn.reply < index else None,  # one answers a later turn
        media=media,
    )


def _text(turn: _Turn) -> str:
    """The words alone: tags left in them would give the labels away."""
    # Backslashes of \target and \flexible were read as tab and form feed: the annotation is still whole.
    broken = any(character < " " for character in turn.utterance)
    return strip_tags(turn.annotation if broken and isinstance(turn.annotation, str) else turn.utterance)


def _media(modality: object, place: tuple[str, str, str], files: Mapping[_Key, Path]) -> tuple[Media, ...]:
    if not isinstance(modality, dict) or modality.get("type") not in _MODALITIES:
        return ()
    file = files.get((*place, str(modality.get("id"))))
    caption = modality.get("caption")
    item = Media(
        modality=_MODALITIES[modality["type"]],
        uri=file.resolve().as_uri() if file else None,
        mime=_MIMES[file.suffix] if file else None,
        description=strip_tags(caption) if isinstance(caption, str) else None,
    )
    return (item,)
