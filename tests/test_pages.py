"""The code of every page runs and prints what the page shows, and links lead somewhere."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(page for page in (ROOT / "docs").rglob("*.md") if "generated" not in page.parts)]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@pytest.fixture(scope="module")
def page_code():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs" / "_ext"))
        yield importlib.import_module("page_code")


def with_code():
    """Return the pages with code that is run."""
    return [page for page in PAGES if re.search(r"^ *```(python|sh)$", page.read_text("utf-8"), flags=re.MULTILINE)]


@pytest.mark.parametrize("page", with_code(), ids=lambda page: page.stem)
def test_the_code_of_a_page_runs_and_prints_what_the_page_shows(page, page_code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a page may write files
    for match, output in page_code.run(page):
        # Seconds are those of a machine, and so is the width of their column.
        shown, printed = (re.sub(r"[━─ ]+", " ", re.sub(r"[\d,.]+ m?s │", "│", text)) for text in (match[3], output))
        shown, printed = ("\n".join(line.rstrip() for line in text.splitlines()) for text in (shown, printed))
        assert NUMBER.sub("", printed.rstrip()) == NUMBER.sub("", shown.rstrip())
        found, expected = (list(map(float, NUMBER.findall(text))) for text in (printed, shown))
        assert found == pytest.approx(expected, rel=0.01, abs=0.02)  # other versions of NumPy may round otherwise


def test_code_and_its_output_are_found(page_code):
    assert {page.stem for page in with_code()} >= {"README", "CONTRIBUTING", "tutorial_shell", "choose_model"}
    text = "```python\n1\n```\n\n```text\n1\n```\nand\n```text\nnot printed\n```\n"
    assert [match[2] for match in page_code.BLOCK.finditer(text)] == ["python", "text", "text"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_linked_file_exists(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)", text) + re.findall(r'src(?:set)?="([^"]+)"', text):
        # Pages that the build writes have no file yet.
        is_elsewhere = target.startswith(("https://", "generated/"))
        assert is_elsewhere or (page.parent / target).exists(), target
