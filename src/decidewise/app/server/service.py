"""What the server computes, without HTTP: predictions and decisions for the rows of a body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from decidewise.app.server.bodies import Body
from decidewise.evaluate import check_in_units
from decidewise.kit.checks import FloatArray, as_matrix, nearest_names
from decidewise.kit.errors import InputError
from decidewise.model_file import ModelSummary
from decidewise.problems import ProblemFile
from decidewise.problems.views import lift

#: What the columns of an example hold, by the kind of feature.
_VALUES = {"numbers": 1.0, "dates": "2026-01-01", "names": "a"}


@dataclass(frozen=True)
class Answer:
    """Predictions, or decisions, for the rows of a body.

    Attributes
    ----------
    values : ndarray of shape (n, d)
        The predicted costs, or the decisions.
    objective : ndarray of shape (n,), or None
        The predicted value of each decision.
    keys : list or None
        The keys of the rows, if the model reads them from the table.
    warnings : list of str or None
        What rows have that no training row had, if the model reads tables.
    """

    values: FloatArray
    objective: FloatArray | None = None
    keys: list[Any] | None = None
    warnings: list[str] | None = None


class Service:
    """A model and a problem, applied to bodies.

    Parameters
    ----------
    model : fitted estimator
        Of arrays; or of tables, as `decidewise fit` writes it: then it has `read`, `predict_samples`,
        `decide_samples` and `warnings`.
    summary : ModelSummary
    problem : ProblemFile, optional
        Without it, there are only predictions.
    """

    def __init__(self, model: Any, summary: ModelSummary, problem: ProblemFile | None = None) -> None:
        self.model, self.summary, self.problem = model, summary, problem
        self.reads_tables = hasattr(model, "read") and hasattr(model, "predict_samples")
        self.per_item = summary.n_items is not None and not self.reads_tables
        #: What a model of tables needs: the kinds of its features by name, and the columns of the keys of long tables.
        self.needed: Mapping[str, str] = model.features.needed if self.reads_tables else {}
        keys = {name: model.options.get(name) for name in ("rows", "items")} if self.reads_tables else {}
        self.keys = keys if all(keys.values()) else {}
        self._check()

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names that rows must have for the model; None if features have no names."""
        if self.reads_tables:
            return tuple(dict.fromkeys([*self.keys.values(), *self.needed]))
        return self.summary.feature_names

    @property
    def cost_names(self) -> tuple[str, ...]:
        """The names of the costs, numbers if there are none."""
        names = self.summary.cost_names or self.summary.item_names
        return names or tuple(map(str, range(self.summary.n_costs or 0)))

    @property
    def example(self) -> dict[str, Any]:
        """A body with one row: one line, or one for each item of a long table."""
        names, summary = self.feature_names, self.summary
        if not names or self.per_item:
            row: list[Any] = [1.0] * (summary.n_features or 1)
            return {"X": [[row] * (summary.n_items or 1) if self.per_item else row]}
        line: dict[str, Any] = {name: _VALUES[self.needed.get(name, "numbers")] for name in names}
        if self.problem is not None:
            line |= {name: 1 for name in self.problem.columns if not set("*?") & set(name)}
        return {"rows": [line | {self.keys["items"]: item} for item in self.cost_names] if self.keys else [line]}

    def predict(self, body: Body) -> Answer:
        """Return the predicted costs of each row; raise a `ValueError` or `TypeError` if the rows do not fit."""
        if self.reads_tables:
            samples = self.model.read(self._columns(body), costs=False)
            predicted = as_matrix(self.model.predict_samples(samples), name="the prediction")
            return Answer(predicted, None, _keys(samples), self.model.warnings(samples))
        return Answer(as_matrix(self._predicted(body), name="the prediction"))

    def decide(self, body: Body) -> Answer:
        """Return a decision for each row, and the value that the model predicts for it."""
        assert self.problem is not None  # the application offers decisions only with a problem
        if self.reads_tables:
            samples = self.model.read(self._columns(body), self.problem, costs=False)
            decided = self.model.decide_samples(samples)
            return Answer(decided.decisions, _finite(decided.objective), _keys(samples), self.model.warnings(samples))
        problem = self.problem.build(body.columns)
        check_in_units(self.model, problem)
        prediction = as_matrix(
            self._predicted(body), name="the prediction", n_columns=problem.n_costs, owner=type(problem).__name__
        )
        lifted = problem.lifted
        costs = lift(lifted, prediction)
        decisions = lifted.solve(costs)
        return Answer(decisions[:, : problem.n_costs], _finite(np.einsum("ij,ij->i", costs, decisions)))

    def _check(self) -> None:
        """Raise if the model and the problem do not fit together, before the first request does."""
        if self.problem is None or self.problem.columns:
            return
        problem = self.problem.build()
        if not self.cost_names:
            return
        if problem.n_costs != len(self.cost_names):
            raise InputError(
                f"the model predicts {len(self.cost_names)} costs, and the problem of {self.problem.path} has "
                f"{problem.n_costs}."
            )
        try:
            check_in_units(getattr(self.model, "estimator", self.model) if self.reads_tables else self.model, problem)
        except ValueError as reason:
            raise InputError(str(reason)) from reason

    def _predicted(self, body: Body) -> FloatArray:
        prediction = np.asarray(self.model.predict(self._features(body)), dtype=np.float64)
        return prediction.reshape(body.n_rows, -1)

    def _features(self, body: Body) -> Any:
        if body.X is not None:
            if self.per_item and body.X.shape[1] != self.summary.n_items:
                raise InputError(f"each row must have {self.summary.n_items} items; got {body.X.shape[1]}.")
            return body.X
        names = self.summary.feature_names
        if names is None or self.per_item:
            raise InputError('this model has features without names: send them as "X".')
        missing = [name for name in names if name not in body.columns]
        if missing:
            raise InputError(f"not all rows have {missing[0]!r}{nearest_names(missing[0], list(body.columns))}")
        columns = {name: body.columns[name] for name in names}
        if hasattr(self.model, "feature_names_in_") and find_spec("pandas"):
            return import_module("pandas").DataFrame(columns)  # which only a model that was fitted on a frame wants
        for name, column in columns.items():
            if column.dtype.kind not in "fiub":
                row = next((k for k, entry in enumerate(column) if not isinstance(entry, float | int)), 0)
                raise InputError(f"row {row}: {name!r} must be a number.")
        return np.column_stack(list(columns.values()))

    def _columns(self, body: Body) -> dict[str, Any]:
        if body.X is not None:
            raise InputError('this model reads tables: send "rows", a list of objects by name, without "X".')
        return body.columns


def _finite(objective: FloatArray) -> FloatArray:
    if not np.isfinite(objective).all():
        row = int(np.isfinite(objective).argmin())
        raise InputError(f"row {row}: the predicted value of its decision is more than float64 can hold.")
    return objective


def _keys(samples: Any) -> list[Any]:
    # Dates as text themselves: a list has those to the nanosecond as numbers.
    entries = samples.keys if samples.keys.dtype.kind == "M" else samples.keys.tolist()
    return [entry if isinstance(entry, int | float | str) else str(entry) for entry in entries]
