"""Score predictions by the decisions they lead to.

>>> import numpy as np
>>> from decidewise.problems import TopK
>>> problem = TopK(3, 1, sense="max")
>>> costs = np.array([[1.0, 2.0, 3.0], [5.0, 1.0, 4.0]])
>>> prediction = np.array([[1.0, 3.0, 2.0], [5.0, 1.0, 4.0]])  # the first row picks the second best item
>>> decision_regret(problem, prediction, costs)
array([1., 0.])
>>> normalized_regret(problem, prediction, costs)
12.5
>>> print(compare(problem, {"honest": prediction, "perfect": costs}, costs))
model    regret %             minus honest
honest   12.50 [0.00, 33.33]
perfect  0.00 [0.00, 0.00]    -12.50 [-33.33, 0.00]
95 % bootstrap intervals over 2 rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from decidewise.checks import (
    FloatArray,
    all_finite,
    as_flag,
    as_integer,
    as_matrix,
    as_number,
    as_rng,
    check_same_rows,
)
from decidewise.errors import OptimalityWarning
from decidewise.problems.base import Problem, as_problem
from decidewise.progress import tracked
from decidewise.scaling import unit_largest

#: Decisions whose predicted values are closer than this, relative to the largest entries, count as tied.
TIE_TOLERANCE = 1e-6
#: Regrets further below zero, relative to the values compared, are neither rounding nor the gap of 1e-4 at which
#: solvers of integer programs stop by default.
OPTIMALITY_TOLERANCE = 1e-4
#: Row indices that the bootstrap draws at a time: few enough to be counted in the processor's cache.
BLOCK_SIZE = 2**16
#: Where there are more rows than this, the bootstrap draws as many groups of them.
N_GROUPS = 2**16


def decision_regret(problem: Problem, prediction: Any, costs: Any, *, unambiguous: bool = False) -> FloatArray:
    """Return how much worse than the best each decision is: `c·w(ĉ) - c·w(c)`, and its negative for a maximisation.

    Parameters
    ----------
    problem : Problem
        What the predictions and the costs are solved with.
    prediction, costs : array-like of shape (n, d)
        Predicted and realised costs.
    unambiguous : bool
        Score ties at their worst: among the decisions optimal for the prediction, take the one worst for the costs.
        It is found as the optimum for `ĉ/‖ĉ‖∞ - 1e-6 · c/‖c‖∞`, so that predicted values closer than that count as
        tied; a prediction of zeros ties everything. Never below the plain regret.

    Returns
    -------
    ndarray of shape (n,)
        Not negative, but for rounding, whatever the sense.

    Warns
    -----
    OptimalityWarning
        If a regret is negative by more than 1e-4 of the values compared: then the problem does not return optimal
        decisions. One of your own may maximise by mistake; a cache or a heuristic is right to train with, but judge
        with an exact problem.
    """
    return Hindsight.of(problem, costs).regret(prediction, unambiguous=unambiguous)


def normalized_regret(problem: Problem, prediction: Any, costs: Any, *, unambiguous: bool = False) -> float:
    """Return the regret in percent of the optimal value: `100 · Σ regret / Σ |c·w(c)|`.

    The parameters are those of `decision_regret`.
    """
    return Hindsight.of(problem, costs).normalized_regret(prediction, unambiguous=unambiguous)


class Interval(NamedTuple):
    """An estimate between the ends of its confidence interval."""

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:z.2f} [{self.low:z.2f}, {self.high:z.2f}]"


def regret_interval(
    problem: Problem,
    prediction: Any,
    costs: Any,
    *,
    level: float = 0.95,
    n_resamples: int = 2000,
    rng: np.random.Generator | None = None,
    unambiguous: bool = False,
) -> Interval:
    """Return the normalised regret with a percentile bootstrap interval over the rows.

    Parameters
    ----------
    problem, prediction, costs, unambiguous
        As for `decision_regret`.
    level : float
        The wanted probability of covering the truth, between 0 and 1.
    n_resamples : int
        Number of bootstrap resamples.
    rng : numpy.random.Generator, optional
        Where the resamples come from; by default `default_rng(0)`, so that the same rows give the same interval.

    Notes
    -----
    Where there are more than 65,536 rows, they are first added up in as many groups, chosen at random, and the groups
    are drawn in place of the rows. Regret and optimal value keep their sums, so the resampled ratios have the same
    centre. Their variance is, to first order, that of `Σ u` with `u = regret - ratio · |c·w(c)|`, and grouping changes
    the bootstrap's estimate of it, `Σ u²`, by products of rows that share a group: nothing on average, and in standard
    deviation a fraction of at most `sqrt(2 / 65,536)`, 0.6 %, whatever the distribution. The noise of 2,000 resamples
    is five times that.
    """
    level, n_resamples, rng = _as_options(level, n_resamples, rng)
    truth = Hindsight.of(problem, costs)
    regret = truth.regret(prediction, unambiguous=unambiguous)
    (estimate,), resampled = _bootstrap(truth, [regret], n_resamples, rng)
    return _interval(estimate, resampled[:, 0], level)


@dataclass(frozen=True)
class ComparisonRow:
    """The normalised regret of a model, and what it adds to the baseline's (None for the baseline itself)."""

    name: str
    regret: Interval
    difference: Interval | None


