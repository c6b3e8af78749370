from models.language.rule import RuleEngine
from models.training.judging import CHOOSING, FALSE_FLIPS, NAMES, judge
from tests.models.training.talks import corpus, talk
from tracker.stances import Stance


def test_every_figure_is_a_number_where_nothing_is_to_be_found() -> None:
    found = judge([talk("dog0", Stance.SUPPORT)], RuleEngine())
    assert set(found.values) == set(NAMES)
    assert all(value == value for value in found.values.values())
    assert (found[CHOOSING], found[FALSE_FLIPS]) == (0.0, 0.0)


def test_an_engine_that_sees_nothing_finds_no_flip() -> None:
    found = judge(corpus(4), RuleEngine())
    assert found[CHOOSING] == found["flip_exact_recall"] == 0.0
    assert 0.0 < found["stance_accuracy"] < 1.0
