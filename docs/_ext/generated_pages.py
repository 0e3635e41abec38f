"""Write the pages of the site that come from the code: names, losses, problems, commands and errors."""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

#: Where the files of the project are shown.
SOURCE = "https://github.com/decidewise/decidewise/blob/main"
#: The packages whose public names the reference lists, with what a reader finds there.
PACKAGES = {
    "decidewise": "The front door: what most programs need.",
    "decidewise.models": "Estimators, and what the choice among them consists of.",
    "decidewise.problems": "Problems, built in and of your own.",
    "decidewise.losses": "Losses, by name in `registry`.",
    "decidewise.frontends.torch": "Every loss as a torch module.",
    "decidewise.frontends.jax": "Every loss as a jax function.",
    "decidewise.data": "Generators, and tables read into arrays with names.",
    "decidewise.evaluate": "Regrets, their differences and intervals.",
    "decidewise.measure": "The change of measure itself.",
    "decidewise.operate.distributed": "The same fits, decisions and regrets over a Dask cluster.",
    "decidewise_bench.experiments": "Plans, and the rows that they produce.",
    "decidewise.testing": "The contracts, as checks for your own problem, loss or model.",
}


def setup(app: Any) -> dict[str, Any]:
    """Write the pages once the settings are known, before the site looks for its pages."""
    app.connect("source-read", link_to_source)
    app.connect("source-read", show_for_both_themes)
    app.connect("config-inited", _write_pages, priority=1)
    return {"parallel_read_safe": True}


def _write_pages(app: Any, config: Any) -> None:
    from sphinx.ext.autodoc.mock import mock  # noqa: PLC0415

    with mock(config.autodoc_mock_imports):
        write_pages(Path(app.srcdir) / "generated")


def link_to_source(app: Any, page: str, source: list[str]) -> None:
    """Let links to files outside the pages lead to where the project is kept, and links to scripts to their pages."""
    outside = re.escape("../" * (page.count("/") + 1))
    pages = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": "index.md"}
    pages["docs/tutorial_notebook.ipynb"] = "generated/tutorial_notebook.md"

    def replace(match: re.Match[str]) -> str:
        return f"]({pages.get(match[1], f'{SOURCE}/{match[1]}')}{match[2] or ''})"

    source[0] = re.sub(rf"\]\({outside}([^)#]+)(#[^)]*)?\)", replace, source[0])
    source[0] = re.sub(r"\]\(gallery/(\w+)\.py\)", r"](generated/gallery/\1.rst)", source[0])
    source[0] = source[0].replace("](gallery)", "](generated/gallery/index.rst)")


def show_for_both_themes(app: Any, page: str, source: list[str]) -> None:
    """Show `NAME-dark.svg` in place of a figure `NAME.svg` where the page is dark."""

    def replace(match: re.Match[str]) -> str:
        if not (Path(app.srcdir) / f"{match[2]}-dark.svg").exists():
            return match[0]
        return f"![{match[1]}]({match[2]}.svg){{.only-light}}\n![{match[1]}]({match[2]}-dark.svg){{.only-dark}}"

    source[0] = re.sub(r"!\[([^\]]*)\]\((images/\w+)\.svg\)", replace, source[0])


def write_pages(folder: Path) -> None:
    """Write all generated pages into a folder; pages that did not change are left alone."""
    folder.mkdir(exist_ok=True)
    pages = {"losses": losses_page(), "problem_kinds": problems_page(), "command_line": commands_page()}
    pages["errors"] = errors_page()
    for name, text in PACKAGES.items():
        pages[name] = package_page(name, text)
    for name, page in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != page:
            path.write_text(page, encoding="utf-8")
    remove_pages_of_former_names(folder)


def public_names(package: Any) -> list[str]:
    """Return the names that a package offers, without its modules."""
    names = getattr(package, "__all__", None) or [
        key for key, value in vars(package).items() if _is_of(value, package.__name__)
    ]
    return [key for key in names if not key.startswith("_") and not inspect.ismodule(getattr(package, key))]


