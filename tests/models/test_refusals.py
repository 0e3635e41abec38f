"""A refused call changes nothing, and says in a sentence what it expected."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor

from decidewise import DecisionRegressor, GeneralizedLinear, WiseRegressor, WiseRegressorCV
from decidewise.models.linear.blocks import BLOCK_ROWS
from decidewise.problems import TopK

RNG = np.random.default_rng(0)
X, COSTS = RNG.normal(size=(40, 3)), RNG.uniform(1, 2, size=(40, 4))
FRAME = pd.DataFrame(X, columns=list("abc"))
PROBLEM = TopK(4, 2)
ESTIMATORS = {
    "least squares": GeneralizedLinear(),
    "gamma": GeneralizedLinear("gamma"),
    "wise": WiseRegressor(lifted=True),
    "wise ridge": WiseRegressor(Ridge()),
    "cv": WiseRegressorCV(PROBLEM, [LinearRegression(), WiseRegressor()]),
    "decision": DecisionRegressor(PROBLEM, "spo+", epochs=1, random_state=0),
}


def with_nan(values):
    values = np.array(values)
    values[-1, 0] = np.nan
    return values


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(
    ("X", "y"),
    [
        (with_nan(X), COSTS),
        (np.ma.masked_greater(X[:, :2], 1), COSTS),
        (X[:, :2], with_nan(COSTS)),
        (X[:, :2], COSTS[:30]),
        (X[:, :2], None),
    ],
    ids=["X with NaN", "X masked", "y with NaN", "rows", "no y"],
)
def test_a_refused_fit_leaves_the_fit_before(name, X, y):
    model = ESTIMATORS[name].fit(FRAME, COSTS)
    before, predicted = dict(vars(model)), model.predict(FRAME)
    with pytest.raises(ValueError):  # noqa: PT011  (each has its own sentence)
        model.fit(X, y)
    assert vars(model) == before
    np.testing.assert_array_equal(model.predict(FRAME), predicted)


class TestPartialFit:
    def test_a_refused_batch_leaves_no_rows_behind(self):
        rng = np.random.default_rng(1)
        n = 33 * BLOCK_ROWS  # more than one task, so that sums of some are there when another fails
        X = rng.normal(size=(n, 2))
        y = X @ np.ones((2, 2))
        for call in (GeneralizedLinear.partial_fit, GeneralizedLinear.fit):
            model = GeneralizedLinear().partial_fit(X[:100], y[:100])
            with pytest.raises(ValueError, match=rf"X must be finite; row {n - 1}, column 0 has NaN"):
                call(model, with_nan(X), y + 5)
            model.partial_fit(X[100:200], y[100:200])
            np.testing.assert_allclose(model.intercept_, 0, atol=1e-12)
            np.testing.assert_allclose(model.coef_, 1)

    @pytest.mark.parametrize(("first", "then"), [(COSTS, COSTS[:, 0]), (COSTS[:, 0], COSTS), (COSTS, COSTS[:, :3])])
    def test_targets_of_another_shape_are_refused(self, first, then):
        model = GeneralizedLinear().partial_fit(X, first)
        coefficients = model.coef_.copy()
        with pytest.raises(ValueError, match=r"the rows so far had targets of shape \(n,.*; these have \(n,"):
            model.partial_fit(X, then)
        np.testing.assert_array_equal(model.partial_fit(X, first).coef_.round(9), coefficients.round(9))

    @pytest.mark.parametrize(
        ("changed", "sentence"),
        [
            ({"alpha": -5}, "alpha must be a number at least 0"),
            ({"link": "bad"}, "link must be one of"),
            ({"fit_intercept": False}, "fit_intercept is False now, but was True for the rows so far"),
        ],
    )
    def test_changed_parameters_are_checked(self, changed, sentence):
        model = GeneralizedLinear().partial_fit(X, COSTS).set_params(**changed)
        with pytest.raises(ValueError, match=sentence):
            model.partial_fit(X, COSTS)

    def test_an_intercept_may_come_later(self):
        model = GeneralizedLinear(fit_intercept=False).partial_fit(X[:20], COSTS[:20])
        model.set_params(fit_intercept=True).partial_fit(X[20:], COSTS[20:])
        np.testing.assert_allclose(model.coef_, LinearRegression().fit(X, COSTS).coef_, atol=1e-12)


def test_names_of_features_do_not_outlive_their_fit():
    for name, model in ESTIMATORS.items():
        model.fit(FRAME, COSTS)
        assert list(model.feature_names_in_) == list("abc"), name
        model.fit(X[:, :2], COSTS)
        assert not hasattr(model, "feature_names_in_"), name
        assert model.n_features_in_ == 2, name


NOT_NUMBERS = ["1", None, [1.0], np.ones(3), 1j, True]
PARAMETERS = [
    *((GeneralizedLinear(alpha=wrong), "alpha") for wrong in [*NOT_NUMBERS, np.nan, np.inf, -1]),
    *((GeneralizedLinear("gamma", tol=wrong), "tol") for wrong in ["x", None, np.nan]),
    *((GeneralizedLinear("gamma", max_iter=wrong), "max_iter") for wrong in ["9", 1.5, 0]),
    *((GeneralizedLinear("tweedie", power=wrong), "power") for wrong in ["1.5", None, np.nan, 3]),
    (GeneralizedLinear(fit_intercept="no"), "fit_intercept"),
    (GeneralizedLinear(deviance=2), "deviance"),
    *((WiseRegressor(exponent=wrong), "exponent") for wrong in [*NOT_NUMBERS, np.nan, -1]),
    (WiseRegressor(lifted="yes"), "lifted"),
    (WiseRegressor(random_state="x"), "'x' cannot be used to seed"),
    *((WiseRegressor(scale=wrong), "scale") for wrong in ["norm", 2.0, None, Ridge, LogisticRegression()]),
    *((WiseRegressor(wrong), "estimator") for wrong in ["ridge", Ridge, 5, LogisticRegression()]),
    *((WiseRegressorCV(wrong), "problem") for wrong in [None, "path", TopK, Ridge()]),
    *((WiseRegressorCV(PROBLEM, wrong), "candidate") for wrong in ["wise", 5, [None], [Ridge], Ridge(), {}]),
    *((WiseRegressorCV(PROBLEM, max_solves=wrong), "max_solves") for wrong in ["x", np.nan, -5, 2.5]),
    *((WiseRegressorCV(PROBLEM, cv=wrong), "cv") for wrong in [[], "five", 1, [([], [0, 1])], [([0], [99])]]),
    *((DecisionRegressor(wrong), "problem") for wrong in [None, "path", TopK]),
    *((DecisionRegressor(PROBLEM, epochs=wrong), "epochs") for wrong in ["3", None, 1.5, np.nan, 0]),
    *((DecisionRegressor(PROBLEM, batch_size=wrong), "batch_size") for wrong in ["8", None, 2.5]),
    *((DecisionRegressor(PROBLEM, learning_rate=wrong), "learning_rate") for wrong in [*NOT_NUMBERS, np.nan, 0]),
    *((DecisionRegressor(PROBLEM, max_solves=wrong), "max_solves") for wrong in ["x", np.nan, -1]),
    *((DecisionRegressor(PROBLEM, max_seconds=wrong), "max_seconds") for wrong in ["1", np.nan, -1]),
    *((DecisionRegressor(PROBLEM, n_neighbors=wrong), "n_neighbors") for wrong in ["1", 1.5, 0, 40]),
    (DecisionRegressor(PROBLEM, neighbor_weight="x"), "neighbor_weight"),  # also where it is not used
    (DecisionRegressor(PROBLEM, verbose=2), "verbose"),
    (DecisionRegressor(PROBLEM, early_stopping="yes"), "early_stopping"),
    *(
        (DecisionRegressor(PROBLEM, early_stopping=early, validation_fraction=wrong), "validation_fraction")
        for early in (False, True)
        for wrong in ["x", np.nan, 0, 2]
    ),
    (DecisionRegressor(PROBLEM, link="sqrt"), "link"),
    (DecisionRegressor(PROBLEM, protocol="fast"), "protocol"),
    *((DecisionRegressor(PROBLEM, init=wrong), "init") for wrong in [None, "best", [["a"]], np.full((4, 4), np.nan)]),
    (DecisionRegressor(PROBLEM, init=KNeighborsRegressor()), "init"),
]


@pytest.mark.parametrize(("model", "name"), PARAMETERS, ids=lambda value: repr(value)[:80])
def test_parameters_of_the_wrong_kind_are_named(model, name):
    with pytest.raises((ValueError, TypeError), match=rf"(^|`|of ){name}") as caught:
        model.fit(X, COSTS)
    assert "\n" not in str(caught.value)
    assert not hasattr(model, "n_features_in_")


def test_costs_that_are_all_zero_leave_nothing_to_learn():
    for model in (WiseRegressor(), WiseRegressor(scale="iterated"), WiseRegressor(lifted=True)):
        with pytest.raises(ValueError, match=r"^all (40 )?rows have weight zero \(zero costs or zero sample weights\)"):
            model.fit(X, 0 * COSTS)


def test_what_a_lifted_fit_cannot_do_is_said():
    zero_row = COSTS.copy()
    zero_row[3] = 0
    # A row of zeros has no weight under the change of measure, but lifted it counts in the mean of the last cost.
    WiseRegressor(GeneralizedLinear("gamma")).fit(X, zero_row)
    with pytest.raises(ValueError, match=r"positive targets; row 3, column 0 is zero\. Use deviance=\"poisson\""):
        WiseRegressor(GeneralizedLinear("gamma"), lifted=True).fit(X, zero_row)
    assert not hasattr(WiseRegressor(lifted=True), "partial_fit")
    with pytest.raises(AttributeError, match=r"^partial_fit needs scale=.*lifted=False: otherwise .* Use fit\.$"):
        WiseRegressor(lifted=True).partial_fit(X, COSTS)
