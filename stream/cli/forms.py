"""The options that say what a file is and what it does not say itself, for every command that reads one."""

from typing import Annotated

import typer

from stream.platforms import FORMS

FILE_HELP = (
    "Native or benchmark JSONL, ConvoKit's utterances.jsonl, or what a platform exports or sends "
    f"({', '.join(FORMS)}); .gz is unpacked"
)

FormOption = Annotated[
    str | None,
    typer.Option("--from", help=f"The file's form: {', '.join(FORMS)}. Default: detected.", metavar="FORM"),
]
ZoneOption = Annotated[
    str | None,
    typer.Option(
        "--zone",
        help="The zone of times that name none (whatsapp, old telegram): Europe/Berlin. Default: UTC.",
    ),
]
DatesOption = Annotated[
    str | None,
    typer.Option(
        "--dates",
        help="The order of dates (whatsapp): dmy, mdy or ymd. Default: from the file.",
        metavar="ORDER",
    ),
]
ConversationOption = Annotated[
    str | None,
    typer.Option(
        "--conversation",
        help="The conversation's name, where the file has none. Default for whatsapp: the file's.",
    ),
]
