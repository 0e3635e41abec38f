"""Which model decides best on a table in memory: what the command `compare` does, for a notebook."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from decidewise.app.tables.columns import Reading, TableOptions
from decidewise.app.tables.comparison import TableComparison, compare_samples
from decidewise.app.tables.fitting import fit_in_memory
from decidewise.app.tables.headline import headline, how_measured, row_in_words, saves_heading
from decidewise.app.tables.health import alarms, health
from decidewise.app.tables.samples import as_gap, columns_of, read_samples
from decidewise.app.tables.table_model import TableModel
from decidewise.kit.errors import InputError
from decidewise.kit.files import write_whole
from decidewise.kit.notebook import html_table
from decidewise.problems import ProblemFile


@dataclass(frozen=True, repr=False)
class ComparedTable:
    """The result of `compare_table`; `print` and notebooks show a table, and below it what to do.

    Attributes
    ----------
    result : TableComparison
        All numbers: regrets, predictions and decisions on the rows held out, and `table`, a `Comparison`.
    options : TableOptions
        Which columns were what.
    gap : str, optional
    settings : dict
        How models are chosen: `one_model`, `train_solves`, `max_solves`, `max_seconds`, `jobs` and `seed`.
    """

    result: TableComparison
    options: TableOptions
    gap: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def headline(self) -> str:
        """Which model to use and what it saves, in a sentence."""
        return headline(self.result)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the table, and which models failed, in sentences."""
        return tuple(_as_arguments(note) for note in self.result.notes)

    def __str__(self) -> str:
        found = self.result
        table = str(found.table).rpartition("\n")[0]  # without how intervals are made, which the sentence below says
        return "\n".join([*self.notes, table, how_measured(found), *alarms(health(found)), self.headline])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        found = self.result
        rows = [row_in_words(found, row) for row in found.table]
        return html_table(
            ("model", "regret %", "95 % interval", saves_heading(found)),
            [[row["name"], row["regret"], row["interval"], row["saved"]] for row in rows],
            bold={place for place, row in enumerate(rows) if row["chosen"]},
            below=[self.headline, *alarms(health(found)), how_measured(found)],
            folded=self.notes,
        )

    def to_frame(self) -> Any:
        """Return a pandas frame with a row per model; see `decidewise.evaluate.Comparison.to_frame`."""
        return self.result.table.to_frame()

    def plot(self, ax: Any = None) -> Any:
        """Draw the regret of each model with its interval, and over time if rows are in that order."""
        return self.result.table.plot(ax)

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Write the page of the command `compare`, one file that a browser shows without a network."""
        from decidewise.app.tables.page import render_comparison  # noqa: PLC0415  (its templates are an extra)

        write_whole({Path(path): render_comparison(self.result).encode()})
        return Path(path)

    def fit(self) -> TableModel:
        """Return the model of the headline, fitted on all rows; it predicts and decides from tables like this one."""
        found = self.result
        return fit_in_memory(found.samples, self.options, gap=self.gap, name=found.chosen, **self.settings).model


def compare_table(
    table: Any,
    problem: Any,
    *,
    test: float = 0.25,
    gap: Any = None,
    one_model: bool = False,
    train_solves: int | Literal["auto"] = 0,
    max_solves: int | None = None,
    max_seconds: float | None = None,
    n_jobs: int | None = None,
    seed: int = 0,
    **columns: Any,
) -> ComparedTable:
    """Choose a model on most rows of a table, and measure on the others what its decisions save.

    Categories, dates and gaps are prepared by `TableFeatures`. Rows with dates are held out from the end, so that
    models are tested on what came later.

    Parameters
    ----------
    table : frame of pandas or polars, Arrow table, dictionary of columns, or path of a file
        One row per sample with a column for each cost, or, if `items` is given, one line per item of a sample.
    problem : Problem, or path of a problem.toml
        The section `[table]` of a file says which columns are what, as far as `columns` does not.
    test : float
        The share of rows to hold out.
    gap : number or str, optional
        Time between training rows and held-out ones, in units of `time`; for dates in days, or such as "36h".
    one_model : bool
        Choose the one model with the lowest held-out regret, to read it; by default the best are averaged.
    train_solves : int or "auto"
        Also train models with the solver (SPO+); see `WiseRegressorCV`.
    max_solves, max_seconds : optional
        Limits on the number of solver calls and, approximately, on the seconds.
    n_jobs : int, optional
    seed : int
    **columns
        Which columns are what, by name or by a pattern such as `"price_*"`: `costs`, `features`, `rows`, `items`,
        `item_order`, `absent_items`, `forecast`, `known`, `time`, `shuffle`, `groups`, `categories`; and `unit`, of
        the costs.

    Returns
    -------
    ComparedTable
        With `headline`, `plot()`, `to_frame()`, `to_html("page.html")` and `fit()`.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from decidewise import compare_table
    >>> from decidewise.problems import TopK
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"day": pd.date_range("2026-01-01", periods=80), "wind": rng.uniform(0, 9, 80)})
    >>> for hour in range(3):
    ...     frame[f"price_{hour}"] = 40 + hour * frame["wind"] - 9 * hour + rng.normal(0, 5, 80)
    >>> cheapest = TopK(3, 1, sense="min")
    >>> found = compare_table(frame, cheapest, costs="price_*", time="day", unit="EUR")
    >>> found.to_frame().index.tolist()
    ['training mean', 'least squares', 'wise', 'choice']
    >>> model = found.fit()
    >>> model.decide({"day": ["2026-04-01"], "wind": [1.0]}, cheapest).decisions
    array([[0., 0., 1.]])
    """
    try:
        return _compared(
            table, problem, columns, test, None if gap is None else str(gap),
            one_model=one_model, train_solves=train_solves, max_solves=max_solves, max_seconds=max_seconds,
            jobs=n_jobs, seed=seed,
        )  # fmt: skip
    except InputError as error:
        raise InputError(_as_arguments(str(error))) from error


def _compared(
    table: Any, problem: Any, columns: dict[str, Any], test: float, gap: str | None, **settings: Any
) -> ComparedTable:
    file = ProblemFile.of(problem)
    options = TableOptions.of(file.table, **columns)
    samples = read_samples(columns_of(table, {}), Reading(options, file))
    as_times = as_gap(gap, samples.times)
    result = compare_samples(samples, test=test, gap=as_times, categories=options.categories, **settings)
    return ComparedTable(result, options, gap, settings)


def _as_arguments(text: str) -> str:
    """Return a message about options of the command as one about arguments of the function.

    >>> _as_arguments("Name the cost columns: --costs 'price_*'? If it is long, name both: --rows and --item-order.")
    "Name the cost columns: costs='price_*'? If it is long, name both: rows= and item_order=."
    >>> _as_arguments("--shuffle tests on random rows.")
    'shuffle=True tests on random rows.'
    """
    text = text.replace("--shuffle", "shuffle=True")
    return re.sub(r"--([a-z]+(?:-[a-z]+)*)( (?='))?", lambda found: found[1].replace("-", "_") + "=", text)
