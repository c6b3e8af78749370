"""Who wears which badges, and what a line of chat says."""

import pytest

from stream.platforms.twitch_chat import kind_of, words
from tracker.records import HolderKind


@pytest.mark.parametrize(
    ("badges", "kind"),
    [
        ([], HolderKind.USER),
        ([""], HolderKind.USER),
        (["subscriber", "vip"], HolderKind.USER),
        (["subscriber", "moderator"], HolderKind.MODERATOR),
        (["broadcaster"], HolderKind.MODERATOR),
        (["moderator", "bot-badge"], HolderKind.BOT),
    ],
)
def test_who_speaks(badges: list[str], kind: HolderKind) -> None:
    assert kind_of(badges) == kind


def test_who_is_answered_is_no_word_of_the_answer() -> None:
    assert words("@Ada -1 never", "Ada") == "-1 never"
    assert words("@Adam -1 never", "Ada") == "@Adam -1 never"
    assert words("@Ada", "Ada") == "@Ada"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hi", "hi"),
        ("\x01ACTION waves\nat all\x01", "waves\nat all"),
        ("\x01ACTION waves", "waves"),  # where the line was cut
        ("\x01VERSION\x01", "\x01VERSION\x01"),
        ("", ""),
    ],
)
def test_an_action_is_what_is_done(text: str, said: str) -> None:
    assert words(text) == said
