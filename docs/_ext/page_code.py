"""Run the code of pages: Python, and commands of `decidewise` in `sh` blocks.

A `text` block right below code is what the code prints. `python docs/_ext/page_code.py PAGE ...` writes it anew;
`tests/test_pages.py` checks it.
"""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from textwrap import dedent
from typing import Any

BLOCK = re.compile(r"^( *)```(python|sh|text)\n(.*?)^\1```$", flags=re.DOTALL | re.MULTILINE)


def run(page: Path) -> Iterator[tuple[re.Match[str], str]]:
    """Run the code of a page in the working directory, and yield each block of shown output with what was printed."""
    text, namespace, printed, end = page.read_text(encoding="utf-8"), {"__name__": page.stem}, "", -1
    for match in BLOCK.finditer(text):
        if match[2] == "text":
            if end >= 0 and not text[end : match.start()].strip():
                yield match, printed
        elif match[2] == "python":
            # At its own lines, so that a traceback names the right one.
            code = "\n" * text.count("\n", 0, match.start(3)) + dedent(match[3])
            printed = _printed(compile(code, str(page), "exec", dont_inherit=True), namespace)
        else:
            for line in filter(None, map(partial(shlex.split, comments=True), match[3].splitlines())):
                printed = _said(line)  # of several commands, what the last one prints is shown
        end = match.end()


def _printed(code: Any, namespace: dict[str, Any]) -> str:
    with redirect_stdout(StringIO()) as output:
        exec(code, namespace)  # noqa: S102
    return output.getvalue()


def _said(words: list[str]) -> str:
    from typer.testing import CliRunner  # noqa: PLC0415

    from decidewise.app.cli.app import app  # noqa: PLC0415

    if words[0] != "decidewise":
        raise ValueError(f"{shlex.join(words)}: only `decidewise` is run; use a console block.")
    result = CliRunner().invoke(app, words[1:], env={"COLUMNS": "100"})  # wide enough for tables of any times
    if result.exit_code != 0:
        raise RuntimeError(f"{shlex.join(words)} ended with {result.exit_code}:\n{result.output}") from result.exception
    return result.stdout


def _write_anew(page: Path) -> None:
    """Write the outputs of a page anew."""
    text, parts, start = page.read_text(encoding="utf-8"), [], 0
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for match, printed in run(page):
            lines = "".join(f"{line.rstrip()}\n" for line in printed.rstrip().splitlines())
            parts += [text[start : match.start(3)], lines]
            start = match.end(3)
    page.write_text("".join([*parts, text[start:]]), encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        _write_anew(Path(name).resolve())
