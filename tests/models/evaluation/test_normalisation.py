import pytest

from models.evaluation import keywords
from models.evaluation.normalisation import holder, normalised
from tracker.stances import Stance, TriggerKind


def test_case_and_outer_whitespace_go() -> None:
    assert normalised("  Nuclear  Power\n") == "nuclear  power"


@pytest.mark.parametrize(
    "alias", ["Speaker 1", "s1", "user 1", "Speaker_01", "SPEAKER1", " User-1 ", "说话人1"]
)
def test_numbered_speakers_are_one(alias: str) -> None:
    assert holder(alias) == "speaker 1"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Maya", "maya"),
        ("s1x", "s1x"),
        ("Speaker 10", "speaker 10"),
        ("us1", "us1"),
        ("小明", "小明"),
        ("1", "1"),
    ],
)
def test_other_names_are_themselves(name: str, expected: str) -> None:
    assert holder(name) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Support", Stance.SUPPORT),
        ("strongly agrees", Stance.SUPPORT),
        ("pro", Stance.SUPPORT),
        ("Positive", Stance.SUPPORT),
        ("OPPOSE", Stance.OPPOSE),
        ("disagree", Stance.OPPOSE),  # holds "agree" too
        ("con", Stance.OPPOSE),
        ("negative", Stance.OPPOSE),
        ("she refuses", Stance.OPPOSE),
        ("supports the conclusion", Stance.SUPPORT),  # holds "con" too
        ("neutral (neither support nor oppose)", Stance.NEUTRAL),  # the first of equally long ones
        ("Unknown", Stance.UNKNOWN),
        ("", None),
        ("who knows", None),
    ],
)
def test_stances_by_keyword(text: str, expected: Stance | None) -> None:
    assert keywords.stance(text) is expected


@pytest.mark.parametrize("kind", TriggerKind)
def test_our_own_labels_map_to_themselves(kind: TriggerKind) -> None:
    assert keywords.trigger(kind.value) is kind


@pytest.mark.parametrize("stance", Stance)
def test_our_own_stances_map_to_themselves(stance: Stance) -> None:
    assert keywords.stance(stance.value) is stance


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Factual & Logical Appeals", TriggerKind.FACTUAL_LOGICAL),
        ("statistics", TriggerKind.FACTUAL_LOGICAL),
        ("Emotional & Value-based Appeals", TriggerKind.EMOTIONAL_VALUE),
        ("Personal Experience & Anecdote", TriggerKind.PERSONAL_EXPERIENCE),
        ("a story about life", TriggerKind.PERSONAL_EXPERIENCE),
        ("peer pressure", TriggerKind.SOCIAL_INFLUENCE),
        ("Introduction of New Info", None),  # a category of the paper's Table 7, not of its taxonomy
    ],
)
def test_triggers_by_keyword(text: str, expected: TriggerKind | None) -> None:
    assert keywords.trigger(text) is expected
