"""What notebooks show: frames of whatever library the caller uses, small tables of HTML, and axes for figures."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.kit.lazy import require


def is_frame(values: Any) -> bool:
    """Whether this is a frame of pandas or polars, or an Arrow table."""
    return hasattr(values, "columns") and (hasattr(values, "to_numpy") or hasattr(values, "column_names"))


def frame_like(given: Any, values: FloatArray, names: Sequence[str]) -> Any:
    """Return values (n, d) as a frame of the kind of the given one, with its index; as they are if it is no frame.

    >>> import pandas as pd
    >>> frame_like(pd.DataFrame({"x": [1, 2]}, index=["mon", "tue"]), np.eye(2), ["a", "b"])
           a    b
    mon  1.0  0.0
    tue  0.0  1.0
    """
    if not is_frame(given):
        return values
    if hasattr(given, "index"):  # pandas
        return type(given)(values, index=given.index, columns=list(names))
    columns = {name: np.ascontiguousarray(values[:, j]) for j, name in enumerate(names)}
    make = getattr(type(given), "from_pydict", type(given))  # Arrow, or polars
    return make(columns)


class ShownText(str):
    r"""Text of several lines that a notebook shows as it is, without `print`.

    >>> ShownText("model  regret\nwise   1.0")
    model  regret
    wise   1.0
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def html_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    bold: Collection[int] = (),
    below: Iterable[str] = (),
    folded: Sequence[str] = (),
) -> str:
    """Return a table with the first column to the left, and lines of text below it, some of them folded.

    >>> html_table(["model", "regret"], [["a < b", "1.0"]], below=["of 3 rows"]).splitlines()[-1]
    '<p>of 3 rows</p>'
    """
    head = "".join(f'<th style="text-align: {_side(j)}">{escape(text)}</th>' for j, text in enumerate(headings))
    lines = [f"<table><thead><tr>{head}</tr></thead><tbody>"]
    for i, row in enumerate(rows):
        weight = "; font-weight: bold" if i in bold else ""
        cells = (f'<td style="text-align: {_side(j)}{weight}">{escape(text)}</td>' for j, text in enumerate(row))
        lines.append(f"<tr>{''.join(cells)}</tr>")
    lines.append("</tbody></table>")
    lines += [f"<p>{escape(text)}</p>" for text in below]
    if folded:
        items = "".join(f"<li>{escape(text)}</li>" for text in folded)
        lines.append(f"<details><summary>{len(folded)} notes</summary><ul>{items}</ul></details>")
    return "\n".join(lines)


def _side(column: int) -> str:
    return "right" if column else "left"


#: The colours of Okabe and Ito (2008), darkened where they are pale, which colour-blind readers can tell apart.
COLORS = ("#0072b2", "#d55e00", "#00805c", "#b5588f", "#b07a00", "#3a97cf", "#4b5563")


def new_axes(n: int = 1, *, size: tuple[float, float], by: str) -> list[Any]:
    """Return the axes of a new figure, side by side, each of a size in inches; a notebook shows it after the cell.

    `by` says what is drawn, for the message if Matplotlib is missing.
    """
    require("cli", "matplotlib", by=by)
    from matplotlib import pyplot  # noqa: PLC0415  (an extra)

    _, axes = pyplot.subplots(1, n, figsize=(n * size[0], size[1]), layout="constrained", squeeze=False)
    return list(axes[0])


def without_frame(ax: Any) -> Any:
    """Leave out the upper and the right line of axes."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax
