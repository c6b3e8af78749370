"""MELD-FR (emotion-flip reasoning over MELD, English): which turns made the last speaker's emotion flip.

Each flip is an episode from the scene's start to the flip, so a scene's episodes stand inside one another.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec

from models.datasets.dialogue import Dialogue, LabelledTurn
from models.datasets.files import naming, part_files, short_hash
from models.datasets.labels import EmotionFlip, emotion_of
from tracker.stances import Emotion

SOURCE = "meld-fr"
_PATTERNS = {part: f"**/MELD_{part}_efr.json" for part in ("train", "dev", "test")}
# What was cp1252 was read as Latin-1: the apostrophe became the control character U+0092.
_CP1252 = {
    code: bytes([code]).decode("cp1252")
    for code in range(0x80, 0xA0)
    if code not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)
}


class _Episode(msgspec.Struct):
    episode: str
    speakers: list[str]
    emotions: list[str]
    utterances: list[str]
    triggers: list[float | None]

    def within(self, later: "_Episode") -> bool:
        """Whether the later episode begins with this one."""
        count = len(self.utterances)
        return self.utterances == later.utterances[:count] and self.speakers == later.speakers[:count]


def load(path: Path, split: str | None = None) -> Iterator[Dialogue]:
    """One dialogue for each nest of episodes, its turns those of the longest, with the flips of all."""
    for part, file in part_files(path, _PATTERNS, split):
        for nest in _nests(_episodes(file)):
            with naming(f"{file}: {nest[-1].episode}"):
                dialogue = _dialogue(part, nest)
            yield dialogue


def _nests(episodes: list[_Episode]) -> Iterator[list[_Episode]]:
    nest: list[_Episode] = []
    for episode in episodes:
        if nest and not nest[-1].within(episode):
            yield nest
            nest = []
        nest.append(episode)
    if nest:
        yield nest


def _episodes(file: Path) -> list[_Episode]:
    """The file's episodes; it holds NaN, which is not JSON, for utterances that nobody marked."""
    with naming(file):
        content = json.loads(file.read_text(encoding="utf-8"), parse_constant=lambda _: None)
        episodes = msgspec.convert(content, list[_Episode])
        for episode in episodes:
            count = len(episode.utterances)
            others = (episode.speakers, episode.emotions, episode.triggers)
            if not count or any(len(other) != count for other in others):
                raise ValueError(f"{episode.episode}: lists of different lengths, or empty")
    return episodes


def _dialogue(part: str, nest: list[_Episode]) -> Dialogue:
    longest = nest[-1]
    # One scene's episodes are now and then two nests: they begin alike.
    group = short_hash(*longest.speakers[:3], *longest.utterances[:3])
    flips = {flip.turn: flip for episode in nest if (flip := _flip(episode))}
    return Dialogue(
        id=f"{SOURCE}-{part}-{longest.episode}",
        source=SOURCE,
        language="en",
        split=part,
        register="television scene",
        group=group,
        turns=tuple(
            LabelledTurn(
                index=index,
                speaker=speaker,
                text=text.translate(_CP1252).replace("\xa0", " ").strip(),
                emotion=emotion_of(emotion),
            )
            for index, (speaker, text, emotion) in enumerate(
                zip(longest.speakers, longest.utterances, longest.emotions, strict=True)
            )
        ),
        emotion_flips=tuple(flips[turn] for turn in sorted(flips)),
    )


def _flip(episode: _Episode) -> EmotionFlip | None:
    last = len(episode.speakers) - 1
    before = _emotion_before(episode)
    after = emotion_of(episode.emotions[last])
    if before is None or before is after:
        return None
    return EmotionFlip(
        turn=last,
        before=before,
        after=after,
        trigger_turns=tuple(index for index, mark in enumerate(episode.triggers) if mark == 1),
        unmarked=tuple(index for index, mark in enumerate(episode.triggers) if mark is None),
    )


def _emotion_before(episode: _Episode) -> Emotion | None:
    """What the last speaker felt when speaking before."""
    earlier = list(zip(episode.speakers, episode.emotions, strict=True))[-2::-1]
    return next((emotion_of(emotion) for name, emotion in earlier if name == episode.speakers[-1]), None)
