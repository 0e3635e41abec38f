"""Every estimator refuses masked entries, dates, durations, text, categories, structures and complex numbers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression

from decidewise import models
from decidewise.models import (
    AveragedRegressor,
    ClippedWise,
    CorrectedRegressor,
    DecisionBoostingRegressor,
    DecisionRegressor,
    DemandRegressor,
    FlooredRegressor,
    GeneralizedLinear,
    GivenForecast,
    NearestScenarios,
    ResidualScenarios,
    SmoothFeatures,
    SpoForestRegressor,
    SpoTreeRegressor,
    WiseRegressor,
    WiseRegressorCV,
)
from decidewise.problems import Levels, TopK, newsvendor

TOP, RNG = TopK(3, 1), np.random.default_rng(0)
X, COSTS = RNG.uniform(1, 2, size=(40, 3)), RNG.uniform(1, 2, size=(40, 3))
STOCK = Levels([[0, 1, 2]], cost=newsvendor(1, 3)).with_demand(COSTS[:, :1])
BAD = {
    "masked": lambda good: np.ma.masked_greater(good, 1.5),
    "dates": lambda good: (1e9 * good).astype("datetime64[s]"),
    "durations": lambda good: (1e9 * good).astype("timedelta64[s]"),
    "digits": lambda good: good.astype(str),
    "digits as objects": lambda good: good.astype(str).astype(object),
    "digits as bytes": lambda good: good.astype("S8"),
    "structures": lambda good: good.astype([("value", float)]),
    "categories of numbers": lambda good: pd.DataFrame(good).astype("category"),
    "complex": lambda good: good * (1 + 1j),
}
ESTIMATORS = [
    GeneralizedLinear(),
    GeneralizedLinear("gamma"),
    WiseRegressor(),
    ClippedWise(),
    FlooredRegressor(GeneralizedLinear()),
    CorrectedRegressor(LinearRegression(), LinearRegression()),
    AveragedRegressor([("a", WiseRegressor()), ("b", GeneralizedLinear())]),
    GivenForecast([0, 1, 2]),
    DecisionRegressor(TOP, "spo+", epochs=1, random_state=0),
    SpoTreeRegressor(TOP, max_depth=1),
    SpoForestRegressor(TOP, n_estimators=2, max_depth=1),
    DecisionBoostingRegressor(TOP, n_estimators=2),
    WiseRegressorCV(TOP, [WiseRegressor()], cv=2),
    SmoothFeatures(4),
    ResidualScenarios(),
    NearestScenarios(),
    DemandRegressor(GeneralizedLinear(), STOCK),
]


def test_every_estimator_is_here():
    public = (getattr(models, name) for name in models.__all__)
    estimators = {own for own in public if isinstance(own, type) and issubclass(own, BaseEstimator)}
    assert estimators == set(map(type, ESTIMATORS))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda model: f"{model!r:.32}")
def test_what_is_no_number_is_refused(estimator):
    costs = COSTS[:, 0] if isinstance(estimator, CorrectedRegressor) else COSTS
    model = estimator.fit(np.ma.masked_array(X), np.ma.masked_array(costs))  # no entry of which is masked
    calls = [getattr(model, name) for name in ("fit", "score", "partial_fit") if hasattr(model, name)]
    of_rows = getattr(model, "predict", None) or model.transform
    for kind, spoiled in BAD.items():
        words = {"masked": "masked entries", "complex": "Complex data"}.get(kind, "convert them first")
        with pytest.raises(ValueError, match=words):
            of_rows(spoiled(X))
        for call in calls:
            with pytest.raises(ValueError, match=words):
                call(spoiled(X), costs)
            if not isinstance(model, SmoothFeatures):
                with pytest.raises(ValueError, match=words):
                    call(X, spoiled(costs))
