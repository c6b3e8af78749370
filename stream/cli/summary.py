"""The demo's end: what was played, and how to go on with one's own file."""

import statistics
from collections.abc import Sequence

from rich.console import Group
from rich.table import Table
from rich.text import Text

from stream.cli.room import Played

COMMANDS = """
Your own file, one JSON object a line with conversation, turn, holder,
text and sent_at:

  volteface track turns.jsonl --proposition "whether ..."

Through Kafka, in a run of its own; a broker and a Redis on this machine:

  volteface up          (it says what to export for the next)
  volteface replay turns.jsonl --rate 10

What is set, found and missing:

  volteface doctor
"""


def table(rooms: Sequence[Played]) -> Table:
    """A row a room."""
    shown = Table(title="\nWhat went through Kafka")
    for heading in ("room", "turns read", "established", "flips", "median ms a turn"):
        shown.add_column(heading, justify="left" if heading == "room" else "right")
    for room in rooms:
        median = statistics.median(room.seconds) * 1000 if room.seconds else 0.0
        shown.add_row(room.name, str(room.turns), str(room.established), str(room.flips), f"{median:.0f}")
    return shown


def commands() -> Group:
    """What to type next."""
    return Group(Text(COMMANDS))
