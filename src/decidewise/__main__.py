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
    from decidewise.cli import app  # noqa: PLC0415

    app(prog_name="decidewise")


if __name__ == "__main__":
    main()
