"""A model that is saved and loaded predicts the same, bit for bit."""

import warnings

import numpy as np
import pytest
from lightgbm import LGBMRegressor
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from decidewise import (
    DecisionBoostingRegressor,
    DecisionRegressor,
    GeneralizedLinear,
    InputError,
    SpoForestRegressor,
    SpoTreeRegressor,
    WiseRegressor,
    load_model,
    read_model_summary,
    save_model,
)
from decidewise.losses import Pfy
from decidewise.models import (
    AveragedRegressor,
    ClippedWise,
    CorrectedRegressor,
    GivenForecast,
    NearestScenarios,
    ResidualScenarios,
    default_candidates,
)
from decidewise.problems import TopK

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 5))
COSTS = np.exp(0.3 * X @ RNG.normal(size=(5, 4)) + 0.1 * RNG.normal(size=(120, 4)))
ITEMS = RNG.normal(size=(120, 4, 3))
PROBLEM = TopK(4, 2, sense="min")

ROWS = {
    "linear": GeneralizedLinear(),
    "log-linear": GeneralizedLinear("tweedie", power=1.2, alpha=0.01),
    "wise": WiseRegressor(),
    "unit": WiseRegressor(scale="unit"),
    "iterated": WiseRegressor(scale="iterated"),
    "scale from a model": WiseRegressor(scale=GeneralizedLinear("gamma")),
    "lifted": WiseRegressor(GeneralizedLinear("gamma"), lifted=True),
    "ridge": WiseRegressor(Ridge()),
    "clipped": ClippedWise(clip=0.3),
    "least squares": LinearRegression(),
    "mean": DummyRegressor(),
    "forecast": GivenForecast([0, 1, 2, 3]),
    "scenarios": ResidualScenarios(most=5),
    "nearest scenarios": NearestScenarios(4),
    "pipeline": make_pipeline(StandardScaler(), WiseRegressor(GeneralizedLinear(alpha=0.1))),
    "average": AveragedRegressor([("a", WiseRegressor()), ("b", GeneralizedLinear("gamma"))]),
    "spo+": DecisionRegressor(PROBLEM, epochs=2, random_state=0),
    "spo tree": SpoTreeRegressor(PROBLEM, min_samples_leaf=5, random_state=0),
    "spo forest": SpoForestRegressor(PROBLEM, n_estimators=3, random_state=0),
    "log spo+": DecisionRegressor(PROBLEM, Pfy(n_samples=2), link="log", epochs=2, random_state=0),
}
PER_ITEM = {
    "shared": GeneralizedLinear("gamma"),
    "own intercepts": GeneralizedLinear(per_item="intercept"),
    "own coefficients": GeneralizedLinear(per_item="coefficients", alpha=0.1),
    "wise shared": WiseRegressor(),
    "lifted shared": WiseRegressor(lifted=True),
    "scaled shared": WiseRegressor(make_pipeline(StandardScaler(), GeneralizedLinear())),
    "forecast of items": GivenForecast(2),
    "spo tree shared": SpoTreeRegressor(PROBLEM, max_depth=2, n_thresholds=5, random_state=0),
    "spo+ shared": DecisionRegressor(PROBLEM, epochs=2, per_item="intercept", random_state=0),
    "corrected": WiseRegressor(CorrectedRegressor(GeneralizedLinear(), Ridge())),
}
FOREIGN = {
    "lightgbm": WiseRegressor(LGBMRegressor(n_estimators=5, verbosity=-1, n_jobs=1)),
    "corrected by trees": WiseRegressor(
        CorrectedRegressor(GeneralizedLinear(), LGBMRegressor(n_estimators=5, verbosity=-1, n_jobs=1))
    ),
    "forest": WiseRegressor(RandomForestRegressor(3, random_state=0)),
    "boosting on a loss": DecisionBoostingRegressor(PROBLEM, n_estimators=3, random_state=0),
    "boosting": WiseRegressor(HistGradientBoostingRegressor(max_iter=3)),
    "neighbours": KNeighborsRegressor(),
}


def again(model, path, **options):
    save_model(model, path)
    return load_model(path, **options)


def check_same(model, X, path, **options):
    found = again(model, path, **options)
    assert type(found) is type(model)
    for rows in (X, X[:1], X[3:10]):
        np.testing.assert_array_equal(found.predict(rows), model.predict(rows), strict=True)
    return found


@pytest.mark.parametrize("name", ROWS)
def test_models_of_rows_are_the_same(name, tmp_path):
    model = clone(ROWS[name]).fit(X, COSTS)
    found = check_same(model, X, tmp_path / "m.dw")
    assert repr(found) == repr(clone(model).set_params(problem=None) if hasattr(model, "problem") else model)
    assert read_model_summary(tmp_path / "m.dw").types == ()


@pytest.mark.parametrize("name", PER_ITEM)
def test_models_of_items_are_the_same(name, tmp_path):
    model = clone(PER_ITEM[name]).fit(ITEMS, COSTS)
    check_same(model, ITEMS, tmp_path / "m.dw")


@pytest.mark.parametrize("name", default_candidates(X, COSTS))
def test_every_default_candidate_is_the_same(name, tmp_path):
    model = default_candidates(X, COSTS)[name].fit(X, COSTS)
    save_model(model, tmp_path / "m.dw")
    types = read_model_summary(tmp_path / "m.dw").types
    assert not types or "trees" in name or "forest" in name
    check_same(model, X, tmp_path / "m.dw", trusted=types)


@pytest.mark.parametrize("name", FOREIGN)
def test_other_models_need_trust_and_are_the_same(name, tmp_path):
    path = tmp_path / "m.dw"
    model = clone(FOREIGN[name]).fit(X, COSTS)
    save_model(model, path)
    types = read_model_summary(path).types
    with pytest.raises(InputError, match="needs types that you must trust first") as refusal:
        load_model(path)
    assert all(name in str(refusal.value) for name in types)
    if len(types) > 1:
        with pytest.raises(InputError, match=types[-1].replace(".", r"\.")):
            load_model(path, trusted=types[:-1])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        check_same(model, X, path, trusted=types)
