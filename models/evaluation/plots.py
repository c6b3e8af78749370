"""The report as pictures: confusion, reliability, stance trajectories. Needs matplotlib (extra `train`).

matplotlib is imported late: whoever wants figures without pictures need not have it. No text of a dialogue
and no holder's name is drawn: default fonts lack Chinese, and pictures travel further than data.
"""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from models.evaluation.prediction import Case, Step
from models.evaluation.report import System
from tracker.stances import Stance

DPI = 120
LEVELS = {Stance.OPPOSE: -1.0, Stance.NEUTRAL: 0.0, Stance.SUPPORT: 1.0}  # unknown is a gap in the line
HOLDERS = 8  # a picture; there are ten colours
INK = 0.5  # share of the darkest cell above which numbers are white


def draw(systems: Sequence[System], cases: Sequence[Case], folder: Path) -> list[Path]:
    """Confusion and reliability of every system, trajectories of the first one's cases; the files written.

    Raises ImportError without matplotlib.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = [_confusion(made, folder / f"confusion-{slug(made.name)}.png") for made in systems]
    written.append(_reliability(systems, folder / "reliability.png"))
    if cases:
        written.append(_trajectories(cases, folder / "trajectories.png"))
    return written


def slug(name: str) -> str:
    """A system's name as part of a file's."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", name)


def telling(cases: Sequence[Case], most: int = 6) -> list[Case]:
    """The dialogues with the most flips, gold and predicted; what trajectories are drawn of."""
    return sorted(cases, key=lambda case: (-_moves(case), case.dialogue.id))[:most]


def _moves(case: Case) -> int:
    return sum(bool(step.flipped) + step.said.flip for step in case.steps())


def _figure(width: float, height: float) -> Any:
    # The object interface: pyplot would keep every figure of the process, and look for a display.
    from matplotlib.figure import Figure  # noqa: PLC0415

    return Figure(figsize=(width, height), layout="constrained")


def _saved(figure: Any, path: Path) -> Path:
    figure.savefig(path, dpi=DPI, format="png")
    return path


def _confusion(made: System, path: Path) -> Path:
    figure = _figure(4.6, 4.2)
    axes = figure.add_subplot()
    names = [stance.value for stance in made.stances]
    axes.imshow(made.confusion, cmap="Blues")
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel="predicted", ylabel="gold", title=f"{made.name}: stance after each turn")
    most = max(max(row) for row in made.confusion) or 1
    for down, row in enumerate(made.confusion):
        for across, count in enumerate(row):
            ink = "white" if count > INK * most else "black"
            axes.text(across, down, str(count), ha="center", va="center", color=ink)
    return _saved(figure, path)


def _reliability(systems: Sequence[System], path: Path) -> Path:
    figure = _figure(5.2, 4.6)
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], color="grey", linestyle=":", label="calibrated")
    for made in systems:
        bins = [found for found in made.reliability if found.turns]
        axes.plot(
            [found.confidence for found in bins],
            [found.accuracy for found in bins],
            marker="o",
            label=made.name,
        )
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="probability of the first label", ylabel="share that was right")
    axes.set_title("What a turn expresses: reliability")
    axes.legend()
    return _saved(figure, path)


def _trajectories(cases: Sequence[Case], path: Path) -> Path:
    figure = _figure(8.0, 2.2 * len(cases))
    for place, case in enumerate(cases):
        axes = figure.add_subplot(len(cases), 1, place + 1)
        _trajectory(axes, case)
    return _saved(figure, path)


def _trajectory(axes: Any, case: Case) -> None:
    """Solid is gold, dashed is predicted; a holder a colour, named A, B, ... from who speaks most."""
    steps = list(case.steps())
    spoken = Counter(step.gold.speaker for step in steps)
    holders = [holder for holder, _ in spoken.most_common(HOLDERS)]
    for place, holder in enumerate(holders):
        colour, shift = f"C{place}", 0.04 * place  # lines on each other would hide all but one
        own = [step for step in steps if step.gold.speaker == holder]
        turns = [step.gold.index for step in own]
        name = chr(ord("A") + place)
        kept = {"color": colour, "drawstyle": "steps-post"}  # a stance stays until a turn moves it
        axes.plot(turns, _heights(own, shift, gold=True), marker="o", label=name, **kept)
        axes.plot(turns, _heights(own, shift, gold=False), marker="x", linestyle="--", **kept)
    axes.set_yticks(list(LEVELS.values()), [stance.value for stance in LEVELS])
    axes.set_ylim(-1.3, 1.5)
    axes.set_title(f"{case.dialogue.id}: gold solid, predicted dashed", fontsize=9)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7)


def _heights(steps: Sequence[Step], shift: float, *, gold: bool) -> list[float]:
    stances = [step.gold.stance if gold else step.said.stance for step in steps]
    return [LEVELS[stance] + shift if stance in LEVELS else float("nan") for stance in stances]
