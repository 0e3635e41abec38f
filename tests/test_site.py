"""What the site is made of: pages from the code, and a gallery of scripts; `make docs` builds it and runs these."""

import ast
import importlib.util
from pathlib import Path

import pytest

from decidewise.losses import registry
from decidewise.problems.readers.kinds import built_in

ROOT = Path(__file__).parents[1]
GALLERY = sorted((ROOT / "docs" / "gallery").glob("*.py"))


@pytest.fixture(scope="module")
def pages():
    specification = importlib.util.spec_from_file_location("pages", ROOT / "docs" / "_ext" / "generated_pages.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_every_loss_problem_and_command_is_on_its_page(pages):
    losses, problems, commands = pages.losses_page(), pages.problems_page(), pages.commands_page()
    assert all(f":class:`{name} <" in losses for name in registry)
    assert all(f'kind = "{name}"' in problems for name in built_in())
    assert all(f"``decidewise {name}``" in commands for name in ("compare", "fit", "decide", "paper run", "problems"))


def test_every_public_name_is_in_the_reference(pages):
    import decidewise  # noqa: PLC0415

    front = pages.package_page("decidewise", "")
    public = [name for name in decidewise.__all__ if callable(getattr(decidewise, name))]
    assert [name for name in public if f"   {name}\n" not in front and f".{name}\n" not in front] == []


def test_links_out_of_the_pages_lead_to_the_source(pages):
    source = ["[a](../examples/a.py), [b](../CONTRIBUTING.md), [c](tables.md)"]
    pages.link_to_source(None, "page", source)
    assert source == [f"[a]({pages.SOURCE}/examples/a.py), [b](contributing.md), [c](tables.md)"]


@pytest.mark.parametrize("script", GALLERY, ids=lambda script: script.stem)
def test_a_script_of_the_gallery_has_a_title_and_a_figure(script):
    text = script.read_text(encoding="utf-8")
    title, line = (ast.get_docstring(ast.parse(text)) or "\n").splitlines()[:2]
    assert line == "=" * len(title)
    assert "plt.show()" in text
