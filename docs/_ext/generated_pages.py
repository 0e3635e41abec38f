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
    "decidewise.data": "Generators, and tables read into arrays with names.",
    "decidewise.evaluate": "Regrets, their differences and intervals.",
    "decidewise.measure": "The change of measure itself.",
    "decidewise.distributed": "The same fits, decisions and regrets over a Dask cluster.",
    "decidewise.experiments": "Plans, and the rows that they produce.",
    "decidewise.testing": "The contracts, as checks for your own problem, loss or model.",
}


def setup(app: Any) -> dict[str, Any]:
    """Write the pages once the settings are known, before the site looks for its pages."""
    app.connect("source-read", link_to_source)
    app.connect("source-read", show_for_both_themes)
    app.connect("config-inited", lambda app, config: write_pages(Path(app.srcdir) / "generated"), priority=1)
    return {"parallel_read_safe": True}


def link_to_source(app: Any, page: str, source: list[str]) -> None:
    """Let links to files outside the pages lead to where the project is kept, and links to scripts to their pages."""
    pages = {"../CONTRIBUTING.md": "contributing.md", "../CHANGELOG.md": "changelog.md", "../README.md": "index.md"}

    def replace(match: re.Match[str]) -> str:
        path = match[1].removeprefix("../")
        return f"]({pages.get(match[1], f'{SOURCE}/{path}')})"

    source[0] = re.sub(r"\]\((\.\./[^)]+)\)", replace, source[0])
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


def package_page(name: str, text: str) -> str:
    """Return the page of a package: a table of its public names, each with a page of its own."""
    package = importlib.import_module(name)
    names = getattr(package, "__all__", None) or [
        key for key, value in vars(package).items() if not key.startswith("_") and _is_of(value, name)
    ]
    here = [key for key in names if not key.startswith("_") and not inspect.ismodule(getattr(package, key))]
    elsewhere = {}
    if name == "decidewise":  # what a subpackage has is shown there
        for other in list(PACKAGES)[1:]:
            room = other.removeprefix("decidewise.")
            elsewhere |= {key: f"~{room}.{key}" for key in getattr(importlib.import_module(other), "__all__", [])}
    is_data = {key for key in here if not (inspect.isclass(found := getattr(package, key)) or callable(found))}
    listed = sorted((key for key in here if key not in is_data), key=str.lower)
    lines = [_titled(f"``{name}``"), text, "", f".. currentmodule:: {name}", ""]
    for more, keys in (
        (False, [k for k in listed if k not in elsewhere]),
        (True, [k for k in listed if k in elsewhere]),
    ):
        if keys:
            lines += [".. autosummary::", *([] if more else ["   :toctree: api"]), ""]
            lines += [*(f"   {elsewhere.get(key, key)}" for key in keys), ""]
    return "\n".join(lines)


def losses_page() -> str:
    """Return the table of all registered losses."""
    from decidewise.losses import registry  # noqa: PLC0415

    rows = []
    for name, loss in registry.items():
        module = inspect.cleandoc(importlib.import_module(loss.__module__).__doc__ or "")
        reference = " ".join(module.split("\n\n")[1].split()) if "\n\n" in module else ""
        needs = [text for text, is_needed in _needs(loss) if is_needed] or ["nothing"]
        summary = inspect.cleandoc(loss.__doc__ or "").partition("\n\n")[0]
        link = f":class:`{name} <decidewise.losses.{loss.__name__}>`"
        rows.append((link, summary, ", ".join(needs), loss.gradient, _calls(loss), reference))
    headings = ("name", "loss", "needs", "gradient", "solves per step", "reference")
    text = """
    Every loss has one contract, see ``decidewise.losses.Loss``, and works in ``DecisionRegressor(problem, name)``, in
    torch and in jax. The gradient is exact, a subgradient, or a surrogate that is not the gradient of the value. A loss
    that solves nothing per step may have solved labels before.
    """
    return "\n".join([_titled("All losses"), textwrap.dedent(text), _table(headings, rows)])


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
        link = f":class:`~decidewise.problems.{kind.owner.__name__}`"
        size = f"{problem.n_costs} costs: {time:.1g} µs" if time < 10 else f"{problem.n_costs} costs: {time:.0f} µs"
        rows.append((f"``{name}``", link, kind.size, kind.sense or "given", kind.polyhedron, size, kind.ties))
        toml = textwrap.indent(as_toml(name, kind.example), "   ")
        examples += [f"``{name}``: {_inline(kind.summary)}", "", ".. code-block:: toml", "", toml]
    headings = ("kind", "class", "costs", "sense", "polyhedron", "a row of the example", "ties")
    text = """
    ``kind`` is what a ``problem.toml`` says; ``decidewise problems KIND`` shows all its keys. The time is that of one
    row of the small example below, in a batch of 200, on the machine that built this site; ``make speed`` times real
    sizes.
    """
    lines = [_titled("All problems"), textwrap.dedent(text), _table(headings, rows)]
    return "\n".join([*lines, _titled("Examples", "-"), *examples])


def commands_page() -> str:
    """Return the help of every command."""
    import typer  # noqa: PLC0415

    from decidewise.cli import app  # noqa: PLC0415

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
    """Return the list of errors and warnings."""
    import decidewise.errors  # noqa: PLC0415

    lines = [_titled("Errors and warnings"), "Bad arguments are a ``ValueError`` or a ``TypeError`` whose message says"]
    lines += ["what was expected, what came, and what to do. Other outcomes have classes of their own:", ""]
    for name, found in vars(decidewise.errors).items():
        if inspect.isclass(found) and found.__module__ == "decidewise.errors" and not name.startswith("_"):
            lines += [
                f"``{name}``",
                f"   {_inline(inspect.cleandoc(found.__doc__ or '').partition(chr(10) * 2)[0])}",
                "",
            ]
    return "\n".join(lines)


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
    return [
        ("linear constraints", loss.needs_polyhedron),
        ("flat faces", loss.needs_polytope),
        ("features", loss.needs_features),
        ("a region that all rows share", loss.compares_rows),
        ("random numbers", loss.random),
    ]


def _calls(loss: Any) -> str:
    return "yes" if loss.solves else "none"


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


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in (headings, *rows):
        for k, cell in enumerate(row):
            text = cell if cell.startswith((":class:", "``")) else _inline(cell)
            lines.append(f"   {'*' if k == 0 else ' '} - {text}")
    return "\n".join([*lines, ""])
