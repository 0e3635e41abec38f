"""Features of a prediction are refused and converted as scikit-learn does, though most are not read by it."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from decidewise import GeneralizedLinear, WiseRegressor

rng = np.random.default_rng(0)
X, COSTS = rng.normal(size=(30, 3)), 1 + rng.random((30, 2))


@pytest.mark.parametrize("model", [GeneralizedLinear(), WiseRegressor()], ids=repr)
def test_predictions_of_all_kinds_of_features_are_the_same(model):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        model.predict(X)
    expected = model.fit(X, COSTS).predict(X)
    for same in (X.tolist(), np.asfortranarray(X), X.astype(object), X[:, ::-1][:, ::-1]):
        assert np.allclose(model.predict(same), expected, rtol=1e-14)
    assert np.allclose(model.predict(X.astype(np.float32)), expected, rtol=1e-5)
    assert model.predict(X[:0]).shape == (0, COSTS.shape[1])
    for bad, message in (
        (np.where(X > 1, np.nan, X), "Input X contains NaN"),
        (np.where(X > 1, np.inf, X), "Input X contains infinity"),
        (X[:, :2], "X has 2 features, but GeneralizedLinear is expecting 3 features"),
        (X[0], "Expected 2D array, got 1D array instead"),
        (X + 1j, "Complex data not supported"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(bad)
    assert np.isfinite(model.predict(np.full((1, 3), 1e308) * [1, -1, 1])).all()  # their sum overflows, no entry does


@pytest.mark.parametrize("model", [GeneralizedLinear(), WiseRegressor()], ids=repr)
def test_arrays_for_a_model_of_named_features_are_warned_of(model):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model.fit(frame, COSTS)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        found = model.predict(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (model.predict(frame) == found).all()