def shown_elsewhere(package: str) -> dict[str, str]:
    """Return where names of the front door have their page: what a subpackage offers is shown there."""
    if package != "decidewise":
        return {}
    front = importlib.import_module(package)
    others = [importlib.import_module(other) for other in PACKAGES if other.startswith("decidewise.")]
    return {
        key: f"~{other.__name__.removeprefix('decidewise.')}.{key}"
        for other in others
        for key in public_names(front)
        if key in getattr(other, "__all__", []) and getattr(other, key) is getattr(front, key)
    }


def documented(name: str) -> list[str]:
    """Return the classes and functions of a package, in the order of its page."""
    package = importlib.import_module(name)
    return sorted((key for key in public_names(package) if callable(getattr(package, key))), key=str.lower)


def package_page(name: str, text: str) -> str:
    """Return the page of a package: a table of its public names, each with a page of its own."""
    names, elsewhere = documented(name), shown_elsewhere(name)
    lines = [_titled(f"``{name}``"), text, "", f".. currentmodule:: {name}", ""]
    for is_own in (True, False):
        keys = [key for key in names if (key not in elsewhere) == is_own]
        if keys:
            lines += [".. autosummary::", *(["   :toctree: api"] if is_own else []), ""]
            lines += [*(f"   {elsewhere.get(key, key)}" for key in keys), ""]
    return "\n".join(lines)


def remove_pages_of_former_names(folder: Path) -> None:
    """Delete pages that an earlier build made of names that are gone: no page would lead to them."""
    named = {f"{name}.{key}" for name in PACKAGES for key in documented(name) if key not in shown_elsewhere(name)}
    for path in (folder / "api").glob("*.rst"):
        if path.stem not in named:
            path.unlink()


def losses_page() -> str:
    """Return the table of all registered losses."""
    from decidewise.losses import registry  # noqa: PLC0415

    rows = []
    for name, loss in registry.items():
        needs = [text for text, is_needed in _needs(loss) if is_needed] or ["nothing"]
        summary = inspect.cleandoc(loss.__doc__ or "").partition("\n\n")[0]
        link = f":class:`{name} <decidewise.losses.{loss.__name__}>`"
        labels, step = _solves(loss)
        text = "\n\n".join(filter(None, [summary, _reference(loss)]))
        rows.append((link, text, ", ".join(needs), loss.gradient, labels, step))
    headings = ("name", "loss, reference", "needs", "gradient", "solves for labels", "solves per step")
    text = """
    Every loss has one contract, see :class:`decidewise.losses.Loss`, and works in ``DecisionRegressor(problem, name)``,
    in torch and in jax. ``p`` is the prediction, ``c`` the costs, ``w`` the optimal decision of ``c`` and ``z*(p)`` the
    one of ``p``, all of a minimisation. The gradient is exact, a subgradient, or a surrogate that is not the gradient
    of the value. Solves are rows solved for each row of data, counted by ``CountedProblem`` when this page was made,
    with the default settings of the loss on a 3×3 grid; projections take a few solves each, depending on the region.
    """
    return "\n".join([_titled("All losses"), textwrap.dedent(text), _table(headings, rows, (13, 38, 15, 13, 11, 10))])


