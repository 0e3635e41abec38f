"""What must be beaten: the forecast at hand, the training mean, or doing nothing; in memory and in passes alike."""

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.model_selection import PredefinedSplit

from decidewise import GeneralizedLinear, WiseRegressor, WiseRegressorCV, normalized_regret
from decidewise.evaluate import decision_regret
from decidewise.models import Candidates, GivenForecast
from decidewise.models.selection.null_models import DO_NOTHING, NullModels, doing_nothing, with_nothing
from decidewise.problems import Knapsack, LinearProgram, Storage, TopK
from decidewise.rows import ArrayRows

HOURS = 6
BATTERY = Storage(HOURS, 1.0, 2.0, efficiency=0.9)
FEW = {"training mean": DummyRegressor(), "least squares": GeneralizedLinear(), "wise": WiseRegressor()}


def days(n, seed, *, swing, noise=0.2):
    """Return two features of each day, its prices, and the part of these that is known."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    known = 5 + swing * np.outer(X[:, 0], np.sin(2 * np.pi * np.arange(HOURS) / HOURS))
    return X, known + noise * rng.normal(size=(n, HOURS)), known


class TestDoingNothing:
    @pytest.mark.parametrize("problem", [BATTERY, Knapsack([[1.0] * HOURS], [3.0])])
    def test_is_a_candidate_where_it_is_possible(self, problem):
        _, costs, _ = days(20, 0, swing=1.0)
        model, n_solves = doing_nothing(problem, costs)
        assert not problem.solve(model.fit(costs, costs).predict(costs)).any()
        assert n_solves <= 2

    def test_is_none_where_something_must_be_decided_or_the_answer_has_no_bound(self):
        _, costs, _ = days(20, 0, swing=1.0)
        assert doing_nothing(TopK(HOURS, 2), costs) == (None, 2)
        free = LinearProgram(np.ones((1, HOURS)), [1.0], lower=0, sense="max")  # at most one; zero only at a loss
        assert doing_nothing(free, costs)[0] is not None
        assert doing_nothing(BATTERY, np.zeros_like(costs)) == (None, 0)

    def test_must_be_possible_in_every_row(self):
        _, costs, _ = days(20, 0, swing=1.0)
        at_least = np.zeros((20, 1))
        program = LinearProgram(-np.ones((1, HOURS)), -at_least, lower=0, upper=1, sense="min")
        assert doing_nothing(program, costs)[1] == 1 + 20
        at_least[7] = 1.0
        assert doing_nothing(LinearProgram(-np.ones((1, HOURS)), -at_least, lower=0, upper=1), costs)[0] is None

    def test_stands_behind_the_other_null_models_of_a_menu(self):
        menu = Candidates(FEW)
        found, _ = with_nothing(menu, BATTERY, np.ones((4, HOURS)))
        assert list(found) == ["training mean", DO_NOTHING, "least squares", "wise"]
        assert "zero" in found.notes[DO_NOTHING]

    @pytest.mark.parametrize("seed", range(6))
    def test_on_a_flat_series_no_money_is_lost(self, seed):
        X, prices, _ = days(360, seed, swing=0.0)
        model = WiseRegressorCV(BATTERY, random_state=0).fit(X[:60], prices[:60])
        assert model.cv_results_["regret"][list(model.cv_results_["candidate"]).index(DO_NOTHING)] == pytest.approx(100)
        assert (BATTERY.solve(model.predict(X[60:])) * prices[60:]).sum() >= 0

    def test_where_prices_swing_something_is_done(self):
        X, prices, _ = days(400, 0, swing=2.0)
        model = WiseRegressorCV(BATTERY, Candidates(FEW), random_state=0).fit(X[:100], prices[:100])
        assert DO_NOTHING not in model.members_
        assert normalized_regret(BATTERY, model.predict(X[100:]), prices[100:]) < 30


class TestForecast:
    """With a forecast, the training mean is a baseline, and the average is drawn to the best forecast."""

    def data(self, noise=0.3):
        X, prices, known = days(300, 0, swing=2.0)
        rng = np.random.default_rng(1)
        forecasts = [known + size * rng.normal(size=known.shape) for size in (noise, 3.0)]
        return np.hstack([X, *forecasts]), prices

    def fit(self, X, prices, **settings):
        forecast = {"good": range(2, 2 + HOURS), "bad": range(2 + HOURS, 2 + 2 * HOURS)}
        return WiseRegressorCV(TopK(HOURS, 2), Candidates(FEW), forecast=forecast, random_state=0, **settings).fit(
            X, prices
        )

    def test_the_best_of_several_is_the_null_model(self):
        model = self.fit(*self.data(0.0))
        status = dict(zip(model.cv_results_["candidate"], model.cv_results_["status"], strict=True))
        assert status == {
            "good": "scored",
            "bad": "scored",
            "training mean": "baseline",
            "least squares": "scored",
            "wise": "scored",
        }
        assert model.null_model_ == "good"
        assert "good" in model.members_
        assert "% of the average" in model.notes_["null model"]

    def test_one_that_is_beaten_gets_nothing(self):
        model = self.fit(*self.data(2.0))
        assert model.null_model_ == "good"
        assert "good" not in model.members_
        assert "proven to be beaten" in model.notes_["null model"]

    @pytest.mark.parametrize("rule", ["average", "minimum"])
    def test_the_mean_is_not_chosen_even_if_it_is_the_best_on_an_easy_season(self, rule):
        X, prices, _ = days(90, 0, swing=0.0)
        X = np.hstack([X, np.random.default_rng(2).normal(size=(90, 2 * HOURS))])
        model = self.fit(X, prices, rule=rule)
        assert model.cv_results_["candidate"][np.nanargmin(model.cv_results_["regret"])] == "training mean"
        assert "training mean" not in model.members_
        assert model.best_name_ != "training mean"

    def test_in_passes_over_rows_the_rule_is_the_same(self):
        X, prices = self.data()
        folds = PredefinedSplit(np.arange(len(X)) % 5)
        expected = self.fit(X, prices, cv=folds)
        forecast = {"good": range(2, 2 + HOURS), "bad": range(2 + HOURS, 2 + 2 * HOURS)}
        found = WiseRegressorCV(TopK(HOURS, 2), Candidates(FEW), forecast=forecast, random_state=0)
        found.fit_rows(ArrayRows(X, prices, block_rows=100))
        assert found.cv_results_["status"].tolist() == expected.cv_results_["status"].tolist()
        assert found.weights_ == pytest.approx(expected.weights_, rel=1e-6)
        assert found.null_model_ == expected.null_model_
        assert found.notes_["null model"] == expected.notes_["null model"]

    def test_in_passes_nothing_is_done_on_a_flat_series_either(self):
        X, prices, _ = days(200, 0, swing=0.0)
        found = WiseRegressorCV(BATTERY, Candidates(FEW), random_state=0).fit_rows(ArrayRows(X, prices, block_rows=50))
        assert (BATTERY.solve(found.predict(X)) * prices).sum() >= 0


class TestSeasons:
    """Rows that come later are of another kind; the choice is not worse than its null model by a standard error."""

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("problem", [BATTERY, TopK(HOURS, 2, sense="min")], ids=["battery", "cheapest hours"])
    @pytest.mark.parametrize("kind", ["easy, then hard", "a forecast that degrades", "features that say nothing"])
    def test_the_null_model_is_kept_or_beaten(self, kind, problem, seed):
        rng, n, n_train = np.random.default_rng(seed), 360, 90
        later = np.arange(n)[:, None] >= n_train
        swing, error = np.full((n, 1), 1.5), np.full((n, 1), 0.6)
        if kind == "easy, then hard":  # on the easy season the mean decides about as well as the forecast
            swing, error = np.where(later, 1.5, 0.3), np.where(later, 0.6, 0.12)
        elif kind == "a forecast that degrades":
            error = np.where(later, 1.2, 0.6)
        wave = np.sin(2 * np.pi * np.arange(HOURS) / HOURS)
        known = 5 + wave + swing * rng.normal(size=(n, 1)) * np.roll(wave, 1)
        prices = known + 0.5 * rng.normal(size=(n, HOURS))
        X, forecast = known + error * rng.normal(size=(n, HOURS)), range(HOURS)
        if kind == "features that say nothing":
            X, forecast = rng.normal(size=(n, HOURS)), None
        model = WiseRegressorCV(problem, Candidates(FEW), forecast=forecast, random_state=0)
        model.fit(X[:n_train], prices[:n_train], times=np.arange(n_train))
        new, truth = X[n_train:], prices[n_train:]
        null = model.candidates_[model.null_model_].fit(X[:n_train], prices[:n_train]).predict(new)
        own, least = (decision_regret(problem, prediction, truth) for prediction in (model.predict(new), null))
        more = own - least
        assert more.mean() <= more.std(ddof=1) / np.sqrt(len(more))


def test_without_a_forecast_the_mean_is_the_null_model():
    assert NullModels.of(FEW) == NullModels(("training mean",), ("training mean",), ())
    given = {**FEW, "forecast": GivenForecast([0]), "zero": DummyRegressor(strategy="constant", constant=[0.0])}
    assert NullModels.of(given) == NullModels(("forecast", "zero"), ("training mean", "zero"), ("training mean",))