@dataclass(frozen=True)
class Comparison(Sequence[ComparisonRow]):
    """One row per model, in the order given; `print` shows them as a table."""

    rows: tuple[ComparisonRow, ...]
    baseline: str
    level: float
    n_samples: int

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __str__(self) -> str:
        cells = [("model", "regret %", f"minus {self.baseline}")]
        cells += [(str(row.name), str(row.regret), str(row.difference or "")) for row in self]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in cells]
        return "\n".join([*lines, f"{100 * self.level:g} % bootstrap intervals over {self.n_samples:,} rows."])


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
) -> Comparison:
    """Compare models by their normalised regret on the same rows.

    The intervals of the differences are paired: all models see the same resamples, so that what makes a row hard for
    every model cancels. They are usually far narrower than the overlap of two intervals suggests.

    Parameters
    ----------
    predictions : mapping of str to array-like of shape (n, d)
        The prediction of each model.
    baseline : str, optional
        The model that the others are compared with; by default the first.
    problem, costs, level, n_resamples, rng, unambiguous
        As for `regret_interval`.
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
    level, n_resamples, rng = _as_options(level, n_resamples, rng)
    truth = Hindsight.of(problem, costs)
    regrets = {
        name: truth.regret(prediction, name=f"predictions[{name!r}]", unambiguous=unambiguous)
        for name, prediction in predictions.items()
    }
    return compare_regrets(truth, regrets, baseline=baseline, level=level, n_resamples=n_resamples, rng=rng)


def compare_regrets(
    truth: Hindsight,
    regrets: Mapping[str, FloatArray],
    *,
    baseline: str | None = None,
    level: float = 0.95,
    n_resamples: int = 2000,
    rng: np.random.Generator | None = None,
) -> Comparison:
    """Compare models whose regrets (n,) on the rows of the truth are known already; see `compare`."""
    level, n_resamples, rng = _as_options(level, n_resamples, rng)
    names = list(regrets)
    baseline = names[0] if baseline is None else baseline
    estimates, resampled = _bootstrap(truth, list(regrets.values()), n_resamples, rng)
    base = names.index(baseline)
    rows = []
    for i, name in enumerate(names):
        paired = _interval(estimates[i] - estimates[base], resampled[:, i] - resampled[:, base], level)
        rows.append(ComparisonRow(name, _interval(estimates[i], resampled[:, i], level), None if i == base else paired))
    return Comparison(tuple(rows), baseline, level, len(truth.costs))


@dataclass(frozen=True)
class RegretScorer:
    """Minus the normalised regret of what an estimator predicts: a scorer, for which greater is better."""

    problem: Problem

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Score a fitted estimator on features `X` and realised costs `y` of shape (n, d)."""
        return -normalized_regret(self.problem, estimator.predict(X), y)


def regret_scorer(problem: Problem) -> RegretScorer:
    """Return a scorer for `scoring=` in scikit-learn, so that models are chosen by the decisions they lead to.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.model_selection import GridSearchCV
    >>> from decidewise.data import make_shortest_path
    >>> data = make_shortest_path(200, degree=4, seed=0)
    >>> search = GridSearchCV(Ridge(), {"alpha": [0.1, 1e4]}, scoring=regret_scorer(data.problem))
    >>> search.fit(data.X, data.costs).best_params_
    {'alpha': 0.1}
    """
    return RegretScorer(as_problem(problem))


