"""The command `decidewise`, also as `python -m decidewise`."""

import os
import signal
import sys

from decidewise.kit.lazy import require


def main() -> None:
    """Run the command line, or say what it needs."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell, as `>&-` does
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - until the process ends
    try:
        require("cli", by="the command line")
    except ImportError as missing:
        sys.stderr.write(f"Error: {missing}\n")
        sys.exit(2)
    try:
        from decidewise.app.cli.app import app  # noqa: PLC0415

        app(prog_name="decidewise")
    except KeyboardInterrupt:  # while modules are imported; later ones are handled where commands run
        sys.stderr.write("Error: stopped.\n")
        sys.exit(130)
    except SystemExit as end:
        _leave_at_once(end)
        raise


def _leave_at_once(end: SystemExit) -> None:
    """Let Ctrl-C end a finished command that waits for its workers to end, with the exit code of the command."""

    def leave(*_: object) -> None:
        sys.stdout.flush()
        os._exit(end.code if isinstance(end.code, int) else 0)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not ignored, as it is in the background
        signal.signal(signal.SIGINT, leave)


if __name__ == "__main__":
    main()
