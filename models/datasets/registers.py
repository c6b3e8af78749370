"""The open dataset's registers are free text, hundreds in each language: their families, for tables only.

Some registers give labels away ("no flip", "two flips"): no reader may be shown one.
"""

import re

# The first that matches decides: a family's WhatsApp group is a family's, the stream of a game is live.
_FAMILIES = {
    "live": "live|stream|twitch|danmaku|directo|直播|弹幕",
    "family": (
        r"famil|couple|parejas?\b|sibling|cousin|wife|husband|parents? (and|chat)|herman|primos"
        "|家族|家庭|家人|亲戚|情侣|夫妻|姐妹|兄弟|一家"
    ),
    "school": (
        "class|school|student|universi|campus|dorm|course|study|parents|padres|madres|clase|colegio"
        "|facultad|instituto|curso|班|校|宿舍|学生|同学|室友|家长|课|考研"
    ),
    "neighbours": (
        "neighbou?r|residents|building|tenant|allotment|village|household|flat|local|street|community board"
        "|vecin|comunidad|barrio|pueblo|业主|邻|小区|村|楼|社区|街坊|合租"
    ),
    "work": (
        "work|team|slack|office|staff|company|colleague|project|github|issue|code review|email|meeting|ward"
        "|trabajo|equipo|oficina|empresa|reuni|工作|同事|公司|项目|部门|团队|钉钉|飞书|办公|医院"
    ),
    "games": "gam(e|ing)|guild|raid|discord|minecraft|clan|gremio|juego|游戏|公会|战队|开黑",
    "comments": (
        "comment|thread|forum|reddit|post|tweet|question|weibo|tieba|zhihu|review|comentari|hilo|foro|reseñ"
        "|评论|贴吧|微博|论坛|帖|知乎|豆瓣|小红书|B站|回复|跟帖"
    ),
    "clubs": (
        "club|fan|band|choir|committee|volunteer|hobby|society|association|church|coro|peña|asociaci"
        "|粉丝|社团|俱乐部|乐队|车友|球迷|志愿|协会|跑团"
    ),
    "groups": ("group|chat|friend|whatsapp|telegram|messenger|message|amig|grupo|群|私聊|朋友|微信"),
}
_PATTERNS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _FAMILIES.items()}
_MESSY = re.compile("messy|typos|desordenad|muy informal|乱", re.IGNORECASE)

OTHER = "other"
FAMILIES = (*_PATTERNS, OTHER)


def family(register: str | None) -> str:
    """The one of FAMILIES that a register's words speak for."""
    return next((name for name, pattern in _PATTERNS.items() if pattern.search(register or "")), OTHER)


def messy(register: str | None) -> bool:
    """Whether its writers were to write as carelessly as people do."""
    return bool(_MESSY.search(register or ""))
