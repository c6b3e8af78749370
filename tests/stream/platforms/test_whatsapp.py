"""WhatsApp's export: six languages, two phones, messages of many lines, and what must be said of a file."""

import datetime as dt
import gzip
import io
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings

from stream.platforms import Line, open_records, whatsapp
from stream.platforms.sayings import UNSAID, DateOrder, Sayings
from tests.stream.platforms.mutations import SAMPLES, changed_bytes, sound
from tracker.records import CreateTurn, Media, Modality, Reason, Refused

FILES = SAMPLES / "whatsapp"
IOS = FILES / "ios_en.txt"
QUAY = Sayings(conversation="quay")


def read(text: str | bytes, said: Sayings = QUAY) -> list[Line]:
    raw = text.encode() if isinstance(text, str) else text
    return list(whatsapp.read(io.BytesIO(raw), said))


def turns(lines: list[Line]) -> list[CreateTurn]:
    return [line.result for line in lines if isinstance(line.result, CreateTurn)]


def said_in(name: str) -> list[tuple[str, str]]:
    return [(turn.holder, turn.text) for turn in turns(list(open_records(FILES / f"{name}.txt")))]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("android_es", [("Ines", "+1 cerrar el muelle"), ("Ines", "ya veremos")]),
        ("android_pt", [("Inês", "+1 fechar o cais"), ("Inês", "")]),
        ("android_de", [("Ines", "+1 den Kai schließen"), ("Ines", "ja")]),
        ("android_fr", [("Inès", "+1 fermer le quai"), ("Inès", "bon")]),
        ("ios_zh", [("小林", "+1 应该关闭码头"), ("小陈", ""), ("小陈", "-1 不同意")]),
    ],
)
def test_languages(name: str, said: list[tuple[str, str]]) -> None:
    assert said_in(name) == said


def test_an_android_phones_export() -> None:
    lines = list(open_records(FILES / "android_en.txt"))
    assert [line.number for line in lines] == [3, 8, 9, 11, 12, 14, 16]
    first, *_ = found = turns(lines)
    assert first.text == "+1 close the quay\nto cars, I mean:\n  - vans, too\n\nnot on Sundays"
    assert found[3].text == "the queue"
    assert found[3].media == (Media(modality=Modality.IMAGE, uri="IMG-20261013-WA0001.jpg"),)
    assert [turn.holder for turn in found[1:3]] == ["+34 600 000 000"] * 2
    assert [turn.text for turn in found[4:]] == ["well, yes", "12:30 - is that noon?"]


def test_what_an_export_leaves_out_is_told() -> None:
    refused = [
        line.result for line in open_records(FILES / "android_en.txt") if isinstance(line.result, Refused)
    ]
    assert [(each.reason, "export the chat with media" in each.remedy) for each in refused] == [
        (Reason.EMPTY_TEXT, True)
    ]


def test_an_iphones_export() -> None:
    found = turns(list(open_records(IOS)))
    assert [(turn.holder, turn.text) for turn in found] == [
        ("Ines", ""),
        ("Tomas", "+1 fine"),
        ("Ines", "a photo"),
        ("Ines", "report.pdf • 3 pages"),
        ("Tomas", "POLL:\nClose the quay?\n\u200eOPTION: yes (1 vote)"),
        ("Tomas", "noon"),
    ]
    assert [media.modality for turn in found for media in turn.media] == [Modality.IMAGE, Modality.IMAGE]
    assert [turn.sent_at.second for turn in found[:4]] == [6, 7, 8, 9]
    assert [turn.sent_at.hour for turn in found[4:]] == [0, 12]


def test_several_a_minute_stay_in_order_and_apart() -> None:
    found = turns(read("".join(f"13/10/2026, 21:41 - Ines: {text}\n" for text in ("a", "b", "a", "a"))))
    assert [turn.text for turn in found] == ["a", "b", "a", "a"]
    assert all(before.sent_at <= after.sent_at for before, after in pairwise(found))
    assert len({turn.turn for turn in found}) == 4


def test_ids_are_the_same_again_and_in_a_longer_export() -> None:
    text = (FILES / "android_en.txt").read_text()
    ids = [turn.turn for turn in turns(read(text))]
    assert [turn.turn for turn in turns(read(text + "15/10/2026, 10:00 - Ines: more\n"))][:-1] == ids
    assert [turn.turn for turn in turns(read(text, Sayings(conversation="pier")))] != ids


