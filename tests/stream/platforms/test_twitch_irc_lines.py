"""Lines of Twitch's IRC, taken apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.platforms.twitch_irc_lines import parsed
from tracker.records import Reason, Refused


@pytest.mark.parametrize(
    ("line", "command", "params"),
    [
        (b":ada!ada@ada.tmi.twitch.tv PRIVMSG #quay :hi : there", "PRIVMSG", ("#quay", "hi : there")),
        (b":ada!ada@ada.tmi.twitch.tv PRIVMSG #quay hi", "PRIVMSG", ("#quay", "hi")),
        (b":ada!ada@ada.tmi.twitch.tv PRIVMSG #quay :", "PRIVMSG", ("#quay", "")),
        (b":tmi.twitch.tv CLEARCHAT #quay", "CLEARCHAT", ("#quay",)),
        (b":tmi.twitch.tv 001 ada :Welcome, GLHF!", "001", ("ada", "Welcome, GLHF!")),
        (b"PING :tmi.twitch.tv", "PING", ("tmi.twitch.tv",)),
        (b"RECONNECT", "RECONNECT", ()),
        (b"@a=1  :s  PRIVMSG  #c  :x", "PRIVMSG", ("#c", "x")),
    ],
)
def test_parts(line: bytes, command: str, params: tuple[str, ...]) -> None:
    message = parsed(line)
    assert (message.command, message.params) == (command, params)


def test_channel_and_words_where_there_are_none() -> None:
    message = parsed(b":ada!ada@ada.tmi.twitch.tv JOIN")
    assert (message.channel(), message.said(), message.login()) == ("", "", "ada")


def test_tags_and_their_escapes() -> None:
    tags = parsed(rb"@a=1;b=;c;d=x\sy\:z\\\r\n\q\;e=a=b;=f :s PING").tags
    assert tags == {"a": "1", "b": "", "c": "", "d": "x y;z\\\r\nq", "e": "a=b"}


@pytest.mark.parametrize("line", [b"hello world", b"@a=1", b":s", b":s privmsg #c :x", b"", b"1", b"{}"])
def test_what_is_no_line_of_irc(line: bytes) -> None:
    with pytest.raises(Refused) as raised:
        parsed(line)
    assert (raised.value.reason, raised.value.field) == (Reason.INVALID_VALUE, "line")


def test_what_is_no_utf_8() -> None:
    with pytest.raises(Refused, match="byte 8 is no UTF-8"):
        parsed(b"PING :ab\xff")


@given(st.text(alphabet=st.characters(exclude_characters="\0\r\n ", codec="utf-8"), max_size=20))
def test_any_words_come_back_whole(text: str) -> None:
    assert parsed(f"@k=v :s PRIVMSG #c :{text} {text}".encode()).said() == f"{text} {text}"
