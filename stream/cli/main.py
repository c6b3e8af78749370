"""`volteface`: every command, and what they have in common."""

import os
import sys

import typer

from models.engine_thread import left_running
from stream.cli import agent, demo, doctor, evaluate, replay, track, up, worker
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
app.command("eval")(evaluate.evaluate)


def main() -> None:
    """Run a command; an error that a person can mend is one line and exit status 2."""
    status = _run()
    sys.stdout.flush()
    sys.stderr.flush()
    if left_running():
        os._exit(status)
    sys.exit(status)


def _run() -> int:
    try:
        app()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except SettingsError as error:
        sys.stderr.write(f"volteface: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    main()
