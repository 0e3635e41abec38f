"""The search: it chooses by the rows set aside, loses a try to divergence, and tells a refusal from a crash."""

import json
from functools import partial
from typing import ClassVar

import numpy as np
import pytest

from decidewise import NotForProblemError
from decidewise.data import make_shortest_path
from decidewise.kit.errors import DivergenceError
from decidewise.kit.importable import resolve
from decidewise.kit.interrupts import reason_of
from decidewise.losses import Lodl
from decidewise.models import DecisionRegressor
from decidewise.problems import Portfolio, TopK
from decidewise_bench.experiments import read_plan
from decidewise_bench.field import PLANS
from decidewise_bench.field.methods import linear, untuned
from decidewise_bench.field.ranges import Range, draws
from decidewise_bench.field.tuned import TunedRegressor

X = np.arange(40.0)[:, None]
COSTS = np.column_stack([np.ones(40), np.full(40, 2.0)])
DIVERGED = DivergenceError("too far", epoch=1)
SHIFT = {"shift": Range(1.0, 4.0, "a bias of the first item")}


class Shifted:
    """Predicts the costs with a shift of the first; records the rows it was fitted on."""

    fitted: ClassVar[list] = []

    def __init__(self, problem, *, shift, limit=np.inf, rows=0, error=DIVERGED):
        self.shift, self.limit, self.rows, self.error = shift, limit, rows, error

    def fit(self, X, y):
        if self.shift > self.limit and len(X) > self.rows:
            raise self.error
        Shifted.fitted.append(X[:, 0])
        return self

    def predict(self, X):
        return np.tile([self.shift, 2.0], (len(X), 1))


@pytest.fixture(autouse=True)
def forget():
    Shifted.fitted = []


def tuned(build=Shifted, **options):
    options = {"tries": 4, "random_state": 0} | options
    return TunedRegressor(TopK(2, 1, sense="min"), build, SHIFT, **options).fit(X, COSTS)


def test_the_best_on_the_rows_set_aside_is_fitted_again_on_all():
    model = tuned()
    regrets = {values["shift"]: regret for values, regret in model.tries_}
    assert len(regrets) == 4
    assert regrets[json.loads(model.chosen_)["shift"]] == min(regrets.values()) == 0 < max(regrets.values())
    *tries, last = Shifted.fitted
    assert [len(rows) for rows in tries] == [30] * 4
    assert all((rows == tries[0]).all() for rows in tries)  # the same rows for every try
    assert len(last) == 40


def test_without_refit_the_model_of_the_search_is_kept():
    model = tuned(refit=False, validation_fraction=0.2)
    assert [len(rows) for rows in Shifted.fitted] == [32] * 4
    assert model.predict(X[:1])[0, 0] == json.loads(model.chosen_)["shift"]


def test_draws_cover_the_range_and_are_the_same_for_the_same_state():
    drawn = [values["shift"] for values in draws(SHIFT, 8, np.random.default_rng(3))]
    parts = np.floor(8 * np.log(np.array(drawn)) / np.log(4.0))
    assert sorted(parts) == list(range(8))
    assert drawn == [values["shift"] for values in draws(SHIFT, 8, np.random.default_rng(3))]


def test_a_lost_try_is_counted_and_not_chosen():
    model = tuned(lambda problem, shift: Shifted(problem, shift=shift, limit=2.0))
    assert json.loads(model.chosen_)["lost_tries"] == 2
    with pytest.raises(DivergenceError, match="too far"):
        tuned(lambda problem, shift: Shifted(problem, shift=shift, limit=0.5))


@pytest.mark.parametrize("error", [ValueError("SpoPlus needs rows"), np.linalg.LinAlgError(), MemoryError(), OSError()])
def test_whatever_is_raised_loses_a_try_and_a_refusal_is_one_by_its_type(error):
    def failing(limit, **more):
        return partial(Shifted, limit=limit, **({"error": error} | more))

    assert json.loads(tuned(failing(2.0)).chosen_)["lost_tries"] == 2
    kept = tuned(failing(0.0, rows=30))  # the fit on all 40 rows
    assert json.loads(kept.chosen_)["lost_refit"] == reason_of(error)
    assert kept.predict(X[:1])[0, 0] == json.loads(kept.chosen_)["shift"]
    with pytest.raises(type(error)) as all_lost:
        tuned(failing(0.0))
    assert not isinstance(all_lost.value, NotForProblemError)
    with pytest.raises(NotForProblemError):
        tuned(failing(2.0, error=NotForProblemError("too few rows")))


def test_losses_and_log_links_refuse():
    portfolio = Portfolio(np.eye(2), 1.0)
    budget = {"random_state": 0, "tries": 1, "epochs": 1}
    with pytest.raises(NotForProblemError, match="Cave needs linear constraints, and Portfolio has no polyhedron"):
        linear(portfolio, loss="cave", **budget).fit(X, COSTS)
    with pytest.raises(NotForProblemError, match="a log link needs positive costs, and the smallest here is -2"):
        untuned(TopK(2, 1), model="gamma", **budget).fit(X, -COSTS)
    with pytest.raises(NotForProblemError, match="Lodl fits 2 weights per row, and 1 samples do not determine them"):
        tuned(lambda problem, shift: DecisionRegressor(problem, Lodl(n_samples=1)))


def test_every_estimator_of_the_plan_fits():
    train = make_shortest_path(40, degree=2, seed=0, grid=(2, 2))
    methods = read_plan(PLANS / "quick.toml").problems[0].methods
    others = [method for method in methods if not method.model.endswith(":linear")]
    assert len(others) >= 12
    for method in others:
        parameters = method.parameters | {"tries": 1, "epochs": 2}
        model = resolve(method.model)(train.problem, random_state=0, **parameters).fit(train.X, train.costs)
        assert np.isfinite(model.predict(train.X)).all(), method.name
