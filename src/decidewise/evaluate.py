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
from decidewise.problems.base import Problem, as_problem, check_rows
from decidewise.progress import tracked
from decidewise.scaling import unit_largest

#: Decisions count as tied if their predicted values differ by less than this, relative to the largest entries.
TIE_TOLERANCE = 1e-6
#: A regret below minus this, relative to the values compared, comes neither from rounding nor from the gap of 1e-4 at
#: which solvers of integer programs stop by default.
OPTIMALITY_TOLERANCE = 1e-4
#: The number of row indices that the bootstrap draws at a time: few enough to fit in the processor's cache.
BLOCK_SIZE = 2**16
#: If there are more rows than this, the bootstrap draws from this many groups of rows.
N_GROUPS = 2**16


def decision_regret(problem: Problem, prediction: Any, costs: Any, *, unambiguous: bool = False) -> FloatArray:
    """Return the regret of each row: `c·w(ĉ) - c·w(c)` for a minimisation, `c·w(c) - c·w(ĉ)` for a maximisation.

    If the problem has known costs, regret counts the whole objective, with the known part. Predictions must then be in
    the units of the costs.

    Parameters
    ----------
    problem : Problem
        The problem that both the predictions and the costs are solved with. If it differs by row, it has n rows.
    prediction, costs : array-like of shape (n, d)
        Predicted and realised costs.
    unambiguous : bool
        Whether to break ties in the worst way: among the decisions that are optimal for the prediction, take the worst
        for the costs. It is the optimum for `ĉ/‖ĉ‖∞ - 1e-6 · c/‖c‖∞`, so predicted values closer than that count as
        tied, and a prediction of zeros ties all decisions. The result is never below the plain regret.

    Returns
    -------
    ndarray of shape (n,)
        Non-negative up to rounding, for either sense.

    Warns
    -----
    OptimalityWarning
        If a regret is negative by more than 1e-4 of the values compared, which means that the problem does not return
        optimal decisions. A problem of your own may maximise by mistake. Training with a cache or a heuristic is fine,
        but evaluate with an exact problem.
    """
    return Hindsight.of(problem, costs).regret(prediction, unambiguous=unambiguous)


def normalized_regret(problem: Problem, prediction: Any, costs: Any, *, unambiguous: bool = False) -> float:
    """Return the regret in percent of the optimal value: `100 · Σ regret / Σ |c·w(c)|`.

    The parameters are those of `decision_regret`.
    """
    return Hindsight.of(problem, costs).normalized_regret(prediction, unambiguous=unambiguous)


