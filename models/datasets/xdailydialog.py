"""XDailyDialog (English and Chinese): emotion and act of every turn, and the dialogue's topic.

The same dialogue stands in several of its parts: test keeps it before dev, dev before train.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from models.datasets.dialogue import Dialogue, LabelledTurn, fingerprint
from models.datasets.files import Malformed, MissingPart, check_part, naming, short_hash
from models.datasets.labels import emotion_of

SOURCE = "xdailydialog"
EMOTIONS = ("no emotion", "anger", "disgust", "fear", "happiness", "sadness", "surprise")
ACTS = ("inform", "question", "directive", "commissive")  # numbered from 1
TOPICS = (  # numbered from 1
    *("ordinary life", "school life", "culture and education", "attitude and emotion", "relationship"),
    *("tourism", "health", "work", "politics", "finance"),
)
_PARALLEL = "1k_part_data/dialogues_"


class _Entry(NamedTuple):
    number: int
    texts: dict[str, list[str]]  # by language
    topic: int
    acts: list[int]
    emotions: list[int]


def load(path: Path, split: str | None = None) -> Iterator[Dialogue]:
    """Each dialogue in English and in Chinese, one group; train is the published sample of 1,000.

    Raises MissingPart where a part asked for, or every part, is not there.
    """
    check_part(split)
    seen: set[str] = set()
    found = False
    for part in (
        "test",
        "dev",
        "train",
    ):  # all are read, for what is in a later one must not be in an earlier
        with naming(f"{path}: {part}"):
            entries = list(_entries(path, part))
        for entry in entries:
            found = found or split in (None, part)
            with naming(f"{path}: {part} {entry.number}"):
                pair = [_dialogue(part, language, entry) for language in entry.texts]
            known = fingerprint(pair[0]) in seen
            seen.add(fingerprint(pair[0]))
            if not known and split in (None, part):
                yield from pair
    if not found:
        raise MissingPart(f"{path}: no {split or 'en_dev_human.txt or other'} part of XDailyDialog here")


def _entries(root: Path, part: str) -> Iterator[_Entry]:
    if part == "train":
        yield from _parallel(root)
        return
    english, chinese = (root / f"{language}_{part}_human.txt" for language in ("en", "zh"))
    if not english.is_file():
        return
    for number, (line, translated) in enumerate(zip(_lines(english), _lines(chinese), strict=True)):
        cells = line.split("\t")
        if len(cells) != 4:
            raise Malformed(f"{english}:{number + 1}: not text, topic, acts and emotions between tabs")
        texts = {"en": _turns(cells[0]), "zh": _turns(translated.split("\t")[0])}
        with naming(f"{english}:{number + 1}"):
            yield _Entry(number, texts, int(cells[1]), _numbers(cells[2]), _numbers(cells[3]))


def _parallel(root: Path) -> Iterator[_Entry]:
    """The sample's five files, a line a dialogue in each."""
    names = ("text_En", "text_Zh", "topic", "action", "emotion")
    files = [root / f"{_PARALLEL}{name}.txt" for name in names]
    if not files[0].is_file():
        return
    lines = zip(*map(_lines, files), strict=True)
    for number, (english, chinese, topic, acts, emotions) in enumerate(lines):
        texts = {"en": _turns(english), "zh": _turns(chinese)}
        yield _Entry(number, texts, int(topic), _numbers(acts), _numbers(emotions))


def _lines(path: Path) -> list[str]:
    # Not splitlines: texts hold U+2028 and the like, and the files would no longer run side by side.
    return path.read_text(encoding="utf-8").rstrip("\n").split("\n")


def _turns(text: str) -> list[str]:
    """The turns; the mark stands between them in one file and after each in another."""
    return [turn.strip() for turn in text.strip().removesuffix("__eou__").split("__eou__")]


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split()]


def _check(entry: _Entry) -> None:
    known = 1 <= entry.topic <= len(TOPICS)
    known = known and all(1 <= act <= len(ACTS) for act in entry.acts)
    if not known or not all(0 <= emotion < len(EMOTIONS) for emotion in entry.emotions):
        raise ValueError("no such topic, act or emotion")


def _dialogue(part: str, language: str, entry: _Entry) -> Dialogue:
    _check(entry)
    texts = entry.texts[language]
    # A few lines have another number of labels than of turns: no one can say which label is whose.
    aligned = len(texts) == len(entry.emotions) == len(entry.acts)
    return Dialogue(
        id=f"{SOURCE}-{language}-{part}-{entry.number}",
        source=SOURCE,
        language=language,
        split=part,
        register="written dialogue of a language textbook",
        domain=TOPICS[entry.topic - 1],
        group=short_hash(*entry.texts["en"]),
        turns=tuple(
            LabelledTurn(
                index=index,
                speaker="AB"[index % 2],
                text=text,
                emotion=emotion_of(EMOTIONS[entry.emotions[index]]) if aligned else None,
                acts=(ACTS[entry.acts[index] - 1],) if aligned else (),
            )
            for index, text in enumerate(texts)
        ),
    )
