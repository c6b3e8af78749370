"""ZS-CSD (Chinese, zero-shot targets): the stance of the last sentence of each chain, with real speakers.

Chains of one thread may label a speaker now so, now so: mostly noise, so no stance or flip is made of them.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from models.datasets.dialogue import Dialogue, LabelledTurn, proposition_about
from models.datasets.files import Malformed, decode, part_files, short_hash
from tracker.stances import Expressed

SOURCE = "zs-csd"
# "neutral" is a third of the labels and mostly a turn that says nothing of its speaker's own position,
# not a declared middle; the source's word stays in `label`.
LABELS = (("favor", Expressed.SUPPORT), ("against", Expressed.OPPOSE), ("neutral", Expressed.NONE))
_PATTERNS = {part: f"{part}_data.json" for part in ("train", "dev", "test")}


class _Chain(msgspec.Struct):
    id: int
    target: str
    sentences: list[str]
    speakers: list[int]
    label: int


def load(path: Path, split: str | None = None) -> Iterator[Dialogue]:
    """One dialogue for each chain; a chain that comes a second time is left out."""
    for part, file in part_files(path, _PATTERNS, split):
        seen: set[tuple[str, ...]] = set()
        for chain in decode(file, list[_Chain]):
            _check(file, chain)
            key = (chain.target, *chain.sentences)
            if key not in seen:
                seen.add(key)
                yield _dialogue(part, chain)


def _check(file: Path, chain: _Chain) -> None:
    if not chain.sentences or len(chain.sentences) != len(chain.speakers):
        raise Malformed(f"{file}: {chain.id}: not one speaker a sentence")
    if chain.label not in range(len(LABELS)):
        raise Malformed(f"{file}: {chain.id}: no label {chain.label}")


def _dialogue(part: str, chain: _Chain) -> Dialogue:
    word, expressed = LABELS[chain.label]
    last = len(chain.sentences) - 1
    return Dialogue(
        id=f"{SOURCE}-{part}-{chain.id}",
        source=SOURCE,
        language="zh",
        split=part,
        proposition=proposition_about(chain.target, "zh"),
        domain=chain.target,
        group=short_hash(chain.target, chain.sentences[0]),
        turns=tuple(
            LabelledTurn(
                index=index,
                speaker=f"u{speaker}",
                text=sentence,
                reply_to=index - 1 if index else None,
                expressed=expressed if index == last else None,
                label=word if index == last else None,
            )
            for index, (sentence, speaker) in enumerate(zip(chain.sentences, chain.speakers, strict=True))
        ),
    )
