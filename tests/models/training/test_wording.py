import random

import pytest

from models.datasets.open import open_dataset
from models.training.wording import WORDINGS, declared, stated, turned
from tracker.stances import Expressed

ENGLISH = "The debate concerning whether "


def chance() -> random.Random:
    return random.Random(0)


@pytest.mark.parametrize(
    ("language", "proposition", "contrary"),
    [
        ("en", f"{ENGLISH}the town should ban cars", f"{ENGLISH}the town should not ban cars"),
        ("en", f"{ENGLISH}cars should not be banned", f"{ENGLISH}cars should be banned"),
        ("en", f"{ENGLISH}the vote was fair", f"{ENGLISH}the vote was not fair"),
        ("es", "El debate sobre si el club debe cerrar", "El debate sobre si el club no debe cerrar"),
        ("es", "El debate sobre si no debería abrir", "El debate sobre si debería abrir"),
        ("es", "El debate sobre si a Ana le conviene ir", "El debate sobre si a Ana no le conviene ir"),
        ("zh", "关于学校是否应该禁手机的讨论", "关于学校不应该禁手机的讨论"),
        ("zh", "关于学校该不该禁手机的讨论", "关于学校不该禁手机的讨论"),
        ("zh", "关于这票是不是白买了的讨论", "关于这票不是白买了的讨论"),
        ("zh", "关于孩子不该用手机的讨论", "关于孩子该用手机的讨论"),
        ("zh", "關於會籍應否退款的討論", "關於會籍不應退款的討論"),
    ],
)
def test_a_rule_denies_what_it_knows(language: str, proposition: str, contrary: str) -> None:
    assert turned(proposition, language, chance()) == contrary


@pytest.mark.parametrize(
    ("language", "proposition"),
    [
        ("en", f"{ENGLISH}the artist traced the pose"),
        ("es", "El debate sobre si el arbitro acertó"),
        ("zh", "关于早操纯属走过场的讨论"),
    ],
)
def test_what_no_rule_denies_is_called_untrue(language: str, proposition: str) -> None:
    statement = stated(proposition, language)
    assert statement is not None
    made = {turned(proposition, language, random.Random(seed)) for seed in range(40)}
    assert len(made) == len(WORDINGS[language].contrary)
    assert all(one and statement in one and one != proposition for one in made)


@pytest.mark.parametrize(
    ("language", "proposition", "statement"),
    [
        ("en", f"{ENGLISH}the town should ban cars", "the town should ban cars"),
        ("es", "La discusión acerca de si conviene ir", "conviene ir"),
        ("zh", "关于学校是否应该禁手机的讨论", "学校应该禁手机"),
        ("zh", "关于这趟划不划算的讨论", "这趟划算"),
        ("zh", "關於演唱會企位係咪好過坐位嘅討論", "演唱會企位係好過坐位"),
    ],
)
def test_a_statement_has_no_frame(language: str, proposition: str, statement: str) -> None:
    assert stated(proposition, language) == statement


@pytest.mark.parametrize("language", WORDINGS)
@pytest.mark.parametrize("side", Expressed)
def test_every_side_is_declared_in_several_ways(language: str, side: Expressed) -> None:
    proposition = next(one.proposition for one in open_dataset(language, "dev") if one.proposition)
    made = {declared(proposition, language, side, random.Random(seed)) for seed in range(60)}
    assert None not in made
    assert len(made) == len(WORDINGS[language].said[side])


@pytest.mark.parametrize("language", WORDINGS)
def test_a_statement_stands_in_what_takes_a_side(language: str) -> None:
    for side in (Expressed.SUPPORT, Expressed.OPPOSE, Expressed.NEUTRAL):
        assert all("{}" in words for words in WORDINGS[language].said[side])


@pytest.mark.parametrize("language", [None, "fr", "und"])
def test_other_languages_are_left_as_they_are(language: str | None) -> None:
    proposition = f"{ENGLISH}the town should ban cars"
    assert stated(proposition, language) is None
    assert turned(proposition, language, chance()) is None
    assert declared(proposition, language, Expressed.SUPPORT, chance()) is None


@pytest.mark.parametrize(("language", "least"), [("en", 1.0), ("es", 1.0), ("zh", 1.0)])
def test_the_open_dataset_is_understood(language: str, least: float) -> None:
    """Otherwise nothing would be taught, and nobody would notice."""
    propositions = [one.proposition for one in open_dataset(language, "train") if one.proposition]
    made = [turned(one, language, chance()) for one in propositions]
    known = [one for one, other in zip(propositions, made, strict=True) if other not in (None, one)]
    assert len(known) >= least * len(propositions)