@pytest.mark.parametrize(
    "name", ["WhatsApp Chat with Ines.txt", "WhatsApp Chat with Ines.txt.gz", "_chat.txt"]
)
def test_a_conversation_is_called_as_its_file(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "WhatsApp Chat with Ines"
    folder.mkdir()
    raw = b"13/10/2026, 21:41 - Ines: yes\n"
    (folder / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    (line,) = open_records(folder / name)
    assert isinstance(line.result, CreateTurn)
    assert line.result.conversation == "WhatsApp Chat with Ines"


def test_a_stream_has_no_name() -> None:
    with pytest.raises(Refused, match="--conversation"):
        read("13/10/2026, 21:41 - Ines: yes", UNSAID)


def test_an_order_that_the_file_does_not_show_is_asked_for_before_anything_is_read() -> None:
    text = "05/06/2026, 21:41 - Ines: yes\n"
    with pytest.raises(Refused, match="--dates dmy"):
        read(text)
    days = {
        order: turns(read(text, Sayings(conversation="q", dates=order)))[0].sent_at
        for order in DateOrder
        if order != "ymd"
    }
    assert {order: (day.month, day.day) for order, day in days.items()} == {"dmy": (6, 5), "mdy": (5, 6)}


def test_a_wrong_order_is_refused_date_by_date() -> None:
    found = read(
        "13/10/2026, 21:41 - Ines: yes\n05/10/2026, 21:41 - Ines: no",
        Sayings(conversation="q", dates=DateOrder.MDY),
    )
    assert [type(line.result) for line in found] == [Refused, CreateTurn]
    assert isinstance(found[0].result, Refused)
    assert found[0].result.field == "date"


def test_times_are_of_the_zone_that_is_said() -> None:
    text = "25/10/2026, 02:10 - Ines: a\n25/10/2026, 02:50 - Ines: b\n25/10/2026, 02:10 - Ines: c\n"
    found = turns(read(text, Sayings(conversation="q", zone=ZoneInfo("Europe/Berlin"))))
    assert [(turn.sent_at.hour, turn.sent_at.minute) for turn in found] == [(0, 10), (0, 50), (1, 10)]
    assert turns(read(text))[0].sent_at == dt.datetime(2026, 10, 25, 2, 10, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("line", "reason", "field"),
    [
        (b"13/10/2026, 21:41 - Ines: a\xffb", Reason.NOT_UTF8, "line"),
        (b"13/10/2026, 21:41 - Ines: a\n\xff", Reason.NOT_UTF8, "line"),
        (b"13/10/2026, 25:41 - Ines: a", Reason.INVALID_VALUE, "date"),
        (b"13/10/2026, 21:41 - Ines: ", Reason.EMPTY_TEXT, "text"),
        (b"13/10/2026, 21:41 - Ines: " + b"a" * 17_000, Reason.TOO_LONG, "text"),
        (b"13/10/2026, 21:41 - Ines: " + b"a\n" * 17_000, Reason.TOO_LONG, "text"),
        (b"13/10/2026, 21:41 - Ines: a\n" + b"x" * 2_000_000, Reason.TOO_LONG, "line"),
        (b"13/10/2026, 21:41 - " + b"I" * 600 + b": a", Reason.TOO_LONG, "speaker"),
        (b"hello there", Reason.INVALID_VALUE, "line"),
    ],
    ids=range(9),
)
def test_bad_messages_are_refused_by_field_and_the_next_is_read(
    line: bytes, reason: Reason, field: str
) -> None:
    first, second = read(line + b"\n14/10/2026, 21:42 - Ines: yes\n")
    assert isinstance(first.result, Refused) and isinstance(second.result, CreateTurn)
    assert (first.number, first.result.reason, first.result.field) == (1, reason, field)


def test_no_text_stands_in_a_refusal() -> None:
    (line,) = read("14/10/2026, 21:42 - Ines: " + "secret" * 5000)
    assert "secret" not in str(line.result) and "Ines" not in str(line.result)


@settings(deadline=None)  # a busy machine is no fault
@given(changed_bytes(IOS.read_bytes()) | changed_bytes((FILES / "android_es.txt").read_bytes()))
def test_no_bytes_break_it(raw: bytes) -> None:
    try:
        sound(read(raw))
    except Refused as refused:
        assert refused.field == "date"
