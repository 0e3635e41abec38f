"""Run a notebook without Jupyter, and store what its cells show.

python docs/notebook.py docs/tutorial_notebook.ipynb
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib as mpl

from decidewise.app.tables.example import write_example


def outputs(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Return what each cell of code shows, in the folder beside the example that `decidewise init example` writes."""
    mpl.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415  (after the choice of what draws)

    namespace: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_example(Path("example"))
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                continue
            printed, last = run("".join(cell["source"]), namespace)
            found: list[dict[str, Any]] = []
            if printed:
                found.append({"output_type": "stream", "name": "stdout", "text": printed.splitlines(keepends=True)})
            figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
            if last is not None and not figures:
                data = {"text/plain": repr(last).splitlines(keepends=True)}
                if hasattr(last, "_repr_html_"):
                    data["text/html"] = last._repr_html_().splitlines(keepends=True)
                found.append({"output_type": "execute_result", "execution_count": None, "data": data, "metadata": {}})
            for figure in figures:
                picture = io.BytesIO()
                figure.savefig(picture, format="png", dpi=80)
                png = base64.b64encode(picture.getvalue()).decode()
                found.append({"output_type": "display_data", "data": {"image/png": png}, "metadata": {}})
            pyplot.close("all")
            shown.append(found)
    return shown


def run(code: str, namespace: dict[str, Any]) -> tuple[str, Any]:
    """Return what code prints, and the value of its last line if that is an expression without a semicolon."""
    tree, printed = ast.parse(code), io.StringIO()
    is_shown = isinstance(tree.body[-1], ast.Expr) and not code.rstrip().endswith(";")
    last = ast.Expression(tree.body.pop().value) if is_shown else None  # type: ignore[attr-defined]
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), namespace)  # noqa: S102
        value = None if last is None else eval(compile(last, "cell", "eval"), namespace)
    return printed.getvalue(), value


if __name__ == "__main__":
    path = Path(sys.argv[1])
    content = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    for number, (cell, found) in enumerate(zip(cells, outputs(content), strict=True), start=1):
        cell["execution_count"], cell["outputs"] = number, found
        for output in found:
            if "execution_count" in output:
                output["execution_count"] = number
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