def problems_page() -> str:
    """Return the table of all kinds of problems, with the time of a solve of each example."""
    from decidewise.problems.readers.kinds import as_toml, built_in  # noqa: PLC0415

    rows, examples = [], []
    for name, kind in built_in().items():
        problem = kind.build(**kind.example)
        costs = np.random.default_rng(0).uniform(1, 2, size=(problem.n_rows or 200, problem.n_costs))
        problem.solve(costs)
        start = process_time()
        problem.solve(costs)
        time = 1e6 * (process_time() - start) / len(costs)
        link = f":class:`{name} <decidewise.problems.{kind.owner.__name__}>`"
        size = f"{problem.n_costs} costs: {time:.1g} µs" if time < 10 else f"{problem.n_costs} costs: {time:.0f} µs"
        rows.append((link, kind.size, kind.sense or "given", kind.polyhedron, size, kind.ties))
        toml = textwrap.indent(as_toml(name, kind.example), "   ")
        examples += [f"``{name}``: {_inline(kind.summary)}", "", ".. code-block:: toml", "", toml]
    headings = ("kind", "costs", "sense", "linear constraints", "a row of the example", "ties")
    text = """
    ``kind`` is what a ``problem.toml`` says; ``decidewise problems KIND`` shows all its keys. "Linear constraints" says
    whether losses that need them, such as CaVE and LAVA, can be used: those of the region itself, those of its linear
    relaxation, or none. The time is that of one row of the small example below, in a batch of 200, on the machine that
    built this site; ``make speed`` times real sizes. "Ties" says which of several optimal decisions is returned.
    """
    lines = [_titled("All problems"), textwrap.dedent(text), _table(headings, rows, (20, 14, 9, 14, 14, 29))]
    return "\n".join([*lines, _titled("Examples", "-"), *examples])


def commands_page() -> str:
    """Return the help of every command."""
    import typer  # noqa: PLC0415

    from decidewise.app.cli.app import app  # noqa: PLC0415

    lines = [_titled("The command line"), "``decidewise --help`` and ``decidewise COMMAND --help`` say the same.", ""]
    for name, command in _commands(typer.main.get_command(app), "decidewise"):
        lines += [_titled(f"``{name}``", "-"), *_help(command.help or ""), ""]
        rows = []
        for option in command.params:
            if getattr(option, "hidden", False) or option.name == "help":
                continue
            flags = ", ".join(option.opts) if option.param_type_name == "option" else str(option.name).upper()
            rows.append((f"``{flags}``", getattr(option, "help", "") or ""))
        if rows:
            lines += [_table(("option", "what it does"), rows), ""]
    return "\n".join(lines)


def errors_page() -> str:
    """Return the errors and warnings of the library, with what to do."""
    import decidewise.kit.errors  # noqa: PLC0415

    text = """
    Bad arguments are a ``ValueError`` or a ``TypeError`` whose message says what was expected, what came, and what to
    do. In a shell the message is one line on standard error and the exit code is 2; ``--debug`` shows the traceback.
    Other outcomes have classes of their own, importable from ``decidewise``:
    """
    rows = []
    for name, found in vars(decidewise.kit.errors).items():
        if inspect.isclass(found) and found.__module__ == "decidewise.kit.errors" and not name.startswith("_"):
            what, _, rest = inspect.cleandoc(found.__doc__ or "").partition("\n\n")
            rows.append((f"``{name}``", what, rest.partition("\n\n")[0]))
    table = _table(("class", "what happened", "what to do"), rows)
    return "\n".join([_titled("Errors and warnings"), textwrap.dedent(text), table])


def _commands(command: Any, name: str) -> Iterable[tuple[str, Any]]:
    for key, inner in sorted(getattr(command, "commands", {}).items()):
        if getattr(inner, "hidden", False):
            continue
        if hasattr(inner, "commands"):
            yield from _commands(inner, f"{name} {key}")
        else:
            yield f"{name} {key}", inner


def _help(text: str) -> list[str]:
    """Return the help of a command, with examples as they are typed."""
    lines = []
    for part in inspect.cleandoc(text.replace("\b", "")).split("\n\n"):
        typed = [line.strip().startswith(("decidewise", "$", "#")) for line in part.splitlines()]
        if typed and all(typed):
            lines += ["::", "", textwrap.indent(textwrap.dedent(part), "   "), ""]
        else:
            lines += [_inline(part), ""]
    return lines


