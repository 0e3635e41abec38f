"""From features to decisions, and their regret: of rows in memory, and of rows in files, block by block."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from decidewise.evaluate import Hindsight, Interval, check_in_units
from decidewise.kit.checks import FloatArray, check_same_names, check_same_rows, n_rows
from decidewise.kit.errors import SolverError
from decidewise.kit.files import check_apart
from decidewise.kit.notebook import frame_like
from decidewise.models.estimator.learner import names_of
from decidewise.problems.contract import Problem, as_problem, check_rows
from decidewise.rows.files import FileRows
from decidewise.rows.source import Rows, RowSource, Sums
from decidewise.rows.write_table import write_table

#: The normal quantile of 95 %: intervals over millions of rows need no other.
_QUANTILE = 1.959963984540054


def predict(model: Any, X: Any) -> Any:
    """Return the costs that the model predicts from each row of features: for a frame, a frame with names.

    `model.predict(X)` returns an array, as estimators of scikit-learn do.

    Parameters
    ----------
    model : fitted estimator
        As for `decide`.
    X : array-like or frame of shape (n, p), or array-like of shape (n, d, q) with features of each item

    Returns
    -------
    ndarray or frame of shape (n, d)
        As of `decide`.

    Examples
    --------
    >>> import pandas as pd
    >>> from decidewise import GeneralizedLinear, predict
    >>> wind = pd.DataFrame({"wind": [0.0, 1.0, 2.0]}, index=["mon", "tue", "wed"])
    >>> prices = pd.DataFrame({"day": [1.0, 2.0, 3.0], "night": [3.0, 2.5, 2.0]})
    >>> predict(GeneralizedLinear().fit(wind, prices), wind).round(1)
         day  night
    mon  1.0    3.0
    tue  2.0    2.5
    wed  3.0    2.0
    """
    _check_model(model)
    prediction = np.asarray(model.predict(X))
    prediction = prediction[:, np.newaxis] if prediction.ndim == 1 else prediction
    return frame_like(X, prediction, _cost_names(model, prediction.shape[1]))


def decide(model: Any, problem: Problem, X: Any) -> Any:
    """Return an optimal decision for the costs that the model predicts from each row of features.

    Parameters
    ----------
    model : fitted estimator
        Any object whose `predict(X)` returns costs of shape (n, d): those of `decidewise.models`, of scikit-learn, or
        your own. It may also return scenarios, (n, samples, d), of equal weight, or if `problem` is `Levels` with a
        cost of demand, the demand of each item or scenarios of it (`Problem.as_costs`).
    problem : Problem
        If it differs by row, row `i` of the problem belongs to row `i` of `X`.
    X : array-like or frame of shape (n, p), or array-like of shape (n, d, q) with features of each item
        Features, in any form that the model accepts.

    Returns
    -------
    ndarray or frame of shape (n, d)
        `problem.solve(model.predict(X))`. For a frame of pandas or polars, or an Arrow table, a frame of the same kind,
        with the index of `X` and one column per cost: named as the costs that the model was fitted with, if it knows
        their names, and otherwise numbered from "0".

    Raises
    ------
    ValueError
        If the prediction is not finite, or not of shape (n, problem.n_costs); or if the problem has known costs and the
        model predicts directions, as `WiseRegressor` does without `lifted`.
    SolverError
        If a row could not be solved.

    Examples
    --------
    >>> from decidewise import WiseRegressor, decide
    >>> from decidewise.problems import TopK
    >>> X = [[0.0], [1.0], [2.0]]
    >>> costs = [[1.0, 3.0], [2.0, 2.5], [3.0, 2.0]]
    >>> model = WiseRegressor().fit(X, costs)
    >>> decide(model, TopK(2, 1, sense="min"), [[0.5], [1.9]])  # the cheaper of two items
    array([[1., 0.],
           [0., 1.]])

    A frame in, a frame out:

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"wind": [0.0, 1.0, 2.0]}, index=["mon", "tue", "wed"])
    >>> model = WiseRegressor().fit(frame, pd.DataFrame(costs, columns=["day", "night"]))
    >>> decide(model, TopK(2, 1, sense="min"), frame)
         day  night
    mon  1.0    0.0
    tue  1.0    0.0
    wed  0.0    1.0
    """
    as_problem(problem)
    _check_model(model)
    return frame_like(X, _decisions(model, problem, X), _cost_names(model, problem.n_costs))


def _check_model(model: Any) -> None:
    if not callable(getattr(model, "predict", None)):
        raise TypeError(f"model must have a method predict(X), as fitted estimators do; got {type(model).__name__}.")


def _cost_names(model: Any, n_costs: int) -> list[str]:
    return names_of(model, "cost_names_in_") or [str(j) for j in range(n_costs)]


def _decisions(model: Any, problem: Problem, X: Any) -> FloatArray:
    check_in_units(model, problem)
    if np.ndim(X) > 1 and n_rows(X) == 0:  # which many models refuse to predict
        return problem.solve(np.empty((0, problem.n_costs)))
    prediction = problem.as_costs(model.predict(X), name="model.predict(X)")
    if callable(getattr(model, "decide", None)) and n_rows(X) != len(prediction):  # a long table
        raise ValueError(f"{type(model).__name__} reads tables: use model.decide(table, problem).")
    check_same_rows(X=X, **{"model.predict(X)": prediction})
    return problem.solve(prediction)


def decide_files(
    model: Any,
    problem: Problem,
    paths: Any,
    out: Any,
    *,
    features: Any = None,
    rows: str | None = None,
    **files: Any,
) -> int:
    r"""Write an optimal decision for each row of files to one file, in constant memory.

    Parameters
    ----------
    model : fitted estimator
        As for `decide`.
    problem : Problem
        If it differs by row, its row `i` belongs to row `i` of all files together.
    paths : path, glob pattern, folder, or list of these
        As for `WiseRegressor.fit_files`.
    out : path
        The file to write, whole or not at all, as Parquet, CSV or what else its name ends in: the column of the keys if
        `rows` is given, and one column per cost, named as the costs of the model.
    features : str, list of str, or mapping, optional
        As for `fit_files`; by default the columns that the model was fitted with.
    rows : str, optional
        The column of the sample keys.
    **files
        As for `fit_files`: `items`, `block_rows` and `text`.

    Returns
    -------
    int
        The number of rows written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from decidewise import WiseRegressor
    >>> from decidewise.problems import TopK
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.csv")
    ...     _ = path.write_text("x,c_1,c_2\n0,1,3\n1,2,2.5\n2,3,2\n")
    ...     model = WiseRegressor().fit_files(path, features="x", costs="c_*")
    ...     n_rows = decide_files(model, TopK(2, 1, sense="min"), path, Path(folder, "decisions.parquet"))
    ...     regret = evaluate_files(model, TopK(2, 1, sense="min"), path)
    >>> n_rows, regret.percent
    (3, Interval(estimate=0.0, low=0.0, high=0.0))
    """
    as_problem(problem)
    source = _source(model, paths, features, None, rows=rows, description="decide_files", **files)
    check_apart(Path(out), *(file.path for file in source.files))
    names = _cost_names(model, problem.n_costs)
    if len(names) != problem.n_costs:
        raise ValueError(f"the model predicts {len(names)} costs, and {type(problem).__name__} has {problem.n_costs}.")
    if rows in names:
        raise ValueError(f"the column {rows!r} of the keys has the name of a cost, so the decisions would hide it.")
    n_written = 0

    def tables() -> Generator[dict[str, Any], None, None]:
        nonlocal n_written
        with closing(source.map(DecisionsOf(model, problem))) as blocks:
            for block, found, place in blocks:
                n_written = place[2]
                keys = {} if rows is None else {rows: block.keys}
                yield keys | dict(zip(names, found.T, strict=True))
        if not n_written:
            raise ValueError("there are no rows at all. Pass at least one file with rows.")
        if problem.n_rows is not None:
            check_rows(problem, n_written)

    with _names_are_known(), closing(tables()) as written:
        write_table(written, Path(out))
    return n_written


def evaluate_files(
    model: Any,
    problem: Problem,
    paths: Any,
    *,
    features: Any = None,
    costs: Any = None,
    **files: Any,
) -> StreamedRegret:
    r"""Return the regret of a model's decisions on the rows of files, in constant memory.

    Parameters
    ----------
    model, problem, paths, features
        As for `decide_files`.
    costs : str or list of str, optional
        The columns of the realised costs, or the one of a long table; by default those the model was fitted with.
    **files
        As for `fit_files`: `sample_weight`, by which regrets and optimal values are multiplied, `rows`, `items`,
        `block_rows` and `text`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from decidewise import WiseRegressor
    >>> from decidewise.problems import TopK
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("x,c_1,c_2\n0,1,3\n1,2,2.5\n2,3,2\n3,2.5,3\n")
    ...     model = WiseRegressor().fit_files(folder, features="x", costs="c_*")
    ...     print(evaluate_files(model, TopK(2, 1, sense="min"), folder))
    regret 20.00 [0.44, 39.56] % over 4 rows, with a 95 % interval.
    """
    as_problem(problem)
    known = names_of(model, "cost_names_in_")
    if costs is None and (files.get("items") is not None or known is None):
        raise ValueError("costs must name the columns of the realised costs: the model does not know them.")
    source = _source(model, paths, features, costs or known, description="evaluate_files", **files)
    if known is not None:
        check_same_names(known, source.columns.item_names, of="costs", expected="the model")
    with _names_are_known():
        return evaluate_rows(model, problem, source)


def evaluate_rows(model: Any, problem: Problem, source: RowSource) -> StreamedRegret:
    """Return the regret of a model's decisions on the rows of any source."""
    return StreamedRegret.of(source.reduce(RegretOf(model, problem)), problem)


