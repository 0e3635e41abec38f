"""A fitted model that predicts and decides from a table, as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from decidewise.app.tables.columns import Reading, TableOptions
from decidewise.app.tables.features import TableFeatures
from decidewise.app.tables.oddities import Unfamiliar
from decidewise.app.tables.raw_values import as_numbers
from decidewise.app.tables.read import columns_of, read_samples
from decidewise.app.tables.samples import TableDecisions, TableSamples
from decidewise.evaluate import Hindsight, check_in_units
from decidewise.kit.checks import FloatArray
from decidewise.kit.kept import check_kept
from decidewise.problems import Problem, ProblemFile
from decidewise.problems.views import lift


def forecast_of(samples: TableSamples) -> FloatArray | None:
    """Return the forecast (n, d) in a table, if it has one without gaps."""
    if not samples.forecast:
        return None
    columns = [as_numbers(samples.lines[name], name) for name in samples.forecast]
    values = columns[0].reshape(len(samples), -1) if samples.per_item else np.column_stack(columns)
    return values if np.isfinite(values).all() else None


class TableModel(BaseEstimator):
    """A fitted model with what it needs to read a table: which columns are what, and how features are prepared.

    `decidewise fit` writes one to a file, and `load_model` returns it.

    Parameters
    ----------
    estimator : fitted estimator
    features : TableFeatures
        Fitted on the training rows.
    options : mapping
        Which columns are what; see `TableOptions`.
    cost_names : sequence of str
        The names of the costs, in the order of the problem.

    Examples
    --------
    >>> from decidewise.models import GeneralizedLinear
    >>> table = {"wind": [1.0, 2.0, 4.0], "cost_a": [3.0, 4.0, 6.0], "cost_b": [1.0, 3.0, 7.0]}
    >>> features = TableFeatures(["wind"]).fit(table)
    >>> fitted = GeneralizedLinear().fit(features.transform(table), np.array([[3.0, 1.0], [4.0, 3.0], [6.0, 7.0]]))
    >>> TableModel(fitted, features, {}, ["a", "b"]).predict({"wind": [3.0]}).round(6)
    array([[5., 5.]])
    """

    def __init__(
        self, estimator: Any, features: TableFeatures, options: Mapping[str, Any], cost_names: Sequence[str]
    ) -> None:
        self.estimator = estimator
        self.features = features
        self.options = options
        self.cost_names = cost_names

    def fit(self, table: Any, y: Any = None) -> Self:
        """Fit the same model anew on another table with costs; it must have the same items."""
        samples = self.read(table, costs=True, in_order=True)
        self.features = clone(self.features).fit(samples.lines)
        self.estimator = clone(self.estimator).fit(samples.features(self.features), samples.costs)
        return self

    def predict(self, table: Any) -> FloatArray:
        """Return the predicted costs (n, d) of a table: a path, a frame, an Arrow table or a dictionary of columns.

        Rows are in the order of the table, those of a long one in the order in which they first occur.
        """
        return self.predict_samples(self.read(table))

    def decide(self, table: Any, problem: str | Path | ProblemFile | Problem) -> TableDecisions:
        """Return the decision for each row of a table, and with realised costs its regret.

        Parameters
        ----------
        table : path, frame, Arrow table or dictionary of columns
        problem : path of a problem.toml, ProblemFile or Problem
            A file may take columns of the table.
        """
        return self.decide_samples(self.read(table, ProblemFile.of(problem)))

    def read(
        self,
        table: Any,
        problem: ProblemFile | None = None,
        *,
        costs: bool | None = None,
        in_order: bool = False,
        **text: Any,
    ) -> TableSamples:
        """Read the samples of a table, with costs if it has them; `text` are options of text files."""
        return read_samples(columns_of(table, text), self.reading(problem, costs=costs, in_order=in_order))

    def reading(self, problem: ProblemFile | None = None, *, costs: bool | None, in_order: bool = False) -> Reading:
        """Return what is read from a table."""
        options, needed = TableOptions.of(self.options), self.features.needed
        return Reading(options, problem, list(self.cost_names), needed, costs=costs, in_order=in_order)

    def predict_samples(self, samples: TableSamples) -> FloatArray:
        """Return the predicted costs (n, d) of samples."""
        return np.reshape(self.estimator.predict(samples.features(self.features)), (len(samples), -1))

    def decide_samples(self, samples: TableSamples) -> TableDecisions:
        """Return the decisions for samples with a problem."""
        if samples.problem is None:
            raise ValueError("samples must have a problem.")
        check_in_units(self.estimator, samples.problem)
        prediction = self.predict_samples(samples)
        lifted = samples.problem.lifted
        costs = lift(lifted, prediction)
        decisions = lifted.solve(costs)
        realised = best = regret = None
        if samples.costs is not None:
            known = np.isfinite(samples.costs).all(axis=1)
            realised, best, regret = np.full((3, len(samples)), np.nan)
            if known.any():
                truth = Hindsight.of(samples.problem.take(np.flatnonzero(known)), samples.costs[known])
                realised[known] = (truth.costs * decisions[known]).sum(axis=1)
                best[known], regret[known] = truth.best, truth.regret_of(decisions[known])
        return TableDecisions(
            samples=samples,
            items=TableOptions.of(self.options).items,
            predictions=prediction,
            decisions=decisions[:, : len(self.cost_names)],
            objective=(costs * decisions).sum(axis=1),
            realised=realised,
            best=best,
            regret=regret,
        )

    def warnings(self, samples: TableSamples) -> list[str]:
        """Return a sentence for each column in which samples have what no training row had; see `Unfamiliar`."""
        return Unfamiliar.of(self.features, samples.lines).sentences(self.features)

    def _check_kept(self) -> None:
        """Raise a `ValueError` if the parts do not fit together: they may come from a file."""
        if not isinstance(self.features, TableFeatures) or not callable(getattr(self.estimator, "predict", None)):
            raise ValueError("a TableModel needs TableFeatures and a model")
        if not isinstance(self.options, dict) or not all(isinstance(key, str) for key in self.options):
            raise ValueError("the options of a TableModel must be a table")
        TableOptions.of(self.options)
        if not isinstance(self.cost_names, list) or not all(isinstance(name, str) for name in self.cost_names):
            raise ValueError("cost_names must be a list of names")
        check_kept(self.features)

    @property
    def estimator_(self) -> Any:
        """The fitted model inside."""
        return self.estimator

    @property
    def cost_names_in_(self) -> list[str]:
        """The names of the costs, as other fitted estimators have them."""
        return list(self.cost_names)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return f"TableModel({self.estimator.__repr__(N_CHAR_MAX)})"

    def __sklearn_is_fitted__(self) -> bool:
        return True
