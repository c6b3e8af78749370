"""Dead letters on a terminal: what people or machines sent is escaped, so that it steers no screen."""

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from stream.letters import Letter, Row, Verdict, rfc_3339

SHOWN = 4000  # characters of a record
PIPED_WIDTH = 400  # a table that no screen shows is as wide as it must be


def escaped(text: str, but: str = "") -> str:
    """The text with all that is not printable as escapes, but for these characters."""
    return "".join(
        one if one.isprintable() or one in but else one.encode("unicode_escape").decode() for one in text
    )


def table(rows: Sequence[Row], title: str) -> None:
    """Print a table of letters; an id is whole where the screen is wide enough for it."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=PIPED_WIDTH)
    if not rows:
        console.print(f"{title}: none", highlight=False)
        return
    shown = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for at, column in enumerate(("id", "time", "status", "reason", "field", "got", "conversation")):
        shown.add_column(column, no_wrap=at < 2, overflow="fold")
    for row in rows:
        room = "no conversation's key" if row.tenant is None else f"{row.tenant}/{row.conversation}"
        cells = (row.id, row.time, row.status, row.reason, row.field, row.got, room)
        # Text, not str: what a record brought must not be taken for markup.
        shown.add_row(*(Text(escaped(cell)) for cell in cells))
    console.print(shown)


def lines(letter: Letter, verdict: Verdict | None) -> Iterator[str]:
    """All of a letter, for people."""
    said = f"{verdict.status} by {verdict.by} at {verdict.at}" if verdict else "open"
    told = {"id": letter.id, "status": said, "time": rfc_3339(letter.time), "key": _text(letter.key)}
    told |= {name: letter.header(f"volteface.{name}") for name in ("reason", "field", "got", "remedy")}
    for name, text in told.items():
        yield f"{name:8}{escaped(text)}"
    yield "headers"
    for header, value in letter.headers:
        yield f"  {escaped(header)}: {escaped(_text(value))}"
    yield f"record  {held(letter)}"
    yield from _record(letter.value)


def held(letter: Letter) -> str:
    """How much of its record a letter holds."""
    size = letter.sizes[1]
    if letter.value is None:
        return "null"
    if len(letter.value) == size:
        return f"{size} bytes"
    return f"cut: {len(letter.value)} of {size} bytes; retry reads all of it where it stood"


def _record(value: bytes | None) -> Iterator[str]:
    if value is None:
        return
    text = _text(value)
    yield escaped(text[:SHOWN], but="\n\t")
    if len(text) > SHOWN:
        yield f"... {len(text) - SHOWN} more characters; --raw writes all bytes"


def _text(given: bytes | None) -> str:
    return "null" if given is None else given.decode(errors="backslashreplace")
