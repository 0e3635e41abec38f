"""What the site is made of: pages from the code, figures, and a gallery of scripts, which `make docs` runs."""

import ast
import importlib.util
import inspect
import os
import re
import runpy
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import pytest

from decidewise.losses import registry
from decidewise.problems.readers.kinds import built_in

ROOT = Path(__file__).parents[1]
GALLERY = sorted((ROOT / "docs" / "gallery").glob("*.py"))
EXTRAS = {"cvxpy", "dask", "distributed", "lightgbm", "pandas", "pyarrow", "pyomo", "pyomo.environ", "torch"}


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
    for name, place in pages.shown_elsewhere("decidewise").items():
        package = import_module("decidewise." + place[1:].rpartition(".")[0])
        assert getattr(package, name) is getattr(decidewise, name), place  # not another of the same name


def test_every_public_name_has_an_example(pages):
    lacking = set()
    for package in map(import_module, pages.PACKAGES):
        for name in pages.public_names(package):
            found = getattr(package, name)
            if not callable(found) or (inspect.isclass(found) and issubclass(found, Exception)):
                continue
            texts = [found, *vars(found).values()] if inspect.isclass(found) else [found]
            if not any(">>>" in (inspect.getdoc(text) or "") for text in texts):
                lacking.add(name)
    assert lacking == set()


def test_the_table_of_losses_says_what_each_solves_and_needs(pages):
    found = {}
    for row in pages.losses_page().split("   * - ")[2:]:
        name, *cells = re.split(r"\n     - ", row.rstrip())
        found[re.search(r"`(.+?) <", name)[1]] = cells
    assert set(found) == set(registry)
    for name, expected in {
        "wise": ["no known costs", "exact", "none", "none"],
        "spo+": ["nothing", "subgradient", "1", "1"],
        "dbb": ["nothing", "surrogate", "1", "2"],
        "lava": ["linear constraints", "subgradient", "1", "none"],
        "implicit": ["a curved region", "exact", "1", "1"],
        "one-sided": ["decisions of zeros and ones", "exact", "1", "none"],
    }.items():
        assert found[name][1:] == expected
    assert {name for name, (text, *_) in found.items() if not re.search(r"\b20\d\d\b", text)} == {"mse", "cosine"}


def test_every_error_says_what_to_do(pages):
    rows = pages.errors_page().split("   * - ")[2:]
    assert len(rows) >= 7
    assert all(re.fullmatch(r" +- \S.+\.", row.splitlines()[2]) for row in rows), rows


def test_links_out_of_the_pages_lead_to_the_source_and_those_to_scripts_to_their_pages(pages):
    source = [
        "[a](../examples/a.py), [b](../CONTRIBUTING.md#rooms), [c](tables.md), [d](gallery/04_roads.py), [e](gallery)"
    ]
    pages.link_to_source(None, "page", source)
    own = "[c](tables.md), [d](generated/gallery/04_roads.rst), [e](generated/gallery/index.rst)"
    assert source == [f"[a]({pages.SOURCE}/examples/a.py), [b](contributing.md#rooms), {own}"]
    source = ["[a](../theory.md), [b](../../examples/b.py)"]
    pages.link_to_source(None, "notes/page", source)
    assert source == [f"[a](../theory.md), [b]({pages.SOURCE}/examples/b.py)"]


def test_every_figure_is_there_for_a_dark_page_too():
    images = {path.stem for path in (ROOT / "docs" / "images").glob("*.svg")}
    light = {name for name in images if not name.endswith("-dark")}
    assert light
    assert images == light | {f"{name}-dark" for name in light}
    shown = " ".join(path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
    assert [name for name in light if f"images/{name}.svg" not in shown] == []


def test_pages_of_former_names_are_removed(pages, tmp_path):
    (tmp_path / "api").mkdir()
    kept, former = tmp_path / "api" / "decidewise.measure.project.rst", tmp_path / "api" / "decidewise.measure.gone.rst"
    for path in (kept, former):
        path.touch()
    pages.remove_pages_of_former_names(tmp_path)
    assert kept.exists()
    assert not former.exists()


def test_the_site_builds_without_a_warning(tmp_path):
    """All pages are read and all references resolved; `make docs` also runs the gallery and writes the pages."""
    pytest.importorskip("sphinx_gallery")
    for needed in ("furo", "latex2mathml", "myst_parser", "numpydoc", "sphinx_copybutton", "sphinx_design"):
        pytest.importorskip(needed)
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "-q", "-b", "dummy", "docs"]
    built = subprocess.run(
        [*command, str(tmp_path)], cwd=ROOT, env={**os.environ, "SITE_WITHOUT_FIGURES": "1"}, check=False,
        capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr


@pytest.mark.parametrize("script", GALLERY, ids=lambda script: script.stem)
def test_a_script_of_the_gallery_has_a_title_and_a_figure(script):
    text = script.read_text(encoding="utf-8")
    title, line = (ast.get_docstring(ast.parse(text)) or "\n").splitlines()[:2]
    assert line == "=" * len(title)
    assert "plt.show()" in text


@pytest.mark.filterwarnings("ignore:Sending large graph")  # of the cluster; in practice it reads files
@pytest.mark.parametrize("script", GALLERY, ids=lambda script: script.stem)
def test_a_script_of_the_gallery_runs(script, capsys, tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    shown = []
    monkeypatch.setattr(pyplot, "show", lambda: shown.append(pyplot.gcf().canvas.draw()))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    try:
        runpy.run_path(str(script))
    except ModuleNotFoundError as missing:
        if missing.name not in EXTRAS:
            raise
        pytest.skip(f"needs {missing.name}")
    finally:
        pyplot.close("all")
    assert shown
    assert capsys.readouterr().out
