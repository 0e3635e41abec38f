"""Exported models predict the same in another runtime, here that of Microsoft."""

import json

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from decidewise import DecisionRegressor, GeneralizedLinear, WiseRegressor, WiseRegressorCV, export_onnx
from decidewise.models import AveragedRegressor, ClippedWise, FlooredRegressor
from decidewise.problems import TopK

RNG = np.random.default_rng(0)
X = RNG.normal(3.0, 2.0, size=(100, 5))
COSTS = np.exp(0.1 * X @ RNG.normal(size=(5, 4)) + 0.1 * RNG.normal(size=(100, 4)))
ITEMS = RNG.normal(size=(100, 4, 3))
PROBLEM = TopK(4, 2, sense="min")
GAMMA = GeneralizedLinear("gamma")

ROWS = [
    GeneralizedLinear(),
    GAMMA,
    WiseRegressor(),
    WiseRegressor(Ridge(), scale="unit"),
    WiseRegressor(GAMMA, lifted=True),
    WiseRegressor(FlooredRegressor(GAMMA)),
    ClippedWise(GAMMA),
    LinearRegression(),
    make_pipeline(StandardScaler(), WiseRegressor(GeneralizedLinear(alpha=0.1))),
    WiseRegressor(make_pipeline(StandardScaler(with_mean=False), StandardScaler(), GAMMA)),
    AveragedRegressor([("a", WiseRegressor()), ("b", GAMMA)]),
    AveragedRegressor([("a", GeneralizedLinear()), ("b", GAMMA)], directions=False, weights=[0.2, 0.8]),
    DecisionRegressor(PROBLEM, link="log", epochs=1, random_state=0),
    WiseRegressorCV(PROBLEM, [WiseRegressor(), WiseRegressor(GAMMA)], random_state=0),
]
PER_ITEM = [
    GeneralizedLinear(),
    GeneralizedLinear("gamma", per_item="intercept"),
    GeneralizedLinear(per_item="coefficients"),
    WiseRegressor(lifted=True),
    WiseRegressor(make_pipeline(StandardScaler(), GeneralizedLinear())),
]


def run(path, X):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(["costs"], {"X": X})[0], session


@pytest.mark.parametrize(("model", "X"), [*((model, X) for model in ROWS), *((model, ITEMS) for model in PER_ITEM)])
def test_the_same_predictions(model, X, tmp_path):
    path = tmp_path / "model.onnx"
    model = clone(model).fit(X, COSTS)
    export_onnx(model, path)
    for rows in (X, X[:1]):
        found, _ = run(path, rows)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, model.predict(rows), rtol=1e-12, strict=True)


def test_one_cost_keeps_its_shape(tmp_path):
    path = tmp_path / "model.onnx"
    for model, y in ((GeneralizedLinear(), COSTS[:, 0]), (WiseRegressor(exponent=0.0), COSTS[:, :1])):
        model.fit(X, y)
        export_onnx(model, path)
        np.testing.assert_allclose(run(path, X)[0], model.predict(X), rtol=1e-12, strict=True)


def test_extreme_features_saturate_alike(tmp_path):
    path = tmp_path / "model.onnx"
    model = GeneralizedLinear("gamma").fit(X, COSTS)
    export_onnx(model, path)
    np.testing.assert_allclose(run(path, 1e6 * X)[0], model.predict(1e6 * X), rtol=1e-12)


def test_names_are_in_the_metadata(tmp_path):
    path = tmp_path / "model.onnx"
    frame, costs = pd.DataFrame(X, columns=list("vwxyz")), pd.DataFrame(COSTS, columns=list("abcd"))
    export_onnx(WiseRegressor().fit(frame, costs), path)
    _, session = run(path, X)
    told = {key: json.loads(value) for key, value in session.get_modelmeta().custom_metadata_map.items()}
    assert told == {"feature_names": list("vwxyz"), "cost_names": list("abcd"), "predicts_directions": True}
    [features] = session.get_inputs()
    assert features.shape == ["n", 5]


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (WiseRegressor(DecisionTreeRegressor()), "DecisionTreeRegressor"),
        (make_pipeline(PolynomialFeatures(), WiseRegressor()), "PolynomialFeatures"),
    ],
)
def test_other_models_are_refused(model, name, tmp_path):
    with pytest.raises(TypeError, match=f"{name} is none"):
        export_onnx(model.fit(X, COSTS), tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
