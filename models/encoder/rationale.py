"""The rationale of a flip: a sentence around what was said. It cannot invent, since it only quotes."""

import re
from dataclasses import dataclass

from models.language.budget import name
from models.reader import ExplainRequest
from tracker.context import WindowTurn
from tracker.stances import Stance, TriggerKind

QUOTE_CHARACTERS = 160
SENTENCE = re.compile(r".+?(?:[.!?…]+(?=\s|$)|[。！？]+|$)", re.DOTALL)
HAN = re.compile(r"[\u4e00-\u9fff]")
DEFAULT = "en"


@dataclass(frozen=True)
class _Words:
    """One language: the sentence for another's trigger, for the holder's own, and the words in them."""

    other: str
    own: str
    stances: dict[Stance, str]
    kinds: dict[TriggerKind, str]
    quotes: tuple[str, str] = ("“", "”")


_WORDS = {
    "en": _Words(
        other="{holder} went from {before} to {after} with {turn}; moved by {kind} from {mover}: {cause}.",
        own="{holder} went from {before} to {after} with {turn}; moved by {kind} in the same turn.",
        stances={Stance.SUPPORT: "support", Stance.NEUTRAL: "neutral", Stance.OPPOSE: "oppose"},
        kinds={
            TriggerKind.FACTUAL_LOGICAL: "a fact or argument",
            TriggerKind.EMOTIONAL_VALUE: "a feeling or value",
            TriggerKind.PERSONAL_EXPERIENCE: "a lived experience",
            TriggerKind.SOCIAL_INFLUENCE: "social pressure",
        },
    ),
    "es": _Words(
        other="{holder} pasó de {before} a {after} con {turn}; lo movió {kind} de {mover}: {cause}.",
        own="{holder} pasó de {before} a {after} con {turn}; lo movió {kind}, en el mismo turno.",
        stances={Stance.SUPPORT: "a favor", Stance.NEUTRAL: "neutral", Stance.OPPOSE: "en contra"},
        kinds={
            TriggerKind.FACTUAL_LOGICAL: "un dato o argumento",
            TriggerKind.EMOTIONAL_VALUE: "un sentimiento o valor",
            TriggerKind.PERSONAL_EXPERIENCE: "una experiencia vivida",
            TriggerKind.SOCIAL_INFLUENCE: "la presión del grupo",
        },
        quotes=("«", "»"),
    ),
    "zh": _Words(
        other="{holder}从{before}转为{after}：{turn}。促使其改变的是{mover}的{kind}：{cause}。",
        own="{holder}从{before}转为{after}：{turn}。促使其改变的是本轮中的{kind}。",
        stances={Stance.SUPPORT: "支持", Stance.NEUTRAL: "中立", Stance.OPPOSE: "反对"},
        kinds={
            TriggerKind.FACTUAL_LOGICAL: "事实或论证",
            TriggerKind.EMOTIONAL_VALUE: "情感或价值观",
            TriggerKind.PERSONAL_EXPERIENCE: "亲身经历",
            TriggerKind.SOCIAL_INFLUENCE: "群体影响",
        },
    ),
}


def rationale(
    request: ExplainRequest, kind: TriggerKind, shown: tuple[WindowTurn, str], cause: tuple[WindowTurn, str]
) -> str:
    """Why, in the turn's language: `shown` and `cause` are turns with the modality that speaks in them."""
    turn = request.observed.turn
    words = _WORDS.get(_language(turn), _WORDS[DEFAULT])
    mover = cause[0]
    template = words.own if mover.turn == turn.turn else words.other
    return template.format(
        holder=name(turn.holder),
        before=words.stances.get(request.observed.state, request.observed.state.value),
        after=words.stances.get(request.after, request.after.value),
        turn=_quoted(shown, words),
        kind=words.kinds[kind],
        mover=name(mover.holder),
        cause=_quoted(cause, words),
    )


def quote(text: str, limit: int = QUOTE_CHARACTERS) -> str:
    """As many whole sentences as fit in `limit` characters; of a first one too long, its whole words."""
    kept = ""
    for found in SENTENCE.finditer(" ".join(text.split())):
        if len(kept) + len(found[0]) > limit:
            break
        kept += found[0]
    return kept.strip() or _cut(" ".join(text.split()), limit)


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    return (head.rsplit(" ", 1)[0] if " " in head else head).rstrip() + "…"


def _quoted(said: tuple[WindowTurn, str], words: _Words) -> str:
    """What the turn says in that modality: its text, or the description of its media item."""
    turn, modality = said
    described = next(
        (item.description for item in turn.media if item.modality == modality and item.description), None
    )
    begin, end = words.quotes
    if described is not None:
        return f"[{modality}] {begin}{quote(described)}{end}"
    return f"{begin}{quote(turn.text)}{end}" if turn.text else f"[{modality}]"


def _language(turn: WindowTurn) -> str:
    """The turn's language where it is given, as its first subtag; else Chinese by its letters."""
    if turn.language:
        return turn.language.lower().split("-")[0]
    return "zh" if HAN.search(turn.text) else DEFAULT
