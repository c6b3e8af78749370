import io
from pathlib import Path

import pytest
from rich.console import Console

from models.evaluation import plots, tables
from models.evaluation.bootstrap import Interval, Resampling
from models.evaluation.groups import groups, length
from models.evaluation.judge import ContainmentJudge
from models.evaluation.report import Report, Run, cases, decode, encode, report
from tests.models.evaluation.build import UNK, dialogue, prediction, talk

GOLD = {"d1": talk("aS bO aO bO"), "d2": talk("aS aS aS aS aS aS aS")}
DIALOGUES = [
    dialogue(*GOLD["d1"], ident="d1"),
    dialogue(*GOLD["d2"], ident="d2", language="zh", register=None),
]
PERFECT = Run("perfect", [prediction(*lines, ident=ident) for ident, lines in GOLD.items()], "p@1", 1.5)
SILENT = Run(
    "silent/one",
    [prediction(*[(who, UNK) for who, _ in lines], ident=ident) for ident, lines in GOLD.items()],
    "p@1",
)


def made(**given: object) -> Report:
    resampling = Resampling(50, **given)
    return report(DIALOGUES, [PERFECT, SILENT], ContainmentJudge(), resampling, data="toy", split="test")


def test_a_report_by_hand() -> None:
    perfect, silent = made().systems
    everything = perfect.parts["all"]
    assert (everything.dialogues, everything.turns, everything.flips) == (2, 11, 1)
    assert everything.live["stance_accuracy"] == everything.live["flip_trigger_f1"] == Interval(1.0, 1.0, 1.0)
    assert silent.parts["all"].live["stance_accuracy"] == Interval(0.0, 0.0, 0.0)
    assert silent.parts["all"].live["detection_delay_turns"] == Interval(None, None, None)
    assert perfect.confusion == ((0, 0, 0, 0), (0, 8, 0, 0), (0, 0, 0, 0), (0, 0, 0, 3))
    assert [sum(row) for row in silent.confusion] == [row[0] for row in silent.confusion] == [0, 8, 0, 3]
    assert everything.stanceflip["sextuple_micro"] == Interval(1.0, 1.0, 1.0)
    assert sum(one.turns for one in perfect.reliability) == 11


def test_parts() -> None:
    parts = made().systems[0].parts
    assert set(parts) == {
        "all", "language=en", "language=zh", "register=work", "typing=tidy", "turns=1-6", "turns=7-9",
    }  # fmt: skip
    assert (parts["language=zh"].turns, parts["language=zh"].flips) == (7, 0)
    assert parts["language=zh"].live["flip_any_f1"].value is None


def test_systems_are_compared_with_the_first() -> None:
    perfect, silent = made().systems
    assert perfect.differences == {}
    assert silent.differences["stance_accuracy"] == Interval(-1.0, -1.0, -1.0)
    assert silent.differences["detection_delay_turns"] == Interval(None, None, None)
    assert set(silent.differences) == set(silent.parts["all"].live)


def test_the_seed_decides_the_intervals() -> None:
    assert made(seed=3) == made(seed=3)


def test_json_and_back() -> None:
    assert decode(encode(made())) == made()


@pytest.mark.parametrize("wrong", [PERFECT.predictions[:1], [*PERFECT.predictions, PERFECT.predictions[0]]])
def test_predictions_of_other_dialogues_are_refused(wrong: list[object]) -> None:
    with pytest.raises(ValueError, match="one a dialogue"):
        cases(DIALOGUES, wrong)


def test_no_dialogues() -> None:
    with pytest.raises(ValueError, match="no dialogues"):
        report([], [], ContainmentJudge(), Resampling(), data="toy", split="test")


@pytest.mark.parametrize(("turns", "name"), [(1, "1-6"), (6, "1-6"), (7, "7-9"), (20, "14-20"), (21, "21+")])
def test_lengths(turns: int, name: str) -> None:
    assert length(turns) == name


def test_a_messy_register() -> None:
    given = dialogue(*GOLD["d1"], register="家族群，很乱")
    assert {"register=family", "typing=messy"} <= set(groups(given))


def test_tables_show_every_system_and_part() -> None:
    file = io.StringIO()
    console = Console(file=file, width=260)
    for table in tables.tables(made()):
        console.print(table)
    shown = file.getvalue()
    for word in ("perfect", "silent/one", "turns=7-9", "sextuple_micro", "1.00 (1.00-1.00)", "containment"):
        assert word in shown
    for word in ("difference to perfect", "-1.00 (-1.00 to -1.00)"):
        assert word in shown
    assert "nan" not in shown


def test_one_system_is_compared_with_none() -> None:
    alone = report(DIALOGUES, [PERFECT], ContainmentJudge(), Resampling(5), data="toy", split="test")
    assert not any("difference" in str(table.title) for table in tables.tables(alone))


def test_a_difference_has_a_sign() -> None:
    assert tables.signed(Interval(0.034, -0.01, 0.07)) == "+0.03 (-0.01 to +0.07)"
    assert tables.signed(Interval(None, None, None)) == "-"


def test_an_undefined_figure_is_a_dash() -> None:
    assert tables.figure(Interval(None, None, None)) == "-"
    assert tables.figure(Interval(12.34, 10.0, 15.0), 0) == "12 (10-15)"


def test_pictures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    told = plots.telling(cases(DIALOGUES, PERFECT.predictions))
    assert [case.dialogue.id for case in told] == ["d1", "d2"]
    written = plots.draw(made().systems, told, tmp_path / "new")
    assert {path.name for path in written} == {
        "confusion-perfect.png", "confusion-silent-one.png", "reliability.png", "trajectories.png",
    }  # fmt: skip
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)


def test_many_holders_with_chinese_names_are_drawn_without_them(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    lines = [(f"小{place}", stance) for place, (_, stance) in enumerate(talk("aS " * 30))]
    crowd = dialogue(*lines, ident="d1")
    found = cases([crowd], [prediction(*lines, ident="d1")])
    assert plots.draw([], found, tmp_path)[-1].exists()  # a missing glyph would warn, and warnings are errors
