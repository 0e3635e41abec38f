"""`python -m decidewise` is the command `decidewise`."""

from decidewise.cli import app

if __name__ == "__main__":
    app(prog_name="decidewise")
