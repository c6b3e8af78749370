"""What a Matrix event says: words without fallbacks, and its media."""

from typing import Any

import msgspec
import pytest

from stream.platforms.matrix_events import MESSAGE, STICKER, Content, media, text
from tracker.records import Media, Modality


def content(**fields: Any) -> Content:
    return msgspec.convert(fields, Content)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("> <@ada:example.org> one\n> two\n\nyes", "yes"),
        ("> <@ada:example.org> one\n>\n> two\n\nyes\n> mine", "yes\n> mine"),
        ("> <@ada:example.org> one\nyes", "yes"),
        ("yes\n> quoted by hand", "yes\n> quoted by hand"),
        ("> all of it", ""),
        ("yes", "yes"),
    ],
)
def test_a_replys_fallback_is_taken_away(body: str, said: str) -> None:
    assert text(MESSAGE, content(msgtype="m.text", body=body), is_reply=True) == said
    assert text(MESSAGE, content(msgtype="m.text", body=body), is_reply=False) == body


def test_a_star_is_the_mark_of_an_edit_alone() -> None:
    starred = content(msgtype="m.text", body="* one")
    assert text(MESSAGE, starred, is_reply=False, is_edit=True) == "one"
    assert text(MESSAGE, starred, is_reply=False) == "* one"


@pytest.mark.parametrize("name", [{}, {"filename": "a.jpg"}])
def test_a_files_name_is_no_text(name: dict[str, str]) -> None:
    assert text(MESSAGE, content(msgtype="m.image", body="a.jpg", **name), is_reply=False) == ""


def test_a_caption_is_text() -> None:
    assert text(MESSAGE, content(msgtype="m.image", body="look", filename="a.jpg"), is_reply=False) == "look"


@pytest.mark.parametrize(
    ("kind", "fields", "found"),
    [
        (STICKER, {"body": "a duck", "url": "mxc://a"}, Media(Modality.MEME, "mxc://a", None, "a duck")),
        (MESSAGE, {"msgtype": "m.image", "url": "mxc://a"}, Media(Modality.IMAGE, "mxc://a")),
        (MESSAGE, {"msgtype": "m.audio", "file": {"url": "mxc://b"}}, Media(Modality.AUDIO, "mxc://b")),
        (
            MESSAGE,
            {"msgtype": "m.video", "info": {"mimetype": "video/mp4"}},
            Media(Modality.VIDEO, None, "video/mp4"),
        ),
        (MESSAGE, {"msgtype": "m.file", "info": {"mimetype": "application/pdf"}}, None),
        (MESSAGE, {"msgtype": "m.text", "info": {"mimetype": "image/png"}}, None),
    ],
)
def test_media(kind: str, fields: dict[str, Any], found: Media | None) -> None:
    assert media(kind, content(**fields)) == (() if found is None else (found,))
