"""Tables of items, known costs, forecasts and folds that do not fit: a sentence each, from all it concerns."""

import numpy as np
import pandas as pd
import pytest

from decidewise import DecisionRegressor, GeneralizedLinear, WiseRegressor, WiseRegressorCV, diagnose
from decidewise.data import read_table
from decidewise.kit.scaling import unit_rows
from decidewise.models import TimeFolds, default_candidates
from decidewise.problems import KnownCosts, TopK

RNG = np.random.default_rng(0)
PROBLEM = TopK(4, 1)
X, COSTS = RNG.normal(size=(40, 4, 2)), RNG.uniform(1, 2, size=(40, 4))
FIVE = RNG.normal(size=(40, 5, 2))
LONG = pd.DataFrame(
    {"day": np.repeat(range(3), 4), "item": np.tile(list("abcd"), 3), "x": X[:3, :, 0].ravel(), "cost": 1.0}
)


def choice(**settings):
    return WiseRegressorCV(PROBLEM, [WiseRegressor(exponent=0), WiseRegressor()], random_state=0, **settings)


def trained(problem=PROBLEM, **settings):
    return DecisionRegressor(problem, "spo+", epochs=1, random_state=0, **settings)


def read(frame, **settings):
    return read_table(frame, problem=PROBLEM, costs="cost", features="x", rows="day", items="item", **settings)


def of_day(nan):
    known = np.zeros((40, 4))
    known[7, 2] = nan
    return KnownCosts(PROBLEM, known)


OTHER_ITEMS = "X has features of 5 items and there are 4 costs"
UNSEEN = "X has 5 items, and .* was fitted with 4, each with an intercept or coefficients of its own"
BACK = r"the rows must be in the order of time; row 1 \(38\) comes after row 0 \(39\)"
ZERO = "all rows have weight zero"
CASES = {
    "other items, least squares": (lambda: GeneralizedLinear().fit(FIVE, COSTS), OTHER_ITEMS),
    "other items, wise": (lambda: WiseRegressor().fit(FIVE, COSTS), OTHER_ITEMS),
    "other items, spo+": (lambda: trained().fit(FIVE, COSTS), OTHER_ITEMS),
    "other items, choice": (lambda: choice().fit(FIVE, COSTS), OTHER_ITEMS),
    "other items, diagnose": (lambda: diagnose(PROBLEM, FIVE, COSTS), OTHER_ITEMS),
    "other items than the problem": (lambda: choice().fit(FIVE, FIVE[:, :, 0]), "TopK needs 4 columns of costs"),
    "other items to decide": (lambda: choice().fit(X, COSTS).predict(FIVE), OTHER_ITEMS),
    "a pair missing": (lambda: read(LONG.drop(index=6)), "day 1, item c is missing"),
    "a pair twice": (lambda: read(pd.concat([LONG, LONG[5:6]])), "day 1, item b is more than once"),
    "an item unseen, table": (lambda: read(LONG, item_order=list("abcx")), "must name all items; it lacks 'd'"),
    "an item unseen, least squares": (
        lambda: GeneralizedLinear(per_item="intercept").fit(X, COSTS).predict(FIVE),
        UNSEEN,
    ),
    "an item unseen, wise": (
        lambda: WiseRegressor(GeneralizedLinear(per_item="coefficients")).fit(X, COSTS).predict(FIVE),
        UNSEEN,
    ),
    "an item unseen, spo+": (lambda: trained(per_item="intercept").fit(X, COSTS).predict(FIVE), UNSEEN),
    "a known cost missing": (lambda: KnownCosts(PROBLEM, np.ones(3)), "known"),
    "a known cost not finite": (lambda: of_day(np.inf), "known must be finite; row 7, column 2"),
    "a known cost not there": (lambda: of_day(np.nan), "known must be finite; row 7, column 2 has NaN"),
    "too few known rows": (lambda: trained(of_day(0.0)).fit(X[:9], COSTS[:9]), "40 rows"),
    "a forecast too narrow": (
        lambda: choice(forecast={"mine": [0, 1, 2]}).fit(X[:, :, 0], COSTS),
        r"the forecast 'mine' has shape \(40, 3\), but there are 4 costs",
    ),
    "a forecast that no item has": (
        lambda: choice(forecast=7).fit(X, COSTS),
        "must be the number of one feature of the items or a function of X; got 7",
    ),
    "forecasts of items in a list": (lambda: choice(forecast=[0, 1]).fit(X, COSTS), "the number of one feature"),
    "a forecast too narrow, diagnose": (
        lambda: diagnose(PROBLEM, X, COSTS, forecast=lambda rows: rows[:, :3, 0]),
        r"has shape \(40, 3\), but there are 4 costs",
    ),
    "a fold without rows": (
        lambda: choice(cv=[(np.arange(20), np.arange(0))]).fit(X, COSTS),
        "fold 0 of cv has no held-out rows",
    ),
    "a fold without training rows": (
        lambda: choice(cv=TimeFolds(3, gap=30)).fit(X, COSTS, times=np.arange(40)),
        "fold 0, which begins at 10, has no training rows",
    ),
    "no costs at all, wise": (lambda: WiseRegressor().fit(X, 0 * COSTS), ZERO),
    "no costs at all, spo+": (lambda: trained().fit(X, 0 * COSTS), ZERO),
    "no costs at all, choice": (lambda: choice().fit(X, 0 * COSTS), "the optimal value of every row is 0"),
    "out of order, choice": (lambda: choice().fit(X, COSTS, times=np.arange(40)[::-1]), BACK),
    "out of order, diagnose": (lambda: diagnose(PROBLEM, X, COSTS, times=np.arange(40)[::-1]), BACK),
}


@pytest.mark.parametrize("case", CASES)
def test_a_sentence(case):
    call, sentence = CASES[case]
    with pytest.raises(ValueError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore::decidewise.TrainingWarning")
def test_a_row_without_costs_has_no_say_and_is_no_error():
    gap = COSTS.copy()
    gap[3] = 0.0
    with_gap = WiseRegressor().fit(X, gap).predict(X)
    without = WiseRegressor().fit(np.delete(X, 3, axis=0), np.delete(COSTS, 3, axis=0)).predict(X)
    np.testing.assert_allclose(unit_rows(with_gap), unit_rows(without))
    for model in (choice(), trained()):
        assert np.isfinite(model.fit(X, gap).predict(X)).all()
    assert default_candidates(X, gap).notes["rows of zeros"].startswith("1 of 40; any decision suits them")
    assert "rows of zeros" not in default_candidates(X, COSTS).notes
