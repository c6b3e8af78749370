import pytest

from models.datasets.open import open_dataset
from models.language.detection import CHARACTERS, Detector
from tracker.context import Window, WindowTurn


@pytest.fixture(scope="module")
def detect() -> Detector:
    return Detector()


def said(text: str, language: str | None = None) -> WindowTurn:
    return WindowTurn("m-1", "maya", text, language=language)


def talk(*texts: str) -> Window:
    return tuple(WindowTurn(str(at), "jun", text) for at, text in enumerate(texts))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("who would own the fruit, actually?", "en"),
        ("早该这样了！！上礼拜我孙子差点被撞，那电动车跟飞一样", "zh"),
        ("老土到爆，次次都係咁掃興", "zh"),  # Cantonese
        ("pues a mí me parece una tontería como una catedral", "es"),
        ("Das glaube ich nicht, dafür ist es viel zu spät", "de"),
    ],
)
def test_a_turns_words_tell_its_language(detect: Detector, text: str, language: str) -> None:
    assert detect(said(text)) == language


@pytest.mark.parametrize("text", ["lol", "+1", "😂😂", "ok", "haha", "no", "https://x.y/abc", "", "12:30"])
def test_too_little_to_tell_is_asked_together_with_the_window(detect: Detector, text: str) -> None:
    assert detect(said(text)) == "und"
    assert detect(said(text), talk("+1", "hm", "12:30")) == "und"
    around = talk("the water board says the main runs under that strip", "then we would be digging again")
    assert detect(said(text), around) == "en"


def test_a_turn_that_tells_needs_no_window(detect: Detector) -> None:
    around = talk("the water board says the main runs under that strip", "then we would be digging again")
    assert detect(said("我一直都觉得应该取消，大家说呢", None), around) == "zh"


def test_the_platforms_word_stands(detect: Detector) -> None:
    assert detect(said("who would own the fruit, actually?", "fr-CA")) == "fr-CA"
    assert detect(said("who would own the fruit, actually?", "und")) == "en"


def test_only_a_texts_beginning_is_asked_for() -> None:
    asked: list[str] = []

    def classify(text: str) -> tuple[str, float]:
        asked.append(text)
        return "en", 0.4

    assert Detector(classify)(said("x" * 16_384), talk("y" * 16_384)) == "und"
    assert max(map(len, asked)) == CHARACTERS


def test_the_open_datasets_turns_are_told_apart(detect: Detector) -> None:
    wrong = undetermined = count = 0
    for dialogue in list(open_dataset(split="dev"))[::10]:
        window: Window = ()
        for turn in dialogue.turns:
            shown = WindowTurn(str(turn.index), turn.speaker, turn.text)
            found, count = detect(shown, window), count + 1
            undetermined += found == "und"
            wrong += found not in ("und", dialogue.language)
            window = (*window, shown)[-12:]
    assert count > 100
    assert wrong <= count / 100
    assert undetermined <= count / 25
