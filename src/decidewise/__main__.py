"""The command `decidewise`, also as `python -m decidewise`."""

import sys

from decidewise.runtime.extras import require


def main() -> None:
    """Run the command line, or say what it needs."""
    try:
        require("cli", by="the command line")
    except ImportError as missing:
        sys.stderr.write(f"Error: {missing}\n")
        sys.exit(2)
    try:
        from decidewise.cli import app  # noqa: PLC0415

        app(prog_name="decidewise")
    except KeyboardInterrupt:  # while modules are imported; later ones are handled where commands run
        sys.stderr.write("Error: stopped.\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