def _needs(loss: Any) -> list[tuple[str, bool]]:
    """Return what a loss may need, and whether it does: what it declares, and which problems it refuses."""
    from decidewise.problems import LinearProgram, ShortestPath  # noqa: PLC0415

    signed = LinearProgram([[1.0, 1.0]], [1.0], lower=-1.0, upper=1.0)
    is_for_flat = _accepts(loss, ShortestPath(3, 3))
    return [
        ("linear constraints", bool(loss.requires & {"polyhedron", "relaxation"})),
        ("flat faces", "polytope" in loss.requires),
        ("a curved region", "derivative" in loss.requires),
        ("decisions of zeros and ones", is_for_flat and not _accepts(loss, signed)),
        ("features", "features" in loss.requires),
        ("a region that all rows share", "common region" in loss.requires),
        ("no known costs", loss.directions),
        ("random numbers", loss.random),
    ]


def _accepts(loss: Any, problem: Any) -> bool:
    try:
        loss().check(problem)
    except ValueError:
        return False
    return True


def _solves(loss: Any) -> tuple[str, str]:
    """Count the rows that a loss solves for each row of data: for its labels, and in a step."""
    from decidewise.problems import Ball, CountedProblem, ShortestPath, TopK  # noqa: PLC0415

    problems = (ShortestPath(3, 3), TopK(12, 3), Ball(12))
    problem = CountedProblem(next(one for one in problems if _accepts(loss, one)))
    rng = np.random.default_rng(0)
    costs, X = rng.uniform(1, 2, size=(20, problem.n_costs)), rng.normal(size=(20, 3))
    target = loss().prepare(problem, costs, X=X, rng=rng)
    for_labels, problem.n_solves = problem.n_solves, 0
    loss().value_and_grad(costs + rng.normal(0, 0.3, size=costs.shape), target, rng)
    labels, step = (f"{solves / len(costs):.2g}" if solves else "none" for solves in (for_labels, problem.n_solves))
    again = loss().refresh_every
    return f"{labels}, again every {again} epochs" if again else labels, step


def _reference(loss: Any) -> str:
    """Return the publication that the docstring of a loss's module names: the second paragraph, or a part of it."""
    _, _, rest = inspect.cleandoc(importlib.import_module(loss.__module__).__doc__ or "").partition("\n\n")
    paragraph = " ".join(rest.partition("\n\n")[0].split())
    if quoted := re.search(r'\(([^()]+"[^"]+"[^()]*\b\d{4})\)', paragraph):
        return quoted[1]
    return paragraph if re.search(r"\b(19|20)\d\d\b", paragraph) else ""


def _is_of(value: Any, name: str) -> bool:
    return getattr(value, "__module__", "").startswith(name) and (inspect.isclass(value) or inspect.isfunction(value))


def _titled(title: str, mark: str = "=") -> str:
    return f"{title}\n{mark * len(title)}\n"


def _inline(text: str) -> str:
    """Return text of a docstring as reStructuredText: single backticks are code, and nothing else is markup."""
    parts = re.split(r"(``[^`]+``|`[^`]+`)", " ".join(text.split()))
    return "".join(
        f"``{part.strip('`')}``" if part.startswith("`") else re.sub(r"([*_|\\])", r"\\\1", part) for part in parts
    )


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int] = ()) -> str:
    """Return a table of reStructuredText; one with widths keeps them, and is scrolled where there is no room."""
    lines = [".. list-table::", "   :header-rows: 1"]
    if widths:
        lines += [f"   :widths: {' '.join(map(str, widths))}", "   :class: wide"]
    lines.append("")
    for row in (headings, *rows):
        for k, cell in enumerate(row):
            text = cell if cell.startswith((":class:", "``")) else "\n\n       ".join(map(_inline, cell.split("\n\n")))
            lines.append(f"   {'*' if k == 0 else ' '} - {text}")
    return "\n".join([*lines, ""])