@dataclass(frozen=True)
class StreamedRegret:
    """The regret over rows that were never in memory together, with 95 % intervals for independent rows.

    Attributes
    ----------
    n_rows : int
    percent : Interval
        In percent of the optimal value, as `normalized_regret`.
    mean : Interval
        In the units of the costs: the mean per row.
    """

    n_rows: int
    percent: Interval
    mean: Interval

    @classmethod
    def of(cls, sums: Sums, problem: Problem | None = None) -> StreamedRegret:
        """Return the regret from the sums of `RegretOf`; a problem that differs by row must have as many rows."""
        n_rows, weight, regret, best, squares, products, best_squares, weighted, weights = (
            float(value) for value in sums[0]
        )
        if problem is not None and problem.n_rows is not None:
            check_rows(problem, int(n_rows))
        if best == 0:
            raise ValueError(
                "the optimal value of every row is 0, so regrets cannot be a percentage of it. Check that the costs "
                "are not all zero."
            )
        ratio, mean = regret / best, regret / weight
        # The residuals are `regret - ratio * best`, and for the mean `regret - mean`.
        error = sqrt(max(0.0, squares - 2 * ratio * products + ratio**2 * best_squares)) / best
        mean_error = sqrt(max(0.0, squares - 2 * mean * weighted + mean**2 * weights)) / weight
        return cls(int(n_rows), _interval(ratio, error).scaled(100), _interval(mean, mean_error))

    def __str__(self) -> str:
        return f"regret {self.percent} % over {self.n_rows:,} rows, with a 95 % interval."


