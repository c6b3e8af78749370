"""Every source by name: its loader, its licence, and whether what is shipped may learn from it."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from models.datasets import (
    benchmark,
    climatememes,
    diaasq,
    meld,
    meld_fr,
    mt_csd,
    multiclimate,
    panosent,
    persuasionforgood,
    ravdess,
    reccon,
    xdailydialog,
    zs_csd,
)
from models.datasets.dialogue import Dialogue

Loader = Callable[[Path, str | None], Iterator[Dialogue]]


class NotLicensed(PermissionError):
    """A source whose licence does not allow what is shipped to learn from it."""


class UnknownSource(LookupError):
    """A name that is not in SOURCES."""


class Source(msgspec.Struct, frozen=True):
    """A source: `labels` are the fields of the one form that it fills."""

    name: str
    load: Loader
    licence: str
    may_train: bool
    languages: tuple[str, ...]
    labels: tuple[str, ...]


_STANCE = ("emotion", "sentiment", "expressed", "stance", "flip", "trigger", "trigger_turns", "rationale")
_LAST = ("expressed", "label")
_NONE_STATED = "none stated"
_EN, _ZH = ("en",), ("zh",)

# A licence of a set over another set's texts is worth no more than that one's: XDailyDialog's Apache-2.0
# covers the translation, ClimateMemes' MIT the labels (its pictures are other people's, read from a path).
_ALL = (
    Source(benchmark.SOURCE, benchmark.load, "CC BY 4.0, our own", True, ("en", "zh", "es"), _STANCE),
    Source(mt_csd.SOURCE, mt_csd.load, _NONE_STATED, False, _EN, _LAST),
    Source(mt_csd.CHINESE_SOURCE, mt_csd.load_chinese, _NONE_STATED, False, _ZH, _LAST),
    Source(zs_csd.SOURCE, zs_csd.load, _NONE_STATED, False, _ZH, _LAST),
    Source(panosent.SOURCE, panosent.load, _NONE_STATED, False, _EN, ("opinions", "sentiment_flips")),
    Source(persuasionforgood.SOURCE, persuasionforgood.load, "Apache-2.0", True, _EN, ("acts", "expressed")),
    Source(meld.SOURCE, meld.load, "GPL-3.0", False, _EN, ("emotion", "sentiment")),
    Source(
        meld_fr.SOURCE,
        meld_fr.load,
        "none stated, over MELD (GPL-3.0)",
        False,
        _EN,
        ("emotion", "emotion_flips"),
    ),
    Source(reccon.SOURCE, reccon.load, _NONE_STATED, False, _EN, ("emotion", "causes", "cause_kinds")),
    Source(diaasq.SOURCE, diaasq.load, "MIT", True, ("zh", "en"), ("opinions",)),
    Source(
        xdailydialog.SOURCE,
        xdailydialog.load,
        "Apache-2.0, over DailyDialog (CC BY-NC-SA 4.0)",
        False,
        ("en", "zh"),
        ("emotion", "acts"),
    ),
    Source(climatememes.SOURCE, climatememes.load, "MIT", True, _EN, (*_LAST, "rationale")),
    Source(multiclimate.SOURCE, multiclimate.load, "CC0-1.0", True, _EN, _LAST),
    Source(ravdess.SOURCE, ravdess.load, "CC BY-NC-SA 4.0", False, _EN, ("emotion", "label")),
)
SOURCES = {source.name: source for source in _ALL}


def source(name: str) -> Source:
    """The source of that name. Raises UnknownSource."""
    try:
        return SOURCES[name]
    except KeyError:
        raise UnknownSource(f"no source {name!r}: one of {', '.join(SOURCES)}") from None


def load(name: str, path: Path, split: str | None = None) -> Iterator[Dialogue]:
    """The dialogues of a source, read from the user's own copy of it. Raises UnknownSource."""
    return source(name).load(path, split)


def check_training(names: Iterable[str], *, research: bool = False) -> None:
    """Raises NotLicensed where one of the sources may not teach what is shipped; `research` lets all through.

    Raises UnknownSource too. Weights learned under `research` are the researcher's own affair, never shipped.
    """
    barred = [item for item in map(source, names) if not item.may_train]
    if barred and not research:
        listed = "; ".join(f"{item.name} ({item.licence})" for item in barred)
        raise NotLicensed(f"not for what is shipped: {listed}. For research of your own, say so.")
