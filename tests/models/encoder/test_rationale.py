import msgspec
import pytest

from models.encoder.rationale import quote, rationale
from models.language.rule import RuleEngine
from models.reader import ExplainRequest, ObserveRequest
from tracker.context import WindowTurn
from tracker.stances import Stance, TriggerKind

FACT = TriggerKind.FACTUAL_LOGICAL


def why(request: ObserveRequest, language: str | None, cause: WindowTurn | None = None) -> str:
    turn = msgspec.structs.replace(request.turn, language=language)
    request = msgspec.structs.replace(request, turn=turn)
    asked = ExplainRequest(request, RuleEngine().observe([request])[0], Stance.SUPPORT)
    return rationale(asked, FACT, (turn, "text"), (cause or turn, "text"))


def test_each_language_has_its_sentence(request_: ObserveRequest) -> None:
    tom = request_.window[2]
    assert why(request_, "en", tom) == (
        "Maya went from oppose to support with “ok. you convinced me”; "
        "moved by a fact or argument from Tom: “a lone dog gets ill”."
    )
    assert why(request_, "es-MX", tom).startswith("Maya pasó de en contra a a favor con «ok. you")
    assert why(request_, "zh", tom).startswith("Maya从反对转为支持：“ok. you convinced me”。")
    assert why(request_, None).endswith("in the same turn.")
    assert why(request_, "fi").startswith("Maya went")


def test_a_language_that_nobody_named_is_told_by_its_letters(request_: ObserveRequest) -> None:
    chinese = msgspec.structs.replace(request_, turn=WindowTurn("9", "Maya", "好的，我同意"))
    assert "反对" in why(chinese, None)


@pytest.mark.parametrize(
    ("text", "limit", "kept"),
    [
        ("One. Two! Three?", 9, "One. Two!"),
        ("One. Two! Three?", 99, "One. Two! Three?"),
        ("3.5 percent is all", 99, "3.5 percent is all"),
        ("word after word without end", 15, "word after…"),
        ("一句话。第二句话很长很长很长。", 6, "一句话。"),
        ("没有标点的很长的一句话", 6, "没有标点的…"),
        ("", 5, ""),
        ("  two\n lines ", 20, "two lines"),
    ],
)
def test_quotes_are_cut_at_a_sentence_else_at_a_word(text: str, limit: int, kept: str) -> None:
    assert quote(text, limit) == kept


def test_what_a_text_holds_is_not_filled_in(request_: ObserveRequest) -> None:
    odd = msgspec.structs.replace(request_, turn=WindowTurn("9", "{after}", "{kind} {0}"))
    assert "“{kind} {0}”" in why(odd, "en")
