"""Regrets with their intervals: of one model, and of several on the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import floor, log10
from typing import Any

import numpy as np

from decidewise.evaluate.hindsight import Hindsight, scale_of
from decidewise.evaluate.intervals import Blocks, Bootstrap, Interval
from decidewise.evaluate.plot import plot_comparison
from decidewise.kit.checks import FloatArray
from decidewise.kit.interrupts import attempt, reason_of
from decidewise.kit.notebook import ShownText, html_table
from decidewise.problems.contract import Problem

#: From fewer blocks than this, intervals may hold less often than they say: see `docs/intervals.md`.
FEW_BLOCKS = 8


def regret_interval(
    problem: Problem,
    prediction: Any,
    costs: Any,
    *,
    level: float = 0.95,
    n_resamples: int = 2000,
    rng: np.random.Generator | None = None,
    unambiguous: bool = False,
    blocks: Blocks = None,
) -> Interval:
    """Return the normalised regret with a bootstrap interval over the rows.

    The interval is symmetric and studentised; `docs/intervals.md` shows how often it contains the true value.

    Parameters
    ----------
    problem, prediction, costs, unambiguous
        As for `decision_regret`.
    level : float
        The probability, between 0 and 1, with which the interval should contain the true value.
    n_resamples : int
        Number of bootstrap resamples.
    rng : numpy.random.Generator, optional
        The source of the resamples; by default `default_rng(0)`, so that the same rows give the same interval.
    blocks : None, "auto" or int
        None if the rows are independent. If they are in order of time, neighbours are alike, and the interval for
        independent rows is too narrow: pass "auto", or the number of consecutive rows to draw together.

    Notes
    -----
    If all regrets are equal in proportion to the optimal values, such as all zero, the interval has no width: rows that
    never differ say nothing about those that would.

    More than 65,536 rows are first added up in 65,536 random groups, and the bootstrap draws groups, not rows. The
    sums of regrets and optimal values do not change, so neither does the estimate. Its squared standard error is a
    multiple of `Σ u²` with `u = regret - ratio · |c·w(c)|`, and grouping adds the products of rows in the same group.
    On average they are zero, and their standard deviation is at most a fraction of `sqrt(2 / 65,536)`, 0.6 %, of the
    sum, whatever the distribution. The noise of 2,000 resamples is five times as large. With `blocks`, consecutive
    blocks take the place of rows.

    Examples
    --------
    >>> from decidewise.data import make_shortest_path
    >>> data = make_shortest_path(400, degree=4, seed=0)
    >>> print(regret_interval(data.problem, data.mean_costs, data.costs))  # of the true expected costs: the floor
    5.65 [4.81, 6.48]
    """
    options = Bootstrap.of(level, n_resamples, rng, blocks)
    truth = Hindsight.of(problem, costs)
    regret = truth.regret(prediction, unambiguous=unambiguous)
    return _compare_rows(truth, {"": regret}, "", options)[0].regret


@dataclass(frozen=True)
class ComparisonRow:
    """The regret of a model, and its difference from the baseline (None for the baseline itself).

    Attributes
    ----------
    name : str
    regret, difference : Interval
        In percent of the optimal value.
    mean_regret, mean_difference : Interval
        In the units of the costs: the mean per row.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> costs = np.array([[1.0, 2.0, 3.0], [5.0, 1.0, 4.0]])
    >>> mean, perfect = compare(TopK(3, 1, sense="min"), {"mean": costs[::-1], "perfect": costs}, costs)
    >>> mean.difference, perfect.difference.estimate, perfect.mean_difference.estimate
    (None, -250.0, -2.5)
    """

    name: str
    regret: Interval
    difference: Interval | None
    mean_regret: Interval
    mean_difference: Interval | None


@dataclass(frozen=True)
class Comparison(Sequence[ComparisonRow]):
    """The result of `compare`: one row per model, in the order given; `print` and notebooks show a table.

    Attributes
    ----------
    rows : tuple of ComparisonRow
    baseline : str
        The name of the model that the others are compared with.
    level : float
    n_samples : int
        The number of rows of costs.
    block_length : int
        The number of consecutive rows that the bootstrap drew together: 1 for independent rows.
    method : str
        How intervals were found: "bootstrap", or "normal" from sums over rows that were never in memory together.
    failures : dict of str to str
        The models whose predictions could not be decided, with the reasons.
    regrets : dict of str to ndarray of shape (n_samples,), or None
        The regret of each row by the names of the models, if all rows were in memory.
    in_order : bool
        Whether the rows are in the order of time, so that `plot` shows the regret over time, too.
    unproven : str
        A sentence if the best decisions of some rows are not proven to be the best.
    """

    rows: tuple[ComparisonRow, ...]
    baseline: str
    level: float
    n_samples: int
    block_length: int = 1
    method: str = "bootstrap"
    failures: dict[str, str] = field(default_factory=dict)
    regrets: dict[str, FloatArray] | None = field(default=None, repr=False, compare=False)
    in_order: bool = False
    unproven: str = ""

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __str__(self) -> str:
        return self._table("regret %", [(str(row.regret), str(row.difference or "")) for row in self])

    __repr__ = __str__

    def in_units(self, heading: str = "regret per row") -> str:
        """Return the table with regrets in the units of the costs, the mean per row; the heading may name the unit."""
        found = [interval for row in self for interval in (row.mean_regret, row.mean_difference) if interval]
        largest = max(abs(value) for interval in found for value in interval)
        decimals = max(0, 3 - floor(log10(largest))) if largest > 0 else 0  # four digits of the largest number

        def shown(interval: Interval | None) -> str:
            if interval is None:
                return ""
            estimate, low, high = (f"{value:z,.{decimals}f}" for value in interval)
            return f"{estimate} [{low}, {high}]"

        return ShownText(self._table(heading, [(shown(row.mean_regret), shown(row.mean_difference)) for row in self]))

    def _repr_html_(self) -> str:
        rows = [(str(row.name), str(row.regret), str(row.difference or "")) for row in self]
        failed = [f"{name} failed: {reason}" for name, reason in self.failures.items()]
        return html_table(("model", "regret %", f"minus {self.baseline}"), rows, below=[*failed, self._footnote])

    def to_frame(self) -> Any:
        """Return a pandas frame with a row per model: estimates and the ends of their intervals.

        The columns are `regret`, in percent of the optimal value, `difference`, from the baseline, and both in units of
        the costs, `mean_regret` and `mean_difference`, each also as `..._low` and `..._high`.
        """
        import pandas as pd  # noqa: PLC0415  (the frame that is asked for)

        parts = ("regret", "difference", "mean_regret", "mean_difference")
        lines = {row.name: {part: getattr(row, part) or (np.nan,) * 3 for part in parts} for row in self}
        ends = ("", "_low", "_high")
        return pd.DataFrame.from_dict(
            {
                name: {f"{part}{end}": value for part in parts for end, value in zip(ends, line[part], strict=True)}
                for name, line in lines.items()
            },
            orient="index",
        ).rename_axis("model")

    def plot(self, ax: Any = None) -> Any:
        """Draw the regret of each model with its interval; beside it the regret over time, if rows are in that order.

        Parameters
        ----------
        ax : matplotlib axes, optional
            For the intervals alone. By default a new figure is made.

        Returns
        -------
        matplotlib axes of the intervals; `ax.figure` is the figure.
        """
        return plot_comparison(self, ax)

    @property
    def _footnote(self) -> str:
        blocks = f" in blocks of {self.block_length}" if self.block_length > 1 else ""
        footnote = f"{100 * self.level:g} % {self.method} intervals over {self.n_samples:,} rows{blocks}."
        return " ".join(filter(None, [footnote, self.caution, self.unproven]))

    def _table(self, heading: str, values: list[tuple[str, str]]) -> str:
        cells = [("model", heading, f"minus {self.baseline}" if len(self) > 1 else "")]
        cells += [(str(row.name), *pair) for row, pair in zip(self, values, strict=True)]
        failures = {str(name): reason for name, reason in self.failures.items()}
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        widths[0] = max([widths[0], *map(len, failures)])
        lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in cells]
        lines += [f"{name.ljust(widths[0])}  failed: {reason}" for name, reason in failures.items()]
        return "\n".join([*lines, self._footnote])

    @property
    def caution(self) -> str:
        """A sentence if rows in an order may be too few for intervals that hold as often as they say; otherwise ""."""
        n_blocks = self.n_samples // self.block_length
        if self.block_length == 1 or n_blocks >= FEW_BLOCKS:
            return ""
        return f"With only {n_blocks} blocks, these intervals are too narrow if rows are correlated over a long time."


def compare(
    problem: Problem,
    predictions: Mapping[str, Any],
    costs: Any,
    *,
    baseline: str | None = None,
    level: float = 0.95,
    n_resamples: int = 2000,
    rng: np.random.Generator | None = None,
    unambiguous: bool = False,
    blocks: Blocks = None,
) -> Comparison:
    """Compare models by their normalised regret on the same rows.

    The intervals of the differences are paired: all models are scored on the same resamples, so that the effect of rows
    that are hard for every model cancels. They are usually far narrower than the overlap of two intervals suggests.

    Parameters
    ----------
    predictions : mapping of str to array-like of shape (n, d)
        The prediction of each model, or scenarios of it, (n, samples, d): samples or quantiles of equal weight, whose
        mean cost decides. One that the problem cannot decide is in `Comparison.failures` with the reason.
    baseline : str, optional
        The model that the others are compared with; by default, or if it fails, the first.
    problem, costs, level, n_resamples, rng, unambiguous, blocks
        As for `regret_interval`. With `blocks="auto"` all intervals use the longest blocks that one of them needs.

    Examples
    --------
    >>> from decidewise import GeneralizedLinear, WiseRegressor
    >>> from decidewise.data import make_shortest_path
    >>> train, test = make_shortest_path(800, degree=6, seed=0).split(400)
    >>> models = {"least squares": GeneralizedLinear(), "wise": WiseRegressor()}
    >>> predictions = {name: model.fit(train.X, train.costs).predict(test.X) for name, model in models.items()}
    >>> print(compare(test.problem, predictions, test.costs))
    model          regret %              minus least squares
    least squares  13.49 [11.17, 15.81]
    wise           7.45 [5.63, 9.28]     -6.04 [-8.21, -3.86]
    95 % bootstrap intervals over 400 rows.
    """
    if not isinstance(predictions, Mapping):
        raise TypeError(
            'predictions must map the name of each model to its prediction, as in {"wise": prediction}; got '
            f"{type(predictions).__name__}."
        )
    if not predictions:
        raise ValueError("predictions is empty; pass a dict with the prediction of at least one model.")
    if baseline is not None and baseline not in predictions:
        raise ValueError(f"baseline must be one of {list(predictions)}; got {baseline!r}.")
    options = Bootstrap.of(level, n_resamples, rng, blocks)
    truth = Hindsight.of(problem, costs)
    regrets, failures = dict[str, FloatArray](), dict[str, str]()
    for name, prediction in predictions.items():
        checked = truth.check(prediction, name=f"predictions[{name!r}]")
        found = attempt(partial(truth.regret, checked, unambiguous=unambiguous))
        if isinstance(found, Exception):
            failures[name] = reason_of(found)
        else:
            regrets[name] = found
    if not regrets:
        why = "\n".join(f"- {name!r}: {reason}" for name, reason in failures.items())
        raise ValueError(f"none of the {len(failures)} predictions could be decided.\n{why}")
    baseline = next(iter(regrets)) if baseline not in regrets else baseline
    return replace(_compare_rows(truth, regrets, baseline, options), failures=failures)


def compare_regrets(
    truth: Hindsight,
    regrets: Mapping[str, FloatArray],
    *,
    baseline: str | None = None,
    level: float = 0.95,
    n_resamples: int = 2000,
    rng: np.random.Generator | None = None,
    blocks: Blocks = None,
) -> Comparison:
    """Compare models whose regrets (n,) on the rows of `truth` are already known; see `compare`.

    With `blocks`, the rows of `truth` are in order.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> truth = Hindsight.of(TopK(2, 1, sense="max"), [[1.0, 2.0], [3.0, 1.0], [2.0, 4.0]])
    >>> regrets = {"first": truth.regret_of(np.array([[1.0, 0.0]] * 3)), "best": np.zeros(3)}
    >>> [round(row.regret.estimate, 2) for row in compare_regrets(truth, regrets)]
    [33.33, 0.0]
    """
    options = Bootstrap.of(level, n_resamples, rng, blocks)
    return _compare_rows(truth, regrets, next(iter(regrets)) if baseline is None else baseline, options)


def compare_sums(
    regrets: Mapping[str, FloatArray], best: FloatArray, n_rows: FloatArray, *, rows_each: int, blocks: Blocks = "auto"
) -> Comparison:
    """Compare models by sums over so many consecutive rows each: of regrets, of absolute optimal values, and of rows.

    What `compare_regrets` does, for more rows than are kept one by one; the first model is the baseline.

    >>> regrets = {"first": np.array([3.0, 1.0, 2.0]), "best": np.zeros(3)}
    >>> compare_sums(regrets, np.array([4.0, 4.0, 4.0]), np.array([2.0, 2.0, 1.0]), rows_each=2)[0].regret.estimate
    50.0
    """
    options = Bootstrap.of(0.95, 2000, None, blocks)
    return _compare(best, n_rows, regrets, next(iter(regrets)), options, rows_each)


def _compare_rows(truth: Hindsight, regrets: Mapping[str, FloatArray], baseline: str, options: Bootstrap) -> Comparison:
    found = _compare(np.abs(truth.best), np.ones_like(truth.best), regrets, baseline, options)
    return replace(found, regrets=dict(regrets), in_order=options.blocks is not None, unproven=truth.caution)


def _compare(
    best: FloatArray,
    n_rows: FloatArray,
    regrets: Mapping[str, FloatArray],
    baseline: str,
    options: Bootstrap,
    rows_each: int = 1,
) -> Comparison:
    scale_of(best)  # raises if there is nothing to take a percentage of
    names, k = list(regrets), len(regrets)
    others = [name for name in names if name != baseline]
    columns = [*regrets.values(), *(regrets[name] - regrets[baseline] for name in others)]
    values = np.column_stack(columns)
    length = options.length(values, best, rows_each)
    percent, mean = options.ratios(values, np.column_stack([best, n_rows]), length)
    differences = {name: (percent[k + i].scaled(100), mean[k + i]) for i, name in enumerate(others)}
    rows = tuple(
        ComparisonRow(
            name,
            percent[i].scaled(100),
            differences[name][0] if name in differences else None,
            mean[i],
            differences[name][1] if name in differences else None,
        )
        for i, name in enumerate(names)
    )
    return Comparison(rows, baseline, options.level, int(n_rows.sum()), length * rows_each)
