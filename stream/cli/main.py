"""`volteface`: every command, and what they have in common."""

import os
import signal
import sys
from types import FrameType

import typer

from models.engine_thread import left_running
from models.language.settings import InvalidSetting
from models.language.wheels import WeightsUnavailable
from stream.cli import (
    agent,
    alerts,
    conceal,
    database,
    dead_letters,
    demo,
    doctor,
    evaluate,
    gateway,
    keys,
    rebuild,
    replay,
    runs,
    shadow,
    track,
    train,
    up,
    views,
    worker,
)
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
app.command()(conceal.conceal)
app.command()(rebuild.rebuild)
app.command()(up.up)
app.command()(agent.agent)
app.command()(worker.worker)
app.command()(gateway.gateway)
app.command()(shadow.shadow)
app.command()(doctor.doctor)
app.command("eval")(evaluate.evaluate)
app.add_typer(train.app, name="train")
app.add_typer(dead_letters.app, name="dead-letters")
app.add_typer(runs.app, name="runs")
app.add_typer(alerts.app, name="alerts")
app.add_typer(database.app, name="database")
app.add_typer(views.app, name="views")
app.add_typer(keys.app, name="keys")


def main() -> None:
    """Run a command; an error that a person can mend is one line and exit status 2."""
    _open_streams()
    _end_in_order()
    status = _run()
    sys.stdout.flush()
    sys.stderr.flush()
    if left_running():
        os._exit(status)
    sys.exit(status)


def _open_streams() -> None:
    """A standard stream that the caller closed is empty, and takes what is written to nowhere."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - kept open


def _end_in_order() -> None:
    """SIGTERM, and a terminal that closes, leave a command by its `finally` blocks; nohup still holds."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _exit)


def _exit(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


def _run() -> int:
    try:
        app()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except (SettingsError, InvalidSetting, WeightsUnavailable) as error:
        sys.stderr.write(f"volteface: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    main()
