"""MT-CSD (Reddit, English) and C-MTCSD (Weibo, Chinese): the stance of the last post of each reply path.

An index file names the paths, a CSV file the posts' texts. No author is named, and "same author, another
label" would be label noise, so every post is a speaker of its own.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from models.datasets.dialogue import Dialogue, LabelledTurn, proposition_about
from models.datasets.files import Malformed, MissingPart, decode, part_files, rows
from tracker.stances import Expressed

SOURCE = "mt-csd"
CHINESE_SOURCE = "c-mtcsd"
STANCES = {"favor": Expressed.SUPPORT, "against": Expressed.OPPOSE, "none": Expressed.NONE}
_PATTERNS = {"train": "**/train.json", "dev": "**/valid.json", "test": "**/test.json"}


class _Path(msgspec.Struct):
    index: list[str]
    stance: str


def load(path: Path, split: str | None = None) -> Iterator[Dialogue]:
    """MT-CSD: one dialogue for each labelled reply path, with the label on its last turn."""
    return _load(path, split, SOURCE, "en")


def load_chinese(path: Path, split: str | None = None) -> Iterator[Dialogue]:
    """C-MTCSD, of the same form."""
    return _load(path, split, CHINESE_SOURCE, "zh")


def _load(root: Path, split: str | None, source: str, language: str) -> Iterator[Dialogue]:
    for part, index in part_files(root, _PATTERNS, split):
        target = index.parent.name
        texts = _texts(root, target)
        for item in decode(index, list[_Path]):
            if turns := _turns(index, item, texts):
                yield Dialogue(
                    id=f"{source}-{target}-{item.index[-1]}",
                    source=source,
                    language=language,
                    split=part,
                    proposition=proposition_about(target, language),
                    domain=target,
                    group=f"{source}-{target}-{item.index[0]}",
                    named=False,
                    turns=turns,
                )


def _texts(root: Path, target: str) -> dict[str, str]:
    files = sorted(root.glob(f"**/{target}.csv"))
    if not files:
        raise MissingPart(f"{root}: no {target}.csv, which holds the texts")
    return {row["id"].strip(): row["text"].strip() for row in rows(files[0], "id", "text")}


def _turns(file: Path, item: _Path, texts: Mapping[str, str]) -> tuple[LabelledTurn, ...]:
    """The path's turns; none where the labelled post was removed and its label hangs in the air."""
    if item.stance not in STANCES:
        raise Malformed(f"{file}: {item.index[-1]}: no stance {item.stance!r}")
    if missing := [post for post in item.index if post not in texts]:
        raise Malformed(f"{file}: no text for {', '.join(missing)}")
    if not texts[item.index[-1]]:
        return ()
    posts = [post for post in item.index if texts[post]]
    last = len(posts) - 1
    return tuple(
        LabelledTurn(
            index=index,
            speaker=post,
            text=texts[post],
            reply_to=index - 1 if index else None,
            expressed=STANCES[item.stance] if index == last else None,
            label=item.stance if index == last else None,
        )
        for index, post in enumerate(posts)
    )
