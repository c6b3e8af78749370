"""The lexicon's words: short, plain and multilingual; a floor for tables, tuned to nothing.

Latin phrases match whole words, Chinese ones anywhere. Longer phrases are taken out first, so that "don't
agree" never counts as "agree".
"""

from tracker.stances import Expressed, TriggerKind

POSITIONS: dict[Expressed, tuple[str, ...]] = {
    Expressed.SUPPORT: (
        "yes", "agree", "i agree", "count me in", "i'm in", "im in", "sign me up", "let's do it",
        "lets do it", "great idea", "good idea", "support", "i'm for", "all for it", "makes sense",
        "worth it", "you convinced me", "you win", "fine, let's", "absolutely", "definitely", "+1",
        "sí", "de acuerdo", "estoy a favor", "a favor", "me apunto", "apoyo", "buena idea",
        "vale la pena", "me convenciste", "me has convencido", "hagámoslo", "claro que sí", "dale",
        "同意", "支持", "赞成", "赞同", "算我一个", "可以的", "好主意", "我也觉得好", "值得",
        "说服我了", "就这么办", "我加入", "行吧",
    ),
    Expressed.OPPOSE: (
        "no", "nope", "no way", "disagree", "don't agree", "do not agree", "not agree", "i'm out",
        "im out", "count me out", "bad idea", "terrible idea", "oppose", "against", "against it",
        "not a good idea", "makes no sense", "not worth it", "never", "hard pass", "don't support",
        "waste of", "-1", "en contra", "no estoy de acuerdo", "no me apunto", "no apoyo",
        "mala idea", "ni hablar", "ni loco", "ni loca", "para nada", "no vale la pena", "me opongo",
        "paso", "nunca", "no tiene sentido", "反对", "不同意", "不支持", "不赞成", "不赞同", "不行",
        "不值得", "别算我", "算了吧", "没必要", "我退出", "不可能", "坚决不", "不靠谱",
    ),
    Expressed.NEUTRAL: (
        "on the fence", "both sides", "both have a point", "undecided", "i'm torn", "im torn",
        "50/50", "could go either way", "not sure anymore", "neutral", "no lo tengo claro",
        "los dos tienen razón", "ambos tienen razón", "tengo dudas", "ni a favor ni en contra",
        "中立", "都有道理", "两边都", "拿不定主意", "说不好", "各有各的", "看情况吧",
    ),
}  # fmt: skip

TRIGGERS: dict[TriggerKind, tuple[str, ...]] = {
    TriggerKind.FACTUAL_LOGICAL: (
        "study", "data", "percent", "%", "report", "numbers", "chart", "evidence", "cost", "costs",
        "estudio", "datos", "informe", "cifras", "por ciento", "数据", "报告", "研究", "统计",
        "图表", "算了一下",
    ),
    TriggerKind.EMOTIONAL_VALUE: (
        "feel", "afraid", "scared", "fair", "unfair", "right thing", "sorry", "please", "miedo",
        "siento", "justo", "injusto", "害怕", "心疼", "难过", "公平", "良心", "担心",
    ),
    TriggerKind.PERSONAL_EXPERIENCE: (
        "my mum", "my dad", "my sister", "my brother", "when i was", "last year", "happened to me",
        "i tried", "mi madre", "mi padre", "mi hermana", "me pasó", "cuando yo", "我妈", "我爸",
        "我自己", "上次", "亲身", "去年我", "试过",
    ),
    TriggerKind.SOCIAL_INFLUENCE: (
        "everyone", "everybody", "all of us", "the rest of us", "vote", "majority", "todos",
        "todas", "la mayoría", "votación", "大家", "所有人", "都同意", "投票", "全班", "全家",
    ),
}  # fmt: skip
