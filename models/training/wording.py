"""Propositions in other words: turned to their contrary, without their frame, and declared by a speaker.

A benchmark asks of each proposition which side a turn takes, and always in the same frame. An encoder then
learns topics where it should learn sides: whoever turns the proposition must turn the answer. The words here
are our own; where a proposition has none of the forms that are known, it is left as it is.
"""

import random
import re
from collections.abc import Mapping

import msgspec

from tracker.stances import Expressed

Rules = tuple[tuple[re.Pattern[str], str], ...]


class Wording(msgspec.Struct, frozen=True):
    """How a language frames a proposition, says its contrary, and takes a side."""

    frame: re.Pattern[str]  # group 1 opens, group 2 is the clause, group 3 closes
    stated: Rules  # a question's clause to the statement that it asks about: all apply
    denied: Rules  # a clause to the statement of its contrary: the first that matches, once
    contrary: tuple[str, ...]  # for a statement that no rule denies
    said: Mapping[Expressed, tuple[str, ...]]  # of a statement


def stated(proposition: str, language: str | None) -> str | None:
    """The proposition as a bare statement."""
    found = _clause(proposition, language)
    if found is None:
        return None
    wording, clause = found
    for pattern, words in wording.stated:
        clause = pattern.sub(words, clause)
    return clause


def turned(proposition: str, language: str | None, chance: random.Random) -> str | None:
    """The proposition whose supporters oppose this one."""
    found, statement, drawn = _clause(proposition, language), stated(proposition, language), chance.random()
    if found is None or statement is None:
        return None
    wording, clause = found
    contrary = wording.contrary[int(drawn * len(wording.contrary))]
    chosen = _denied(wording, clause) or contrary.format(statement)
    return wording.frame.sub(lambda match: f"{match[1]}{chosen}{match[3]}", proposition)


def declared(proposition: str, language: str | None, side: Expressed, chance: random.Random) -> str | None:
    """What somebody on that side of it might say."""
    statement, drawn = stated(proposition, language), chance.random()
    if statement is None:
        return None
    said = WORDINGS[language or ""].said[side]
    return said[int(drawn * len(said))].format(statement)


def _clause(proposition: str, language: str | None) -> tuple[Wording, str] | None:
    wording = WORDINGS.get(language or "")
    match = wording and wording.frame.match(proposition)
    return (wording, match[2]) if wording and match else None


def _denied(wording: Wording, clause: str) -> str | None:
    for pattern, words in wording.denied:
        denial, count = pattern.subn(words, clause, count=1)
        if count:
            return denial
    return None


def _rules(*pairs: tuple[str, str]) -> Rules:
    return tuple((re.compile(pattern), words) for pattern, words in pairs)


_ENGLISH = Wording(
    frame=re.compile(r"^(The debate concerning whether )(.+?)()$"),
    stated=(),
    denied=_rules(
        (r"\b(should|must|would|can|will|is|are|was|were|does|ought) not\b", r"\1"),
        (r"\b(should|must|would|can|will|is|are|was|were|does|ought)\b", r"\1 not"),
    ),
    contrary=("it is false that {}", "people are wrong to say that {}", "nobody should believe that {}"),
    said={
        Expressed.SUPPORT: (
            "I think {}.",
            "Honestly, {}. I'm sure of it.",
            "Yes. {}, no question.",
            "Count me in with those who say that {}",
            "I have come round: {}.",
            "It is true that {}",
            "I can no longer deny that {}.",
            "{}? Absolutely, yes.",
        ),
        Expressed.OPPOSE: (
            "I don't think {}.",
            "{}? No way.",
            "It is simply not true that {}.",
            "I no longer believe that {}.",
            "No. Whoever says that {} is wrong.",
            "Nobody will convince me that {}.",
            "I used to think {}, not any more.",
            "{}? I'm against it.",
        ),
        Expressed.NEUTRAL: (
            "I can see both sides of whether {}.",
            "Whether {}? I really can't decide, there is something to both.",
            "I'm on the fence about whether {}.",
            "There are good reasons for and against, I stay in the middle on whether {}.",
        ),
        Expressed.NONE: (
            "Who else is reading along here?",
            "Why does everybody ask whether {}?",
            "So the question is whether {}. Who starts?",
            "Back in five, somebody is at the door.",
            "What did the others say on whether {}?",
        ),
    },
)

