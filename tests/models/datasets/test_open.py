import re
import subprocess
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from models.datasets import open as open_package
from models.datasets.checking import problems
from models.datasets.dialogue import Dialogue
from models.datasets.files import PARTS
from models.datasets.open import LANGUAGES, open_dataset
from models.datasets.registers import FAMILIES, family, messy

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "models" / "datasets" / "open"
CARD = (FOLDER / "DATACARD.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def dialogues() -> list[Dialogue]:
    return list(open_dataset())


def test_every_dialogue_obeys_the_guide(dialogues: list[Dialogue]) -> None:
    assert {dialogue.id: found for dialogue in dialogues if (found := list(problems(dialogue)))} == {}
    assert len({dialogue.id for dialogue in dialogues}) == len(dialogues) == 3436


def test_a_language_and_a_part_can_be_asked_for(dialogues: list[Dialogue]) -> None:
    for language in LANGUAGES:
        for part in PARTS:
            asked = [dialogue.id for dialogue in open_dataset(language, part)]
            wanted = [d.id for d in dialogues if (d.language, d.split) == (language, part)]
            assert asked == wanted != []


@pytest.mark.parametrize("asked", [("fr", None), ("en", "validation")])
def test_what_is_not_there_is_an_error(asked: tuple[str, str | None]) -> None:
    with pytest.raises(ValueError, match="one of"):
        list(open_dataset(*asked))


def test_no_turn_of_a_part_that_judges_or_chooses_is_taught(dialogues: list[Dialogue]) -> None:
    taught = {turn.text for d in dialogues if d.split == "train" for turn in d.turns if len(turn.text) > 25}
    assert [
        d.id for d in dialogues if d.split != "train" and any(turn.text in taught for turn in d.turns)
    ] == []


def _counts(dialogues: list[Dialogue]) -> str:
    turns = [turn for dialogue in dialogues for turn in dialogue.turns]
    return f"{len(dialogues):,} / {len(turns):,} / {sum(bool(turn.flip) for turn in turns):,}"


@pytest.mark.parametrize("language", [*LANGUAGES, None])
def test_the_card_counts_what_is_there(dialogues: list[Dialogue], language: str | None) -> None:
    mine = [dialogue for dialogue in dialogues if language in (None, dialogue.language)]
    cells = [_counts([d for d in mine if part in (None, d.split)]) for part in (*PARTS, None)]
    assert f"| {language or 'all'} | {' | '.join(cells)} |" in CARD


def test_the_card_counts_registers_and_labels(dialogues: list[Dialogue]) -> None:
    families = Counter((family(d.register), d.language) for d in dialogues)
    for name in FAMILIES:
        assert f"| {name} | {' | '.join(str(families[name, language]) for language in LANGUAGES)} |" in CARD
    careless = Counter(d.language for d in dialogues if messy(d.register))
    assert f"| messy (of any) | {' | '.join(str(careless[language]) for language in LANGUAGES)} |" in CARD
    labels: dict[str, Counter[tuple[Any, str]]] = {
        "expressed": Counter((t.expressed, d.language) for d in dialogues for t in d.turns),
        "trigger of flips": Counter((t.trigger, d.language) for d in dialogues for t in d.turns if t.flip),
        "emotion": Counter((t.emotion, d.language) for d in dialogues for t in d.turns),
    }
    for name, counts in labels.items():
        for value in {value for value, _ in counts}:
            cells = " | ".join(f"{counts[value, language]:,}" for language in LANGUAGES)
            assert f"| {name}: {value} | {cells} |" in CARD


def test_it_comes_with_its_guide_card_and_licence() -> None:
    names = {item.name for item in resources.files(open_package).iterdir()}
    assert names >= {"LICENSE", "GUIDELINES.md", "DATACARD.md", *(f"{name}.jsonl.gz" for name in LANGUAGES)}
    assert "Attribution 4.0 International" in (FOLDER / "LICENSE").read_text(encoding="utf-8")
    assert re.search("written by a large language model", CARD)


def test_git_and_so_the_wheel_leave_none_of_it_out() -> None:
    done = subprocess.run(
        ["git", "check-ignore", *map(str, FOLDER.iterdir())],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert [line for line in done.stdout.splitlines() if "__pycache__" not in line] == []
