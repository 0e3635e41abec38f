"""The Python code of every page runs, block by block in one namespace per page, and links lead somewhere."""

import re
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
CODE = re.compile(r"^( *)```python\n(.*?)^\1```$", flags=re.DOTALL | re.MULTILINE)


def blocks(page):
    """Yield the code of a page, each block at its line, so that a traceback names the right one."""
    text = page.read_text(encoding="utf-8")
    for match in CODE.finditer(text):
        yield "\n" * text.count("\n", 0, match.start(2)) + dedent(match[2])


@pytest.mark.parametrize("page", [page for page in PAGES if any(blocks(page))], ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a page may write files
    namespace = {"__name__": page.stem}
    for block in blocks(page):
        exec(compile(block, str(page), "exec"), namespace)  # noqa: S102


def test_blocks_are_found_also_in_lists():
    assert {page.stem for page in PAGES if any(blocks(page))} >= {"README", "CONTRIBUTING", "choosing", "experiments"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_linked_file_exists(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target
