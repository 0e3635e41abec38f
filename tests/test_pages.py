"""The Python code of every page runs, block by block in one namespace per page, and links lead somewhere.

On the page about the shell, so do the commands.
"""

import re
import shlex
from pathlib import Path
from textwrap import dedent

import pytest
from typer.testing import CliRunner

from decidewise.app.cli import app

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
CODE = re.compile(r"^( *)```(python|sh)\n(.*?)^\1```$", flags=re.DOTALL | re.MULTILINE)
WITH_COMMANDS = ("shell",)


def blocks(page):
    """Yield the code of a page, each block at its line, so that a traceback names the right one, and its language."""
    text = page.read_text(encoding="utf-8")
    for match in CODE.finditer(text):
        if match[2] == "python" or page.stem in WITH_COMMANDS:
            yield "\n" * text.count("\n", 0, match.start(3)) + dedent(match[3]), match[2]


@pytest.mark.parametrize("page", [page for page in PAGES if any(blocks(page))], ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a page may write files
    namespace = {"__name__": page.stem}
    for block, language in blocks(page):
        if language == "python":
            exec(compile(block, str(page), "exec"), namespace)  # noqa: S102
            continue
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words:
                assert words[0] == "decidewise"
                result = CliRunner().invoke(app, words[1:])
                assert result.exit_code == 0, (line, result.output, result.exc_info)


def test_the_shell_page_shows_what_compare_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "shell.md").read_text(encoding="utf-8")
    commands, shown = re.search(r"```sh\n(.*?)```.*?```text\n(.*?)```", text, flags=re.DOTALL).groups()
    for line in commands.splitlines():
        printed = CliRunner().invoke(app, shlex.split(line, comments=True)[1:]).stdout
    # Seconds are those of a machine, and so is the width of their column.
    printed, shown = (re.sub(r"[━─ ]+", " ", re.sub(r"[\d,.]+ m?s │", "│", page)) for page in (printed, shown))
    number = r"-?\d+(?:\.\d+)?"
    assert re.sub(number, "", printed) == re.sub(number, "", shown)
    found, expected = (list(map(float, re.findall(number, page))) for page in (printed, shown))
    assert found == pytest.approx(expected, rel=0.01, abs=0.02)  # other versions of NumPy may round otherwise


def test_blocks_are_found_also_in_lists():
    assert {page.stem for page in PAGES if any(blocks(page))} >= {"README", "CONTRIBUTING", "choosing", "experiments"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_linked_file_exists(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)", text) + re.findall(r'src(?:set)?="([^"]+)"', text):
        assert target.startswith("https://") or (page.parent / target).exists(), target
