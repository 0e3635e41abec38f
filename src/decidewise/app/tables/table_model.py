"""A fitted model that predicts and decides from a table, as it is, and says what training had not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from decidewise.app.tables.columns import Reading, TableOptions
from decidewise.app.tables.features import TableFeatures
from decidewise.app.tables.layouts import PRESENT, in_words
from decidewise.app.tables.raw_values import as_numbers, as_texts
from decidewise.app.tables.samples import TableSamples, columns_of, read_samples
from decidewise.evaluate import Hindsight, check_in_units
from decidewise.kit.checks import FloatArray, listed
from decidewise.kit.errors import InputError
from decidewise.kit.gaps import noted_gaps
from decidewise.kit.kept import check_kept
from decidewise.kit.notebook import html_table
from decidewise.problems import Problem, ProblemFile
from decidewise.problems.details import caution_of
from decidewise.problems.explanation import Explanation
from decidewise.problems.levels.demand import as_levels
from decidewise.problems.levels.problem import of_demand
from decidewise.problems.views import lift

#: So many lines of decisions are shown in a notebook.
_MOST_LINES = 24
#: The most new names of a column that are kept to be said.
_MOST_NAMES = 1000


@dataclass
class Unfamiliar:
    """What some new rows have that no training row had: new names by column, and numbers far out of range.

    Of these, how many are out of the range of training by more than its width, the lowest and the highest.

    >>> features = TableFeatures(["load"]).fit({"load": [0.0, 4.1, 12.4]})
    >>> print(*Unfamiliar.of(features, {"load": np.array([13.0, 12400.0])}).sentences(features))
    'load': 1 value far out of the range of training (0 to 12.4): 12400. Is the unit the same?
    """

    names: dict[str, set[str]] = field(default_factory=dict)
    numbers: dict[str, tuple[int, float, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, features: TableFeatures, lines: Mapping[str, Any]) -> Unfamiliar:
        """Return what is new in the columns of some rows."""
        found = cls()
        for plan in features.columns_:
            name = plan["name"]
            if plan["kind"] == "names":
                texts, gaps = as_texts(np.asarray(lines[name]))
                if new := set(texts[~gaps].tolist()) - set(plan["known"]):
                    found.names[name] = new
            elif plan["kind"] == "numbers":
                values, low, high = as_numbers(np.asarray(lines[name]), name), plan["low"], plan["high"]
                width = high - low or abs(high) or 1.0
                far = values[(values < low - width) | (values > high + width)]
                if len(far):
                    found.numbers[name] = len(far), float(far.min()), float(far.max())
        return found

    def add(self, other: Unfamiliar) -> None:
        """Add what is new in other rows; of names as long as they are few."""
        for column, names in other.names.items():
            have = self.names.setdefault(column, set())
            if len(have) < _MOST_NAMES:
                have |= names
        for column, (n, low, high) in other.numbers.items():
            before, lowest, highest = self.numbers.get(column, (0, low, high))
            self.numbers[column] = before + n, min(lowest, low), max(highest, high)

    def sentences(self, features: TableFeatures) -> list[str]:
        """Return a sentence for each column with something new."""
        said = []
        for plan in features.columns_:
            name = plan["name"]
            if name in self.names:
                new = listed(sorted(self.names[name]))
                said.append(f"{name!r}: {new} not seen in training, treated as {plan['base']!r}.")
            if name in self.numbers:
                n, *found = self.numbers[name]
                said.append(
                    f"{name!r}: {n:,} value{'s' * (n > 1)} far out of the range of training "
                    f"({_range(plan['low'], plan['high'])}): {_range(*found)}. Is the unit the same?"
                )
        return said


def _range(low: float, high: float) -> str:
    return f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"


@dataclass(frozen=True, eq=False)
class TableDecisions:
    """The decision for each row of a table, (n, d), and its predicted value (n,), the objective.

    Of demand, the decision is the level of each item, and the prediction is what it costs.

    With costs, also what the decision cost or gained (`realised`), the best in hindsight and the regret, NaN in rows
    without costs. `items` is that column of a long table.
    """

    samples: TableSamples
    items: str | None
    predictions: FloatArray
    decisions: FloatArray
    objective: FloatArray
    realised: FloatArray | None
    best: FloatArray | None
    regret: FloatArray | None
    caution: str = ""  # a sentence if some decisions are not proven optimal
    explanation: Explanation | None = None

    def columns(self) -> dict[str, Any]:
        """Return a table of the shape of the input: wide with a column per item, or long with a line per item."""
        by_row = {"predicted_objective": self.objective}
        if self.regret is not None and self.realised is not None and self.best is not None:
            by_row |= {"objective": self.realised, "best_objective": self.best, "regret": self.regret}
        by_item = {"decision": self.decisions}
        if self.items is not None or self.explanation is not None:
            by_item = {"prediction": self.predictions, **by_item}
        if (why := self.explanation) is not None:
            by_item |= {"holds_from": why.lower, "holds_to": why.upper, "below": why.below, "above": why.above}
        return columns_like(self.samples, self.items, by_item, by_row)

    def to_frame(self) -> Any:
        """Return `columns()` as a pandas frame."""
        import pandas as pd  # noqa: PLC0415  (the frame that is asked for)

        return pd.DataFrame(self.columns())

    def __repr__(self) -> str:
        return f"TableDecisions({len(self.decisions):,} rows of {self.decisions.shape[1]} items; see to_frame())"

    def _repr_html_(self) -> str:
        columns = self.columns()
        lines = list(zip(*(values[:_MOST_LINES] for values in columns.values()), strict=True))
        shown = [[f"{cell:g}" if isinstance(cell, float) else str(cell) for cell in line] for line in lines]
        n_lines = len(columns[self.samples.title])
        return html_table(list(columns), shown, below=[f"The first of {n_lines:,} lines."] * (n_lines > _MOST_LINES))


def columns_like(
    samples: TableSamples,
    items: str | None,
    by_item: Mapping[str, FloatArray],
    by_row: Mapping[str, FloatArray] = {},
    names: Sequence[str] = (),
) -> dict[str, Any]:
    """Return numbers (n, d) and (n,) by name as a table of the shape of the input, long if it has a column of items."""
    names = names or samples.cost_names
    if items is None:
        wide = {f"{what}_{name}": values[:, j] for what, values in by_item.items() for j, name in enumerate(names)}
        return {samples.title: samples.keys, **wide, **by_row}
    long = {
        samples.title: np.repeat(samples.keys, len(names)),
        in_words(items): np.tile(_item_keys(names), len(samples)),
        **{what: values.ravel() for what, values in by_item.items()},
        **{what: np.repeat(values, len(names)) for what, values in by_row.items()},
    }
    # Of absent items there is no line in the input.
    return long if samples.present is None else {name: np.asarray(long[name])[samples.present.ravel()] for name in long}


def _item_keys(names: Sequence[str]) -> Any:
    """Return names of items as they were in the table: whole numbers if all are."""
    whole = all(name.lstrip("-").isdigit() and name == str(int(name)) for name in names)
    return np.array(names, dtype=np.int64) if whole else names


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
        The names of the costs, in the order of the problem; or of the items whose demand the table has.
    levels : list of lists of float, optional
        The levels of each item, if the table has demand: the model predicts what each of them costs.

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
        self,
        estimator: Any,
        features: TableFeatures,
        options: Mapping[str, Any],
        cost_names: Sequence[str],
        levels: Any = None,
    ) -> None:
        self.estimator = estimator
        self.features = features
        self.options = options
        self.cost_names = cost_names
        self.levels = levels

    def fit(self, table: Any, y: Any = None) -> Self:
        """Fit the same model anew on another table with costs; it must have the same items."""
        samples = self.read(table, costs=True, in_order=True)
        self.features = clone(self.features).fit(samples.lines)
        self.estimator = clone(self.estimator).fit(samples.features(self.features), samples.costs)
        return self

    def predict(self, table: Any) -> FloatArray:
        """Return the predicted costs (n, d) of a table: a path, a frame, an Arrow table or a dictionary of columns.

        Rows are in the order of the table, those of a long one in the order in which they first occur. Of demand, it is
        what each level of each item costs.
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
        names, levels = list(self.cost_names), self.levels
        return Reading(options, problem, names, needed, costs=costs, in_order=in_order, levels=levels)

    @property
    def needed(self) -> dict[str, str]:
        """The columns of features that a table must have, each with its kind; see `TableFeatures.needed`."""
        made = {PRESENT} if self.options.get("absent_items") else set()
        return {name: kind for name, kind in self.features.needed.items() if name not in made}

    def predict_samples(self, samples: TableSamples) -> FloatArray:
        """Return the predicted costs (n, d) of samples."""
        X = samples.features(self.features, of_levels=True)
        return np.reshape(self.estimator.predict(X), (len(samples), -1))

    @property
    def predicted_names(self) -> list[str]:
        """The names of what is predicted: the costs, or each level of each item.

        >>> TableModel(None, None, {}, ["bread"], [[0.0, 20.0]]).predicted_names
        ['bread_0', 'bread_20']
        """
        if self.levels is None:
            return list(self.cost_names)
        pairs = zip(self.cost_names, self.levels, strict=True)
        return [f"{name}_{level:g}" for name, own in pairs for level in own]

    def decide_samples(self, samples: TableSamples, *, explain: bool = False) -> TableDecisions:
        """Return the decisions for samples with a problem, explained if wanted."""
        if samples.problem is None:
            raise ValueError("samples must have a problem.")
        check_in_units(self.estimator, samples.problem)
        if explain and of_demand(samples.problem):
            raise InputError("--explain is for costs of items; here each level has a cost of its own.")
        prediction = samples.problem.as_costs(self.predict_samples(samples), name="the prediction")
        lifted = samples.problem.lifted
        costs = lift(lifted, prediction)
        with noted_gaps() as noted:
            decisions = lifted.solve(costs)
        objective, amounts = (costs * decisions).sum(axis=1), decisions[:, : prediction.shape[1]]
        if of_demand(samples.problem):
            prediction, amounts = samples.problem.by_item(costs * decisions), samples.problem.levels_of(decisions)
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
            decisions=amounts,
            objective=objective,
            realised=realised,
            best=best,
            regret=regret,
            caution=caution_of(noted.by_row(len(costs))[0], objective),
            explanation=samples.problem.explain(prediction) if explain else None,
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
        if self.levels is not None and len(as_levels(self.levels)) != len(self.cost_names):
            raise ValueError("levels must be lists of levels, one for each of cost_names")
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
