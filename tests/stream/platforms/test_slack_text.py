"""Slack's mrkdwn as people read it, and where a message's words stand."""

from typing import Any

import pytest

from stream.platforms.slack_text import Attachment, readable, words

SECTION = {
    "type": "section",
    "text": {"type": "mrkdwn", "text": "*High* tide"},
    "fields": [{"text": "at nine"}],
}
RICH = {
    "type": "rich_text",
    "elements": [
        {
            "type": "rich_text_section",
            "elements": [{"type": "text", "text": "one "}, {"type": "link", "url": "u", "text": "two"}],
        },
        {
            "type": "rich_text_list",
            "elements": [{"type": "rich_text_section", "elements": [{"text": "three"}]}],
        },
    ],
}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<@U1> and <@U2|mara> and <@U3>", "@Ada and @mara and @U3"),
        ("<#C1|quay> and <#C2>", "#quay and #C2"),
        ("<!here> <!subteam^S1|@pilots> <!subteam^S2>", "@here @pilots @S2"),
        ("<!date^1790841600^{date}|1 October>", "1 October"),
        ("<https://example.org> <https://example.org/a|the plan>", "https://example.org the plan"),
        ("<mailto:a@example.org|a@example.org>", "a@example.org"),
        ("a &lt; b &amp;&amp; c &gt; d", "a < b && c > d"),
        ("&amp;lt;", "&lt;"),  # unescaped once
        ("&lt;@U1&gt;", "<@U1>"),  # written by hand, no mention
        ("1 < 2 <", "1 < 2 <"),
        ("<>", "<>"),
    ],
)
def test_signs_are_shown_as_people_see_them(text: str, shown: str) -> None:
    assert readable(text, {"U1": "Ada"}.get) == shown


@pytest.mark.parametrize("text", [None, "", "This content can't be displayed."])
@pytest.mark.parametrize(
    ("blocks", "attachments", "said"),
    [
        ([SECTION], [], "*High* tide\nat nine"),
        ([RICH], [], "one two\nthree"),
        ([SECTION], [Attachment(text="more")], "*High* tide\nat nine"),
        (None, [Attachment(text="a"), Attachment(fallback="b")], "a\nb"),
        (None, [Attachment(text="a\nb", is_share=True)], "&gt; a\n&gt; b"),
        (None, [Attachment()], ""),
        ("x", [], ""),
        ([7, None, {"text": 7}], [], ""),
    ],
)
def test_words_without_text(text: str | None, blocks: Any, attachments: list[Attachment], said: str) -> None:
    assert words(text, blocks, attachments) == said


def test_the_text_comes_first() -> None:
    assert words("said", [SECTION], [Attachment(text="more")]) == "said"