@dataclass(frozen=True)
class DecisionsOf:
    """The decisions of a block of rows."""

    model: Any
    problem: Problem

    def __call__(self, rows: Rows) -> FloatArray:
        """Return decisions (b, d)."""
        with _solver_errors_at(rows):
            return _decisions(self.model, problem_of(self.problem, rows), rows.X)


@dataclass(frozen=True)
class RegretOf:
    """The sums over a block of rows from which regrets and their standard errors follow."""

    model: Any
    problem: Problem

    def __call__(self, rows: Rows) -> Sums:
        """Return one array of sums; see `StreamedRegret.of`."""
        if rows.costs is None:
            raise ValueError(f"{rows.origin} has no costs, and a regret needs them.")
        problem = problem_of(self.problem, rows)
        check_in_units(self.model, problem)
        with _solver_errors_at(rows):
            truth = Hindsight.of(problem, rows.costs)
            regret = truth.regret(self.model.predict(rows.X), name="model.predict(X)")
        return (regret_sums(regret, truth.best, rows.weights),)


def regret_sums(regret: FloatArray, values: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Return the sums over rows that `StreamedRegret.of` needs, from regrets, optimal values and weights (n,)."""
    weights = np.ones(len(regret)) if weights is None else weights
    regret, best = weights * regret, weights * np.abs(values)
    products = [regret @ regret, regret @ best, best @ best, regret @ weights, weights @ weights]
    return np.array([len(regret), weights.sum(), regret.sum(), best.sum(), *products])


def problem_of(problem: Problem, rows: Rows) -> Problem:
    """Return the problem of some rows, which are numbered over all files."""
    if problem.n_rows is None:
        return problem
    last = rows.number + len(rows)
    if last > problem.n_rows:
        check_rows(problem, last)
    return problem.take(slice(rows.number, last))


def _interval(estimate: float, error: float) -> Interval:
    return Interval(estimate, estimate - _QUANTILE * error, estimate + _QUANTILE * error)


def _source(model: Any, paths: Any, features: Any, costs: Any, **files: Any) -> FileRows:
    """Return the rows of files, by default with the features that a model was fitted with, in the same order."""
    if features is None:
        features = names_of(model, "feature_names_in_")
        if features is None:
            raise ValueError("features must name the columns of the features: the model does not know them.")
    known = names_of(model, "cost_names_in_") or []
    return FileRows(paths, features=features, costs=costs, item_names=known, **files)


@contextmanager
def _names_are_known() -> Iterator[None]:
    """Return a context in which scikit-learn does not ask for the names of columns, which were found by name."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield


@contextmanager
def _solver_errors_at(rows: Rows) -> Iterator[None]:
    """Return a context in which a solver's error names the row of the file, and the file."""
    try:
        yield
    except SolverError as error:
        raise SolverError(f"({rows.origin}) {error.message}", row=rows.first + error.row) from error
