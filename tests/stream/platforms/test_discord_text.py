"""Discord's content as people read it."""

import pytest

from stream.platforms.discord_text import quoted, readable


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("<@1> <@!1> <@2>", "@Ada @Ada @2"),
        ("<@&3> <#4>", "@3 #4"),
        ("<:wave:5> <a:spin:6>", ":wave: :spin:"),
        ("<t:1790841600:R> <t:-5>", "1790841600 -5"),
        ("1 < 2 <@x> <:wave> <>", "1 < 2 <@x> <:wave> <>"),
    ],
)
def test_signs_are_shown_as_people_see_them(content: str, shown: str) -> None:
    assert readable(content, {"1": "Ada"}) == shown


def test_a_quotation() -> None:
    assert (quoted("a\nb"), quoted("")) == ("> a\n> b", "")
