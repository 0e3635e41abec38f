"""The methods of the plan. Each function is called as `method(problem, random_state=..., **parameters)`."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from sklearn.dummy import DummyRegressor

from decidewise.models import (
    DecisionRegressor,
    FlooredRegressor,
    GeneralizedLinear,
    GivenForecast,
    WiseRegressor,
    WiseRegressorCV,
    family_shares,
)
from decidewise.problems.contract import Problem

#: The features of every task that predict the costs as they are.
GIVEN, YESTERDAY = 0, 1


def training_mean(problem: Problem, *, random_state: int) -> Any:
    """Predict the mean of the training costs."""
    return DummyRegressor()


def given_forecast(problem: Problem, *, random_state: int) -> Any:
    """Predict what the forecast that comes with the data says."""
    return GivenForecast(GIVEN, name="given forecast")


def yesterday(problem: Problem, *, random_state: int) -> Any:
    """Predict the costs of the row before: yesterday's, or last week's where rows are weeks."""
    return GivenForecast(YESTERDAY, name="yesterday")


def least_squares(problem: Problem, *, random_state: int) -> Any:
    """Fit costs by least squares."""
    return GeneralizedLinear()


def wise(problem: Problem, *, random_state: int) -> Any:
    """Fit a linear model under the change of measure."""
    return WiseRegressor()


def iterated(problem: Problem, *, random_state: int) -> Any:
    """Fit a linear model under the change of measure, in units of the norm of its own prediction."""
    return WiseRegressor(scale="iterated")


def log_linear(problem: Problem, *, random_state: int) -> Any:
    """Fit a log-linear model with the gamma deviance under the change of measure; costs below a floor are raised."""
    return WiseRegressor(FlooredRegressor(GeneralizedLinear("gamma")))


def trees(problem: Problem, *, random_state: int) -> Any:
    """Boost trees on the costs."""
    return WiseRegressor(_boosted_trees(), exponent=0.0)  # which takes features per item too


def wise_trees(problem: Problem, *, random_state: int) -> Any:
    """Boost trees under the change of measure."""
    return WiseRegressor(_boosted_trees())


def spo_plus(problem: Problem, *, random_state: int) -> Any:
    """Train a linear model on SPO+ from the WISE fit; keep the epoch that decides best on the last fifth of rows."""
    return DecisionRegressor(
        problem, "spo+", epochs=30, early_stopping=True, validation="last", random_state=random_state
    )


def choice(problem: Problem, *, random_state: int, forecasts: bool = True, **settings: Any) -> Any:
    """Choose by the decisions on held-out blocks of the training rows, as anybody gets it who names the forecasts."""
    forecast = {"given forecast": GIVEN, "yesterday": YESTERDAY} if forecasts else None
    return ChoiceInTime(problem, forecast=forecast, random_state=random_state, **settings)


class ChoiceInTime(WiseRegressorCV):
    """The choice for rows in the order of time, whose numbers are their times."""

    def fit(self, X: Any, y: Any, groups: Any = None, times: Any = None) -> Self:
        """Choose and fit."""
        return super().fit(X, y, groups, np.arange(len(X)) if times is None else times)

    @property
    def chosen_(self) -> str:
        """What was chosen: the share of each family, for the rows of the experiment."""
        return ", ".join(f"{100 * share:.0f} % {family}" for family, share in family_shares(self).items())


def _boosted_trees() -> Any:
    if find_spec("lightgbm") is None:
        raise ImportError('boosted trees need LightGBM: pip install "decidewise[boosting]".')
    lightgbm = import_module("lightgbm")  # an optional dependency
    return lightgbm.LGBMRegressor(
        n_estimators=100, learning_rate=0.1, num_leaves=15, random_state=0, n_jobs=1, verbosity=-1
    )
