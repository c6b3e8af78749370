"""The parts of a data set that get figures of their own: by language, register and length of dialogue.

Registers are free text, nearly one a dialogue; they are grouped by where people talk and by how tidily they
type, from words of the three languages.
"""

from collections.abc import Iterator, Mapping

from models.datasets.dialogue import Dialogue

ALL = "all"
VENUES: Mapping[str, tuple[str, ...]] = {  # the first that a register names is its venue
    "live": ("live", "stream", "twitch", "broadcast", "watch-along", "directo", "直播", "弹幕"),
    "gaming": ("discord", "gaming", "game", "guild", "raid", "server", "juego", "游戏", "开黑"),
    "work": (
        "team", "slack", "work", "office", "channel", "colleague", "trabajo", "equipo", "canal", "compañeros",
        "工作", "同事", "企业", "飞书", "项目", "部门",
    ),
    "family": (
        "family", "couple", "sibling", "sister", "brother", "cousin", "familia", "pareja", "hermana", "primos",
        "家族", "家庭", "情侣", "夫妻", "兄妹", "亲戚", "同群",
    ),
    "public": (
        "forum", "thread", "reddit", "comment", "page", "q&a", "weibo", "hilo", "foro", "comentario", "评论", "论坛",
        "贴吧", "知乎", "微博", "帖", "留言", "社区",
    ),
}  # fmt: skip
OTHER_VENUE = "group"  # class, neighbours, clubs, friends
TONES: Mapping[str, tuple[str, ...]] = {
    "messy": (
        "messy", "chaotic", "lowercase", "lower case", "slang", "rough", "desordenado", "caótico", "faltas", "乱", "亂",
        "错字",
    ),
    "tidy": ("tidy", "formal", "polite", "well spelt", "cuidado", "工整", "整齐"),
}  # fmt: skip
PLAIN = "plain"
LENGTHS = ((6, "1-6"), (9, "7-9"), (13, "10-13"), (20, "14-20"))
LONG = "21+"


def groups(dialogue: Dialogue) -> Iterator[str]:
    """The parts that a dialogue belongs to, as `kind=name`; always `all`."""
    yield ALL
    yield f"language={dialogue.language}"
    if dialogue.register is not None:
        yield f"venue={named(dialogue.register, VENUES, OTHER_VENUE)}"
        yield f"tone={named(dialogue.register, TONES, PLAIN)}"
    yield f"turns={length(len(dialogue.turns))}"


def named(register: str, kinds: Mapping[str, tuple[str, ...]], other: str) -> str:
    """The first kind of which a register has a word."""
    plain = register.lower()
    return next((kind for kind, words in kinds.items() if any(word in plain for word in words)), other)


def length(turns: int) -> str:
    """The class of a dialogue's length."""
    return next((name for most, name in LENGTHS if turns <= most), LONG)
