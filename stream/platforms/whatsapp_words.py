"""What WhatsApp itself writes into an export, in the languages of `whatsapp_words.toml`."""

import re
from pathlib import Path

import msgspec

from tracker.records import Modality

MARK = "\u200e"  # iOS puts it before what WhatsApp wrote

_DIRECTIONS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_AROUND = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\ufeff \t\n\r\xa0\u202f"
_LONGEST = 400  # characters of what WhatsApp writes
_EXTENSIONS = {
    **dict.fromkeys(("jpg", "jpeg", "png", "heic", "heif"), Modality.IMAGE),
    **dict.fromkeys(("mp4", "mov", "3gp", "mkv", "avi", "gif"), Modality.VIDEO),
    **dict.fromkeys(("opus", "ogg", "m4a", "mp3", "aac", "amr", "wav"), Modality.AUDIO),
    "webp": Modality.MEME,
}


class _LeftOut(msgspec.Struct, forbid_unknown_fields=True):
    other: list[str]
    image: list[str]
    video: list[str]
    audio: list[str]
    meme: list[str]


class _Words(msgspec.Struct, forbid_unknown_fields=True):
    deleted: list[str]
    system: list[str]
    begins: list[str]
    tells: list[str]
    edited: list[str]
    attached: list[str]
    left_out: _LeftOut


_WORDS = msgspec.toml.decode(
    Path(__file__).with_suffix(".toml").read_bytes(), type=dict[str, _Words]
).values()
_NOBODYS = frozenset(said for words in _WORDS for said in (*words.deleted, *words.system))
_BEGINS = tuple(begin for words in _WORDS for begin in words.begins)
_TELLS = re.compile("|".join(tell for words in _WORDS for tell in words.tells))
_LEFT_OUT: dict[str, Modality | None] = {
    said: None if kind == "other" else Modality(kind)
    for words in _WORDS
    for kind, listed in msgspec.structs.asdict(words.left_out).items()
    for said in listed
}


def _any(listed: list[str]) -> str:
    return "|".join(re.escape(said) for said in sorted(listed, key=len, reverse=True))


_EDITED = re.compile(
    rf"\s*{MARK}?<\s*(?:{_any([said for words in _WORDS for said in words.edited])})[.。]?\s*>\s*$",
    re.IGNORECASE,
)
_ATTACHED_WORDS = _any([said for words in _WORDS for said in words.attached])
_ATTACHED = re.compile(
    rf"{MARK}?<\s*(?:{_ATTACHED_WORDS})\s?[:：]\s?(?P<file>[^<>\n]+)>"
    rf"|^{MARK}?(?P<name>\S[^\n]*?\.\w{{2,5}})\s\((?:{_ATTACHED_WORDS})\)(?=\n|$)",
    re.IGNORECASE,
)


def unmarked(text: str) -> str:
    """Without marks of direction and space around it."""
    return text.strip(_AROUND)


def is_nobodys(speaker: str, text: str) -> bool:
    """Whether WhatsApp wrote it: in place of what was deleted, or a row that looks as if it had a speaker."""
    said = _plain(text)
    return said in _NOBODYS or said.startswith(_BEGINS) or bool(_TELLS.search(_plain(speaker)))


def unedited(text: str) -> str:
    """Without the mark of an edit at its end."""
    return text[:-_LONGEST] + _EDITED.sub("", text[-_LONGEST:])


def attachment(text: str) -> tuple[str, Modality | None, str] | None:
    """The file a text names, its kind where it is one that is read, and the text without it."""
    found = _ATTACHED.search(text)
    if found is None:
        return None
    name = (found["file"] or found["name"]).strip()
    return (
        name,
        _EXTENSIONS.get(name.rpartition(".")[2].casefold()),
        text[: found.start()] + text[found.end() :],
    )


def left_out(text: str) -> tuple[Modality | None, str] | None:
    """The kind of what was left out, and the words beside it: on iOS before a mark, on Android below."""
    first, _, below = text.partition("\n")
    if _plain(first) in _LEFT_OUT:
        return _LEFT_OUT[_plain(first)], below
    words, mark, last = text.rpartition(MARK)
    return (_LEFT_OUT[_plain(last)], words) if mark and _plain(last) in _LEFT_OUT else None


def _plain(text: str) -> str:
    """As the words are compared; they are short."""
    return re.sub(r"\s", " ", _DIRECTIONS.sub("", text[:_LONGEST])).strip().rstrip(".。").casefold()
