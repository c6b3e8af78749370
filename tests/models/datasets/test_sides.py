from collections import Counter
from importlib import resources

import pytest

from models.datasets import sides as sides_package
from models.datasets.checking import problems
from models.datasets.dialogue import Dialogue
from models.datasets.open import open_dataset
from models.datasets.sides import LANGUAGES, sides_dataset

CARD = resources.files(sides_package).joinpath("DATACARD.md").read_text(encoding="utf-8")
NOT_GIVEN = ("no domain", "a flip without a rationale")


@pytest.fixture(scope="module")
def dialogues() -> list[Dialogue]:
    return list(sides_dataset())


def test_every_dialogue_obeys_the_guide_but_for_what_the_card_says(dialogues: list[Dialogue]) -> None:
    found = {one.id: [said for said in problems(one) if not said.endswith(NOT_GIVEN)] for one in dialogues}
    assert {ident: said for ident, said in found.items() if said} == {}
    assert len({one.id for one in dialogues}) == len(dialogues)


def test_all_of_it_teaches(dialogues: list[Dialogue]) -> None:
    assert {one.split for one in dialogues} == {"train"}
    assert list(sides_dataset("train")) == dialogues
    assert list(sides_dataset("dev")) == list(sides_dataset("test")) == []


def test_nothing_of_it_stands_in_what_judges(dialogues: list[Dialogue]) -> None:
    others = list(open_dataset())
    propositions = {one.proposition for one in others}
    judging = [turn for one in others if one.split != "train" for turn in one.turns]
    texts = {turn.text for turn in judging if len(turn.text) > 25}
    assert [one.id for one in dialogues if one.proposition in propositions] == []
    assert [one.id for one in dialogues if any(turn.text in texts for turn in one.turns)] == []


@pytest.mark.parametrize("language", [*LANGUAGES, None])
def test_the_card_counts_what_is_there(dialogues: list[Dialogue], language: str | None) -> None:
    mine = [one for one in dialogues if language in (None, one.language)]
    turns = [turn for one in mine for turn in one.turns]
    said = Counter(turn.expressed for turn in turns)
    moved = Counter(turn.trigger for turn in turns if turn.flip)
    cells = [len(mine), len(turns), sum(moved.values())]
    cells += [said[name] for name in ("support", "oppose", "neutral", "none")]
    cells += [
        moved[name]
        for name in ("factual_logical", "emotional_value", "personal_experience", "social_influence")
    ]
    assert f"| {language or 'all'} | {' | '.join(f'{count:,}' for count in cells)} |" in CARD