class Interval(NamedTuple):
    """An estimate and the ends of its confidence interval."""

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
        The probability, between 0 and 1, with which the interval should contain the true value.
    n_resamples : int
        Number of bootstrap resamples.
    rng : numpy.random.Generator, optional
        The source of the resamples; by default `default_rng(0)`, so that the same rows give the same interval.

    Notes
    -----
    More than 65,536 rows are first added up in 65,536 random groups, and the bootstrap draws groups, not rows. The
    sums of regrets and optimal values do not change, so the resampled ratios have the same centre. To first order their
    variance is that of `Σ u` with `u = regret - ratio · |c·w(c)|`. The bootstrap estimates it by `Σ u²`, and grouping
    adds the products of rows in the same group to this estimate. On average they are zero, and their standard deviation
    is at most a fraction of `sqrt(2 / 65,536)`, 0.6 %, of it, whatever the distribution. The noise of 2,000 resamples
    is five times as large.
    """
    level, n_resamples, rng = _as_options(level, n_resamples, rng)
    truth = Hindsight.of(problem, costs)
    regret = truth.regret(prediction, unambiguous=unambiguous)
    (estimate,), resampled = _bootstrap(truth, [regret], n_resamples, rng)
    return _interval(estimate, resampled[:, 0], level)


@dataclass(frozen=True)
class ComparisonRow:
    """The normalised regret of a model, and its difference from the baseline (None for the baseline itself)."""

    name: str
    regret: Interval
    difference: Interval | None


@dataclass(frozen=True)
class Comparison(Sequence[ComparisonRow]):
    """The result of `compare`: one row per model, in the order given; `print` shows a table."""

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

    The intervals of the differences are paired: all models are scored on the same resamples, so that the effect of rows
    that are hard for every model cancels. They are usually far narrower than the overlap of two intervals suggests.

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
    """Compare models whose regrets (n,) on the rows of `truth` are already known; see `compare`."""
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
    """A scorer for scikit-learn: minus the normalised regret of an estimator, so that greater is better."""

    problem: Problem

    def __call__(self, estimator: Any, X: Any, y: Any, *, rows: Any = None) -> float:
        """Score a fitted estimator on features `X` and realised costs `y` of shape (n, d).

        If the problem differs by row, `rows` are the rows of the problem that `X` and `y` belong to; by default all.
        A search of scikit-learn does not pass them: there, use `WiseRegressorCV`.
        """
        check_in_units(estimator, self.problem)
        problem = self.problem if rows is None else self.problem.take(rows)
        return -normalized_regret(problem, estimator.predict(X), y)


def check_in_units(model: Any, problem: Problem) -> None:
    """Raise if the problem has known costs and the model says, by `predicts_directions`, that it predicts directions.

    The last step of a pipeline and the best model of a search are asked too.
    """
    if not problem.has_known:
        return
    while not hasattr(model, "predicts_directions"):
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps"):
            model = model.steps[-1][1]
        else:
            return
    if model.predicts_directions:
        raise ValueError(
            f"{model!r} predicts directions, which cannot be added to the known costs of {type(problem).__name__}. "
            "Use a model that estimates the costs themselves, such as WiseRegressor(lifted=True) or "
            "WiseRegressorCV(problem)."
        )


def regret_scorer(problem: Problem) -> RegretScorer:
    """Return a scorer for `scoring=` in scikit-learn, which selects models by their decisions.

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
    """Realised costs and the values of their optimal decisions, solved once to score any number of predictions.

    Attributes
    ----------
    problem : Problem
    costs : ndarray of shape (n, d)
        If the problem has known costs, the costs of its lifted view.
    best : ndarray of shape (n,)
        The optimal values.
    """

    problem: Problem
    costs: FloatArray
    best: FloatArray

    @classmethod
    def of(cls, problem: Problem, costs: Any) -> Hindsight:
        """Solve for the optimal decisions of realised costs (n, d)."""
        costs = as_matrix(costs, n_columns=as_problem(problem).n_costs, owner=type(problem).__name__)
        check_rows(problem, len(costs))
        lifted = problem.lifted
        costs = lifted.lift(costs)
        return cls(problem, costs, _values(costs, lifted.solve(costs)))

    def take(self, rows: Any) -> Hindsight:
        """Return the hindsight of the given rows, a slice or an array of row numbers, which may repeat."""
        return Hindsight(self.problem.take(rows), self.costs[rows], self.best[rows])

    def regret(self, prediction: Any, *, name: str = "prediction", unambiguous: bool = False) -> FloatArray:
        """Return the regret of each row of a prediction (n, d); see `decision_regret`."""
        problem, lifted, costs = self.problem, self.problem.lifted, self.costs
        unambiguous = as_flag(unambiguous, name="unambiguous")
        prediction = as_matrix(prediction, name=name, n_columns=problem.n_costs, owner=type(problem).__name__)
        check_same_rows(**{name: prediction, "costs": costs})
        prediction = lifted.lift(prediction)
        regret = self._excess(lifted.solve(prediction))
        if unambiguous:
            # After subtracting the costs, the worst of the tied decisions is the optimum, for either sense.
            adverse = lifted.solve(unit_largest(prediction) - TIE_TOLERANCE * unit_largest(costs))
            regret = np.maximum(regret, self._excess(adverse))
        return regret

    def normalized_regret(self, prediction: Any, *, unambiguous: bool = False) -> float:
        """Return the regret of a prediction (n, d) in percent of the optimal value."""
        return float(100 * self.regret(prediction, unambiguous=unambiguous).sum() / self.scale)

    def _excess(self, decisions: FloatArray) -> FloatArray:
        values = _values(self.costs, decisions)
        excess = self.best - values if self.problem.sense == "max" else values - self.best
        self._warn_if_not_optimal(decisions, excess)
        return excess

    def _warn_if_not_optimal(self, decisions: FloatArray, excess: FloatArray) -> None:
        below = np.flatnonzero(excess < 0)
        sizes = np.maximum(np.abs(self.costs[below] * decisions[below]).sum(axis=1), np.abs(self.best[below]))
        better = below[excess[below] < -OPTIMALITY_TOLERANCE * sizes]
        if len(better):
            # The message does not name the prediction, so that Python shows it once per row.
            wrong = "minimise" if self.problem.sense == "max" else "maximise"
            warnings.warn(
                f"row {better[0]}: the decision for the prediction is better than the optimal one, so "
                f"{type(self.problem).__name__} does not return optimal decisions, and regrets mean little. Does it "
                f"{wrong} although its sense is {self.problem.sense!r}? If it is a cache or a heuristic, evaluate with "
                "an exact problem.",
                OptimalityWarning,
                stacklevel=4,
            )

    @property
    def scale(self) -> float:
        """The sum of the absolute optimal values, of which regrets are a percentage."""
        with np.errstate(over="ignore"):
            total = float(np.abs(self.best).sum())
        if not isfinite(100 * total):
            raise ValueError(
                "the optimal values add up to more than float64 can hold. Divide all costs by the same number."
            )
        if total == 0:
            raise ValueError(
                "the optimal value of every row is 0, so regrets cannot be a percentage of it. "
                "Check that the costs are not all zero, or use decision_regret."
            )
        return total


def _values(costs: FloatArray, decisions: FloatArray) -> FloatArray:
    values = np.einsum("ij,ij->i", costs, decisions)
    if not all_finite(values):
        row = int(np.isfinite(values).argmin())
        raise ValueError(f"row {row}: its costs add up to more than float64 can hold. Divide all by the same number.")
    return values


def _as_options(
    level: float, n_resamples: int, rng: np.random.Generator | None
) -> tuple[float, int, np.random.Generator]:
    """Check and return the options of a bootstrap interval, before any row is solved."""
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
    """Return column sums over random groups of rows: (n, k) -> (N_GROUPS, k)."""
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
