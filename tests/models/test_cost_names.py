"""Names of costs: kept by models, and checked where costs come again, so that swapped columns are noticed."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from decidewise import DecisionRegressor, GeneralizedLinear, WiseRegressor, WiseRegressorCV, compare, normalized_regret
from decidewise.evaluate import regret_scorer
from decidewise.problems import TopK

NAMES = ["north", "south", "west"]
PROBLEM = TopK(3, 1, sense="min")


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    return X, pd.DataFrame(np.exp(X @ rng.normal(size=(2, 3))) + rng.uniform(size=(40, 3)), columns=NAMES)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
@pytest.mark.parametrize(
    "model",
    [
        GeneralizedLinear(),
        WiseRegressor(),
        DecisionRegressor(PROBLEM, "wise", epochs=1),
        WiseRegressorCV(PROBLEM, [WiseRegressor()], cv=2),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore::decidewise.kit.errors.TrainingWarning")
def test_models_keep_the_names_of_costs_and_refuse_swapped_columns(table, model, frame):
    X, costs = table
    model.fit(X, frame(costs))
    assert list(model.cost_names_in_) == NAMES
    swapped = frame(costs[["north", "west", "south"]])
    for score in (model.score, lambda X, y: regret_scorer(PROBLEM)(model, X, y)):
        score(X, frame(costs))
        score(X, costs.to_numpy())
        with pytest.raises(ValueError, match="column 1 is 'west', and should be 'south'"):
            score(X, swapped)
    if hasattr(model, "partial_fit"):
        with pytest.raises(ValueError, match="y must have the same columns in the same order"):
            model.partial_fit(X, swapped)
    model.fit(X, costs.to_numpy())
    assert not hasattr(model, "cost_names_in_")


def test_predictions_with_names_are_compared_with_those_of_the_costs(table):
    _, costs = table
    with pytest.raises(ValueError, match="prediction must have the same columns in the same order as costs; column 0"):
        normalized_regret(PROBLEM, costs[NAMES[::-1]], costs)
    with pytest.raises(ValueError, match=r"predictions\['mine'\] must have .* missing: 'west'; not known: 'east'"):
        compare(PROBLEM, {"mine": costs.rename(columns={"west": "east"})}, costs)
    assert normalized_regret(PROBLEM, costs, costs) == 0
    assert normalized_regret(PROBLEM, costs[NAMES[::-1]].to_numpy(), costs) > 0  # without names nothing can be said
