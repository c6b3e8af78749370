"""Opens a file of conversations in whatever form its beginning shows."""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from stream.platforms import (
    benchmark,
    convokit,
    discord,
    matrix,
    native,
    slack,
    slack_export,
    telegram,
    twitch_eventsub,
    twitch_irc,
    whatsapp,
    youtube,
)
from stream.platforms.forms import Form, ReadLines, Recognise, UnknownForm
from stream.platforms.lines import STDIN, Line, RawLine, Resumed, Source, opened
from stream.platforms.samples import HEAD_BYTES, Sample, sampled
from stream.platforms.sayings import UNSAID, Sayings

_CONVOKIT = frozenset({"speaker", "user"})


def _silent(read: Callable[[Iterable[RawLine]], Iterator[Line]]) -> ReadLines:
    """A form whose files say all of it themselves."""
    return lambda lines, said: read(lines)


def _by_fields(recognises: Callable[[dict[str, object]], bool]) -> Recognise:
    return lambda sample: recognises(dict(sample.fields))


def _is_native(sample: Sample) -> bool:
    return "conversation" in sample.fields or isinstance(sample.fields.get("op"), str)


def _is_slack_export(sample: Sample) -> bool:
    return sample.path is not None and slack_export.recognises(sample.path)


def _is_convokit(sample: Sample) -> bool:
    return bool(sample.fields.keys() & _CONVOKIT)


# Asked in this order; what none of them knows is native, whose refusals say what a line must be.
_ALL = (
    Form("benchmark", lambda sample: "turns" in sample.fields, lines=_silent(benchmark.read)),
    Form("native", _is_native, lines=_silent(native.read)),
    Form("slack-export", _is_slack_export, path=slack_export.read_path),
    Form("slack", _by_fields(slack.recognises), lines=slack.read),
    Form("discord", _by_fields(discord.recognises), lines=discord.read),
    Form("twitch-eventsub", _by_fields(twitch_eventsub.recognises), lines=twitch_eventsub.read),
    Form("twitch-irc", lambda sample: twitch_irc.recognises(sample.first), lines=twitch_irc.read),
    Form("telegram", _by_fields(telegram.recognises), document=telegram.read),
    Form("matrix", _by_fields(matrix.recognises), lines=matrix.read, document=matrix.read_document),
    Form("youtube", _by_fields(youtube.recognises), lines=youtube.read, document=youtube.read_document),
    Form("whatsapp", lambda sample: whatsapp.recognises(sample.first), document=whatsapp.read),
    Form("convokit", _is_convokit, lines=_silent(convokit.read)),
)
_FALLBACK = "native"
_FIRST = ("native", "benchmark", "convokit")  # as they are listed; the platforms follow by name

FORMS: Mapping[str, Form] = {
    **{name: next(form for form in _ALL if form.name == name) for name in _FIRST},
    **{form.name: form for form in sorted(_ALL, key=lambda form: form.name)},
}


def detect(source: Source) -> str:
    """The form's name, by the file's beginning. Raises OSError."""
    path = _path(source)
    if path is not None and path.is_dir():
        return _form(Sample(path)).name
    with opened(source) as stream:
        return _form(sampled(stream, path)[1]).name


def open_records(source: Source, form: str | None = None, said: Sayings = UNSAID) -> Iterator[Line]:
    """The file's records and refusals as they are read; without a form, by the file's beginning.

    Raises UnknownForm at once; OSError while it reads, and Refused where the file cannot be read without a
    word more: `said` has it.
    """
    if form is not None and form not in FORMS:
        raise UnknownForm(f"no form {form!r}; one of {', '.join(FORMS)}")
    return _records(source, form, said)


def _records(source: Source, name: str | None, said: Sayings) -> Iterator[Line]:
    path = _path(source)
    if path is not None:
        said = msgspec.structs.replace(said, file=_name(path))
    if path is not None and path.is_dir():
        form = FORMS[name] if name else _form(Sample(path))
        if form.path is not None:
            yield from form.path(path, said)
            return
    with opened(source) as stream:
        head, sample = sampled(stream, path)
        form = FORMS[name] if name else _form(sample)
        whole = cast(BinaryIO, io.BufferedReader(Resumed(head, stream), HEAD_BYTES))
        yield from form.read(whole, sample, said)


def _form(sample: Sample) -> Form:
    return next((form for form in _ALL if form.recognises(sample)), FORMS[_FALLBACK])


def _path(source: Source) -> Path | None:
    return Path(source) if isinstance(source, str | Path) and str(source) != STDIN else None


def _name(path: Path) -> str:
    """A file's name for its conversation; `_chat.txt`, as iOS calls every export, has its folder's."""
    name = path.name.removesuffix(".gz").removesuffix(".txt")
    return path.absolute().parent.name if name == "_chat" else name