_SPANISH = Wording(
    frame=re.compile(r"^((?:El debate|La discusión|La polémica) (?:sobre|acerca de|en torno a) si )(.+?)()$"),
    stated=(),
    denied=_rules(
        (
            r"\bno ((?:se |les? |nos |l[oa]s? )?(?:deb\w+|es|son|fue\w*|est\w+|hac\w+|sirv\w+|val\w+))\b",
            r"\1",
        ),
        (
            r"\b((?:se |les? |nos |los? )?(?:deber?ían?|deben?|debió|debieron|es|son|fue|fueron|sería|está"
            r"|están|hacen?|sirven?|vale|valen|puede|pueden|merece|conviene|tienen?|era))\b",
            r"no \1",
        ),
    ),
    contrary=("es falso que {}", "se equivoca quien dice que {}", "es mentira que {}"),
    said={
        Expressed.SUPPORT: (
            "Creo que {}.",
            "Para mí está claro que {}.",
            "¿Que {}? Por supuesto.",
            "Sí, {}, sin duda.",
            "Me han convencido: {}.",
            "Es verdad que {}",
            "Ya no puedo negar que {}.",
            "Estoy a favor: {}.",
        ),
        Expressed.OPPOSE: (
            "No es verdad que {}.",
            "¿Que {}? Para nada.",
            "Ya no creo eso de que {}.",
            "Me niego a aceptar que {}.",
            "Quien diga que {} se equivoca.",
            "Antes pensaba que {}, ahora ya no.",
            "Estoy en contra, no me vengan con que {}.",
            "Eso de que {} es falso.",
        ),
        Expressed.NEUTRAL: (
            "No sé si {}, las dos partes tienen algo de razón.",
            "Sobre si {} no me decido, la verdad.",
            "Ni a favor ni en contra: que {} depende de muchas cosas.",
            "Veo argumentos de los dos lados sobre si {}.",
        ),
        Expressed.NONE: (
            "¿Quién más está leyendo esto?",
            "¿Por qué todo el mundo pregunta si {}?",
            "Entonces la pregunta es si {}. ¿Quién empieza?",
            "Vuelvo en cinco minutos, tocan a la puerta.",
            "¿Qué dijeron los demás sobre si {}?",
        ),
    },
)

_CHINESE = Wording(
    frame=re.compile(r"^([关關][于於])(.+?)([的嘅][讨討][论論])$"),
    stated=_rules((r"(.)[不唔]\1", r"\1"), (r"應否", "應"), (r"係咪", "係"), (r"是否", "")),
    denied=_rules(
        (r"(.)([不唔])\1", r"\2\1"),
        (r"是否(应|應|该|該|必须|需要|值得|可以|能|要)", r"不\1"),
        (r"是否", "并不"),
        (r"應否", "不應"),
        (r"係咪", "唔係"),
        (r"[不唔](应该|應該|该|該|是|算|值|会|會)", r"\1"),
        (r"(应该|應該|该|該)", r"不\1"),
    ),
    contrary=("{}这种说法不成立", "说{}是错的", "{}并非事实"),
    said={
        Expressed.SUPPORT: (
            "我觉得{}。",
            "{},这点我同意。",
            "没错,{}。",
            "我被说服了,{}。",
            "我支持,{}。",
            "确实,{}",
            "我站这边:{}!",
            "{}?当然。",
        ),
        Expressed.OPPOSE: (
            "我不觉得{}。",
            "{}?我不同意。",
            "谁说{}的,不对。",
            "我反对,别跟我说{}。",
            "以前我觉得{},现在不这么想了。",
            "我不信{}。",
            "说{}的人都错了。",
            "{}?绝对不行。",
        ),
        Expressed.NEUTRAL: (
            "{}吗?两边都有道理,我说不准。",
            "我中立,{}这事要看情况。",
            "{}?我还没想好站哪边。",
            "正反都有理,{}这个问题我不站队。",
        ),
        Expressed.NONE: (
            "还有谁在看这个?",
            "怎么大家都在问{}?",
            "今天的话题是{},谁先说?",
            "等我五分钟,有人敲门。",
            "刚才他们说{}说到哪了?",
        ),
    },
)

WORDINGS: Mapping[str, Wording] = {"en": _ENGLISH, "es": _SPANISH, "zh": _CHINESE}
