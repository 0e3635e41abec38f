"""The methods of the plans. Each function is called as `method(problem, random_state=..., **parameters)`.

All take `tries`, the budget of their search, and `epochs`, the passes of Adam, the rounds of boosting or the trees of a
forest, so that a plan can give both to every method alike; a method without them ignores them. `search` are options of
`TunedRegressor`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Self

from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

from decidewise.kit.checks import FloatArray
from decidewise.losses import as_loss
from decidewise.models import (
    DecisionBoostingRegressor,
    DecisionRegressor,
    GeneralizedLinear,
    SpoForestRegressor,
    SpoTreeRegressor,
    WiseRegressor,
    WiseRegressorCV,
)
from decidewise.problems import CountedProblem
from decidewise.problems.contract import Problem
from decidewise_bench.field.ranges import BOOSTING, FOREST, LEARNING_RATE, OF_LOSS, TREE
from decidewise_bench.field.tuned import TunedRegressor

#: With features per item every candidate split of an SPO tree solves all rows of its node: this keeps a forest fast.
_SPO_DEPTH, _SPO_THRESHOLDS = 6, 5
#: The models that have nothing to choose, by their names in the plans.
UNTUNED: Mapping[str, Callable[[], Any]] = {
    "training mean": DummyRegressor,
    "least squares": GeneralizedLinear,
    "gamma": partial(GeneralizedLinear, "gamma"),
    "WISE": WiseRegressor,
    "WISE iterated": partial(WiseRegressor, scale="iterated"),
    "WISE gamma": lambda: WiseRegressor(GeneralizedLinear("gamma")),
}


class AfterSpoPlus(DecisionRegressor):
    """Trains SPO+ first, with the same options, and starts there. Both call one problem, which counts all solves."""

    def fit(self, X: Any, y: Any) -> Self:
        """Train twice on features X and costs y."""
        options = self.get_params(deep=False)
        self.init = DecisionRegressor(**options | {"loss": "spo+"}).fit(X, y)
        return super().fit(X, y)


def linear(
    problem: Problem,
    *,
    random_state: int,
    loss: str,
    tries: int,
    epochs: int,
    init: str = "torch",
    options: Mapping[str, Any] | None = None,
    **search: Any,
) -> TunedRegressor:
    """Train a linear model by Adam on a registered loss; `options` are parameters of the loss that are not searched.

    By default from a random start, so that each loss stands for itself: the library's own default, the WISE fit, would
    lend the quality of WISE to all of them. `init="spo+"` trains SPO+ from a random start first, at the same rate and
    for as many epochs.
    """

    def build(rows: Problem, *, learning_rate: float, **own: Any) -> DecisionRegressor:
        regressor, start = (AfterSpoPlus, "torch") if init == "spo+" else (DecisionRegressor, init)
        return regressor(
            rows,
            as_loss(loss, **(options or {}), **own),
            init=start,
            epochs=epochs,
            learning_rate=learning_rate,
            random_state=random_state,
        )

    made = as_loss(loss, **(options or {}))
    ranges = {"learning_rate": LEARNING_RATE, **OF_LOSS.get(loss, {})}
    return TunedRegressor(
        problem,
        build,
        ranges,
        tries=tries,
        random_state=random_state,
        refuses=lambda _: made.check(_inside(problem)),
        **search,
    )


def boosting(
    problem: Problem, *, random_state: int, loss: str, tries: int, epochs: int, **search: Any
) -> TunedRegressor:
    """Boost trees on the gradient of a registered loss, from the mean costs."""

    def build(rows: Problem, **values: Any) -> DecisionBoostingRegressor:
        return DecisionBoostingRegressor(
            rows, loss, n_estimators=epochs, min_samples_leaf=5, random_state=random_state, **values
        )

    made = as_loss(loss)
    return TunedRegressor(
        problem,
        build,
        BOOSTING,
        tries=tries,
        random_state=random_state,
        refuses=lambda _: made.check(_inside(problem)),
        **search,
    )


def untuned(
    problem: Problem, *, random_state: int, tries: int, epochs: int, model: str, **search: Any
) -> TunedRegressor:
    """Fit one of the models that have nothing to choose."""
    refuses = _refuse_negative if "gamma" in model else None
    return TunedRegressor(problem, lambda _: UNTUNED[model](), {}, tries=1, random_state=0, refuses=refuses)


def tree(problem: Problem, *, random_state: int, tries: int, epochs: int, **search: Any) -> TunedRegressor:
    """Fit a regression tree on the costs."""

    def build(rows: Problem, **values: Any) -> WiseRegressor:
        return WiseRegressor(DecisionTreeRegressor(random_state=random_state, **values), exponent=0.0)

    return TunedRegressor(problem, build, TREE, tries=tries, random_state=random_state, **search)


def forest(
    problem: Problem, *, random_state: int, tries: int, epochs: int, exponent: float = 0.0, **search: Any
) -> TunedRegressor:
    """Fit a random forest on the costs, or with `exponent=1` under the change of measure."""

    def build(rows: Problem, **values: Any) -> WiseRegressor:
        learner = RandomForestRegressor(n_estimators=epochs, random_state=random_state, **values)
        return WiseRegressor(learner, exponent=exponent)  # which takes features per item too

    return TunedRegressor(problem, build, FOREST, tries=tries, random_state=random_state, **search)


def spo_tree(problem: Problem, *, random_state: int, tries: int, epochs: int, **search: Any) -> TunedRegressor:
    """Grow a tree by the cost of its decisions."""

    def build(rows: Problem, **values: Any) -> SpoTreeRegressor:
        return SpoTreeRegressor(rows, n_thresholds=20, random_state=random_state, **values)

    return TunedRegressor(problem, build, TREE, tries=tries, random_state=random_state, **search)


def spo_forest(problem: Problem, *, random_state: int, tries: int, epochs: int, **search: Any) -> TunedRegressor:
    """Grow a forest by the cost of its decisions."""

    def build(rows: Problem, **values: Any) -> SpoForestRegressor:
        return SpoForestRegressor(
            rows,
            n_estimators=epochs,
            max_depth=_SPO_DEPTH,
            n_thresholds=_SPO_THRESHOLDS,
            random_state=random_state,
            **values,
        )

    return TunedRegressor(problem, build, FOREST, tries=tries, random_state=random_state, **search)


class ChosenInFolds:
    """`WiseRegressorCV`, which searches by itself: it chooses among its candidates in five folds of the rows."""

    def __init__(self, problem: Problem, *, random_state: int, train_solves: int) -> None:
        self.model = WiseRegressorCV(problem, train_solves=train_solves, random_state=random_state)

    def fit(self, X: FloatArray, y: FloatArray) -> ChosenInFolds:
        """Choose and fit."""
        self.model.fit(X, y)
        self.chosen_ = json.dumps({"members": self.model.members_})
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """Return predicted costs."""
        return self.model.predict(X)


def choice(
    problem: Problem, *, random_state: int, tries: int, epochs: int, train_solves: int = 0, **search: Any
) -> ChosenInFolds:
    """Choose among linear models, and with `train_solves` also SPO+, by decisions on rows held out."""
    return ChosenInFolds(problem, random_state=random_state, train_solves=train_solves)


def _inside(problem: Problem) -> Problem:
    """Return the problem that a run counts the solver calls of, whose name a refusal should have."""
    return problem.problem if isinstance(problem, CountedProblem) else problem


def _refuse_negative(costs: FloatArray) -> None:
    if costs.min() <= 0:
        raise ValueError(
            f"a log link needs positive costs, and the smallest here is {costs.min():.3g}. Choose a linear model."
        )
