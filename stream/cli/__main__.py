"""The program `volteface`: quiet, too, where Ctrl-C comes while its parts are still being imported."""

import sys

INTERRUPTED = 130


def main() -> None:
    """Import the commands and run one."""
    try:
        from stream.cli import main as commands  # noqa: PLC0415 - the import takes most of a short command

        commands.main()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
