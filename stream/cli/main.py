"""`volteface`: every command, and what they have in common."""

import sys

import typer

from stream.cli import agent, demo, doctor, replay, track, up, worker
from stream.options import SettingsError

app = typer.Typer(
    name="volteface",
    help="Tells when someone changes their mind, about what, and what moved them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo.demo)
app.command()(track.track)
app.command()(replay.replay)
app.command()(up.up)
app.command()(agent.agent)
app.command()(worker.worker)
app.command()(doctor.doctor)


def main() -> None:
    """Run a command; an error that a person can mend is one line and exit status 2."""
    try:
        app()
    except SettingsError as error:
        sys.stderr.write(f"volteface: {error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