@dataclass(frozen=True)
class Hindsight:
    """Realised costs and the value of the best decisions: solved once, any number of predictions scored."""

    problem: Problem
    costs: FloatArray
    best: FloatArray

    @classmethod
    def of(cls, problem: Problem, costs: Any) -> Hindsight:
        """Solve for the best decisions of realised costs (n, d)."""
        costs = as_matrix(costs, n_columns=as_problem(problem).n_costs, owner=type(problem).__name__)
        return cls(problem, costs, _values(costs, problem.solve(costs)))

    def regret(self, prediction: Any, *, name: str = "prediction", unambiguous: bool = False) -> FloatArray:
        """Return the regret of each row of a prediction (n, d); see `decision_regret`."""
        problem, costs = self.problem, self.costs
        unambiguous = as_flag(unambiguous, name="unambiguous")
        prediction = as_matrix(prediction, name=name, n_columns=problem.n_costs, owner=type(problem).__name__)
        check_same_rows(**{name: prediction, "costs": costs})
        regret = self._excess(problem.solve(prediction))
        if unambiguous:
            # Subtracting the costs makes the worst of the tied decisions the optimum, in either sense.
            adverse = problem.solve(unit_largest(prediction) - TIE_TOLERANCE * unit_largest(costs))
            regret = np.maximum(regret, self._excess(adverse))
        return regret

    def normalized_regret(self, prediction: Any, *, unambiguous: bool = False) -> float:
        """Return the regret of a prediction (n, d) in percent of the optimal value."""
        return float(100 * self.regret(prediction, unambiguous=unambiguous).sum() / self.scale)

    def _excess(self, decisions: FloatArray) -> FloatArray:
        values = _values(self.costs, decisions)
        excess = self.best - values if self.problem.sense == "max" else values - self.best
        self._warn_of_better(decisions, excess)
        return excess

    def _warn_of_better(self, decisions: FloatArray, excess: FloatArray) -> None:
        below = np.flatnonzero(excess < 0)
        sizes = np.maximum(np.abs(self.costs[below] * decisions[below]).sum(axis=1), np.abs(self.best[below]))
        better = below[excess[below] < -OPTIMALITY_TOLERANCE * sizes]
        if len(better):
            # The same words for all predictions that beat the same row, so that Python shows them once.
            wrong = "minimise" if self.problem.sense == "max" else "maximise"
            warnings.warn(
                f"row {better[0]}: the decision for the prediction is better than the optimal one, so "
                f"{type(self.problem).__name__} does not return optimal decisions, and regrets mean little. Does it "
                f"{wrong} where its sense is {self.problem.sense!r}? If it is a cache or a heuristic, judge with an "
                "exact problem.",
                OptimalityWarning,
                stacklevel=4,
            )

    @property
    def scale(self) -> float:
        """The sum of the absolute optimal values, which regrets are a percentage of."""
        with np.errstate(over="ignore"):
            total = float(np.abs(self.best).sum())
        if not isfinite(100 * total):
            raise ValueError("the optimal values add up to more than float64 can hold. Divide all costs by a number.")
        if total == 0:
            raise ValueError(
                "the optimal value of every row is 0, so there is nothing to take a percentage of. "
                "Check that the costs are not all zero, or use decision_regret."
            )
        return total


def _values(costs: FloatArray, decisions: FloatArray) -> FloatArray:
    values = np.einsum("ij,ij->i", costs, decisions)
    if not all_finite(values):
        row = int(np.isfinite(values).argmin())
        raise ValueError(f"row {row}: its costs add up to more than float64 can hold. Divide all costs by a number.")
    return values


def _as_options(
    level: float, n_resamples: int, rng: np.random.Generator | None
) -> tuple[float, int, np.random.Generator]:
    """Check what a bootstrap interval takes, before anything is solved for it."""
    return (
        as_number(level, name="level", above=0, below=1),
        as_integer(n_resamples, name="n_resamples"),
        np.random.default_rng(0) if rng is None else as_rng(rng),
    )


def _bootstrap(
    truth: Hindsight, regrets: list[FloatArray], n_resamples: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return the normalised regret of each of k models on all rows (k,) and on the same resamples (n_resamples, k)."""
    columns = np.column_stack([*regrets, np.abs(truth.best)])
    estimates = 100 * columns[:, :-1].sum(axis=0) / truth.scale
    if len(columns) > N_GROUPS:
        columns = _grouped(columns, rng)
    edges = [*range(0, n_resamples, max(1, BLOCK_SIZE // len(columns))), n_resamples]
    blocks = tracked(list(pairwise(edges)), "Resampling rows")
    sums = np.concatenate([_resampled_sums(columns, stop - start, rng) for start, stop in blocks])
    if not sums[:, -1].all():
        raise ValueError(
            f"too few of the {len(truth.best)} rows have an optimal value other than 0 for a bootstrap interval. Pass "
            "more such rows."
        )
    return estimates, 100 * sums[:, :-1] / sums[:, -1:]


def _grouped(columns: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return column sums over groups of rows, drawn without regard to their order: (n, k) -> (N_GROUPS, k)."""
    group = rng.permutation(len(columns)) % N_GROUPS
    return np.column_stack([np.bincount(group, column, N_GROUPS) for column in columns.T])


def _resampled_sums(columns: FloatArray, n_resamples: int, rng: np.random.Generator) -> FloatArray:
    """Return column sums over rows drawn with replacement: (n, k) -> (n_resamples, k)."""
    n = len(columns)
    drawn = rng.integers(n, size=(n_resamples, n)) + n * np.arange(n_resamples)[:, np.newaxis]
    counts = np.bincount(drawn.ravel(), minlength=n_resamples * n).reshape(n_resamples, n)
    return counts.astype(np.float64) @ columns


def _interval(estimate: float, resampled: FloatArray, level: float) -> Interval:
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(estimate), float(low), float(high))
