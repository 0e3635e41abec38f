"""Costly candidates are tried on one fold first, jobs do not change the result, and failures are rows."""

import re
from itertools import count
from time import sleep

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from decidewise import WiseRegressor, WiseRegressorCV, normalized_regret
from decidewise.data import make_shortest_path
from decidewise.kit import batches
from decidewise.kit.errors import TimeLimitReached
from decidewise.models import Candidates, ClippedWise, GeneralizedLinear, TimeFolds, default_candidates
from decidewise.models.selection.last_fits import fit_all
from decidewise.models.selection.polish import polished, solves_within
from decidewise.models.selection.ridge_path import fit_path, ridge_paths
from decidewise.problems import Ball, CountedProblem, TopK


@pytest.fixture(scope="module")
def data():
    return make_shortest_path(150, degree=6, seed=3)


class Upside(BaseEstimator):
    """Predicts ones, or minus ones in some rows; counts the fits of all copies."""

    fits = 0

    def __init__(self, wrong=0):
        self.wrong = wrong

    def fit(self, X, y):
        Upside.fits += 1
        return self

    def predict(self, X):
        return np.where(self.wrong > X, -1.0, 1.0)


X, COSTS = np.arange(100.0)[:, None], np.ones((100, 1))


def on_trial(base, **groups):
    menu = Candidates(base)
    for family, members in groups.items():
        menu.serve(family, "", groups=[members], on_trial=True)
    return menu


class TestTrial:
    def fit(self, menu, **settings):
        Upside.fits = 0
        return WiseRegressorCV(Ball(1), menu, random_state=0, **settings).fit(X, COSTS)

    def test_a_family_whose_lead_is_clearly_worse_is_dropped_after_one_fold(self):
        menu = on_trial({"good": Upside()}, bad={"bad": Upside(50), "worse": Upside(90)})
        model = self.fit(menu)
        assert Upside.fits == 5 + 1 + 1  # five folds, the trial of the lead, the last fit
        results = model.cv_results_
        assert results["status"].tolist() == ["scored", "dropped", "dropped"]
        assert "where the best so far had 0.00 %" in results["note"][1]
        assert results["note"][2] == "not tried, since 'bad' was not good enough on one fold"
        assert results["n_solves"].tolist() == [100, 20, 0]
        assert model.n_solves_ == 222  # two to find that something is always decided

    def test_those_that_hold_their_own_are_scored_on_all_folds(self):
        menu = on_trial({"bad": Upside(60)}, good={"good": Upside(1), "also bad": Upside(90), "also good": Upside(2)})
        model = self.fit(menu, rule="minimum")
        assert model.best_name_ == "good"
        assert model.cv_results_["status"].tolist() == ["scored", "scored", "dropped", "scored"]
        assert model.n_solves_ == 2 + 100 + 100 + 3 * 20 + 2 * 80  # the fold of the trial is not scored again
        alone = self.fit({"bad": Upside(60), "good": Upside(1), "also good": Upside(2)}).cv_results_["regret"]
        np.testing.assert_allclose(model.cv_results_["regret"][[0, 1, 3]], alone)

    def test_a_quick_version_that_is_far_worse_spares_the_lead(self):
        menu = on_trial({"good": Upside()}, bad={"bad": Upside(50), "worse": Upside(90)}, fine={"fine": Upside(1)})
        menu.previews = {"bad": Upside(60), "fine": Upside(2)}
        problem = CountedProblem(Ball(1))
        model = WiseRegressorCV(problem, menu, random_state=0).fit(X, COSTS)
        results = model.cv_results_
        assert results["status"].tolist() == ["scored", "dropped", "dropped", "scored"]
        assert results["note"][1].startswith("dropped after a preview on one fold, with 1")
        assert results["n_solves"].tolist() == [100, 20, 0, 120]  # the preview of the last is counted too
        assert model.n_solves_ == problem.n_solves

    def test_in_the_order_of_time_the_trial_is_on_the_last_fold_which_has_most_training_rows(self):
        menu = on_trial({"bad": Upside(20)}, late={"wrong in the first stretches alone": Upside(80)})
        model = self.fit(menu, cv=TimeFolds(4))
        assert model.cv_results_["status"].tolist() == ["scored", "scored"]

    def test_without_anything_to_compare_with_all_are_scored(self):
        model = self.fit(on_trial({}, only={"only": Upside(), "other": Upside(3)}))
        assert model.cv_results_["status"].tolist() == ["scored", "scored"]

    def test_solver_calls_stay_within_their_limit(self):
        problem = CountedProblem(Ball(1))
        menu = on_trial({"bad": Upside(60)}, good={f"good {i}": Upside(i % 3) for i in range(20)})
        model = WiseRegressorCV(problem, menu, max_solves=300, random_state=0).fit(X, COSTS)
        assert problem.n_solves == model.n_solves_ <= 300


def test_jobs_do_not_change_the_result(data):
    alone, together = (
        WiseRegressorCV(data.problem, n_jobs=n_jobs, cv=3, random_state=0).fit(data.X, data.costs)
        for n_jobs in (None, 2)
    )
    assert alone.members_ == together.members_
    np.testing.assert_array_equal(alone.cv_results_["regret"], together.cv_results_["regret"])
    np.testing.assert_array_equal(alone.predict(data.X), together.predict(data.X))


class TestRidgePath:
    def test_a_path_is_the_separate_fits(self, data):
        ridges = {str(a): WiseRegressor(GeneralizedLinear(alpha=a)) for a in (0.0, 0.1, 10.0)}
        together = WiseRegressorCV(data.problem, ridges, random_state=0).fit(data.X, data.costs).cv_results_["regret"]
        alone = [
            WiseRegressorCV(data.problem, [model], random_state=0).fit(data.X, data.costs).cv_results_["regret"][0]
            for model in ridges.values()
        ]
        np.testing.assert_allclose(together, alone, rtol=1e-9)

    @pytest.mark.parametrize("deviance", ["gamma", "poisson"])
    def test_a_log_linear_path_is_the_separate_fits(self, data, deviance):
        path = [
            WiseRegressor(make_pipeline(StandardScaler(), GeneralizedLinear(deviance, alpha=a))) for a in (0.01, 0.1, 1)
        ]
        together = fit_path([clone(model) for model in path], data.X, data.costs)
        for model, shared in zip(path, together, strict=True):
            assert shared.estimator_[-1].alpha == model.estimator[-1].alpha
            np.testing.assert_allclose(shared.predict(data.X), model.fit(data.X, data.costs).predict(data.X), rtol=1e-6)
        assert ridge_paths(dict(enumerate(path))) == [[0, 1, 2]]
        log_squared = {a: WiseRegressor(GeneralizedLinear(link="log", alpha=a)) for a in (0.1, 1.0)}
        assert len(ridge_paths(log_squared)) == 2  # which has several minima: each has a start of its own

    def test_a_ridge_that_fails_does_not_fail_the_others_of_its_path(self, data):
        ridges = {str(a): WiseRegressor(GeneralizedLinear("gamma", alpha=a)) for a in (0.1, 1.0, 1e300)}
        model = WiseRegressorCV(data.problem, ridges, random_state=0).fit(data.X, data.costs)
        assert model.cv_results_["status"].tolist() == ["scored", "scored", "failed"]
        assert "outweighs" in model.cv_results_["error"][2]

    def test_rows_are_read_once_for_the_whole_path(self, data, monkeypatch):
        calls = []
        fit = GeneralizedLinear.fit_blocks
        monkeypatch.setattr(GeneralizedLinear, "fit_blocks", lambda self, blocks: calls.append(1) or fit(self, blocks))
        ridges = [WiseRegressor(GeneralizedLinear(alpha=a)) for a in (0.1, 1.0, 10.0, 100.0)]
        WiseRegressorCV(data.problem, ridges, rule="minimum", random_state=0).fit(data.X, data.costs)
        assert len(calls) == 5 + 1


class SlowTopK(TopK):
    def minimize(self, costs):
        sleep(1e-3 * len(costs))
        return super().minimize(costs)


class TestPolish:
    def test_a_linear_model_that_decides_well_is_found_with_solver_calls(self):
        # Cubes keep the order of their bases: a linear model can decide well, but not one fitted to the cubes.
        rng = np.random.default_rng(0)
        features = rng.normal(size=(300, 4))
        bases = features @ (rng.normal(size=(4, 8)) * np.array([1, 1, 0.3, 0.3, 2, 2, 1, 0.5]))
        costs = bases**3 + rng.normal(size=(300, 8))
        problem = CountedProblem(TopK(8, 2))
        few = [WiseRegressor(exponent=0), WiseRegressor()]
        model = WiseRegressorCV(problem, few, train_solves=100_000, random_state=0).fit(features, costs)
        assert model.best_name_.startswith("spo+")
        assert sum(weight for name, weight in model.weights_.items() if name.startswith("spo+")) > 0.5
        assert problem.n_solves <= model.n_solves_ + 100_000

    def test_weights_that_fit_the_costs_are_not_taken_where_they_decide_worse(self):
        # Models fitted to the cubes predict them better than SPO+ does, and decide worse.
        rng = np.random.default_rng(4)
        features = rng.normal(size=(5300, 4))
        costs = (features @ (rng.normal(size=(4, 8)) * np.array([1, 1, 0.3, 0.3, 2, 2, 1, 0.5]))) ** 3
        few = [WiseRegressor(exponent=0), WiseRegressor()]
        model = WiseRegressorCV(TopK(8, 2), few, train_solves=100_000, random_state=0)
        model.fit(features[:300], costs[:300])
        assert all(name.startswith("spo+") for name in model.members_)
        alone = [clone(each).fit(features[:300], costs[:300]).predict(features[300:]) for each in few]
        others = [normalized_regret(TopK(8, 2), prediction, costs[300:]) for prediction in alone]
        assert -model.score(features[300:], costs[300:]) < 0.9 * min(others)

    def test_one_model_for_all_items_with_the_wrong_sign_is_turned_round(self):
        # The value of an item is a cubic of its feature: its slope is negative, but the best item has a large feature.
        def draw(n, seed):
            features = np.random.default_rng(seed).uniform(-1, 1, (n, 50, 1))
            return features, 10 * (features[:, :, 0] ** 3 - 0.65 * features[:, :, 0])

        problem = TopK(50, 1)
        (features, costs), (new, truth) = draw(120, 0), draw(500, 1)

        def share_of_the_best(model):
            decisions = problem.solve(model.fit(features, costs).predict(new))
            return (decisions * truth).sum() / truth.max(axis=1).sum()

        linear = [WiseRegressor(exponent=0), WiseRegressor()]
        assert max(map(share_of_the_best, linear)) < -0.9
        choice = WiseRegressorCV(problem, linear, train_solves=50_000, random_state=0)
        assert share_of_the_best(choice) > 0.9
        assert all(name.startswith("spo+") for name in choice.members_)
        # The default candidates include models that express a cubic, and need no solver in training.
        assert share_of_the_best(WiseRegressorCV(problem, random_state=0)) > 0.95

    def test_spo_plus_also_starts_from_the_model_that_items_share(self):
        # As above, but the best linear candidate has coefficients for each item: it is not the plain WISE fit.
        own = WiseRegressor(GeneralizedLinear(per_item="coefficients"))
        trained, note = polished(TopK(50, 1), {"own": own}, [(np.arange(9), np.arange(9))], 9, 10**6)
        assert list(trained) == ["spo+ from own", "spo+ from wise"]
        assert note == "30 epochs from own and wise, with up to 1,260 solver calls for training"
        # Whoever names it like plain WISE does not lose it.
        trained, _ = polished(TopK(50, 1), {"wise": own}, [(np.arange(9), np.arange(9))], 9, 10**6)
        assert trained["spo+ from wise"].per_item == "coefficients"

    def test_training_starts_from_the_candidate_itself_and_from_the_best_alone_if_both_take_too_many_calls(self):
        candidates = {"clipped": ClippedWise(scale="iterated", clip=0.3), "wise": WiseRegressor()}
        splits = [(np.arange(9), np.arange(9))]
        trained, _ = polished(TopK(5, 1), candidates, splits, 9, 10**6)
        start = trained["spo+ from clipped"].init
        assert (type(start), start.scale, start.clip) == (ClippedWise, "iterated", 0.3)
        trained, note = polished(TopK(5, 1), candidates, splits, 9, 18 * (3 + 5))
        assert list(trained) == ["spo+ from clipped"]
        assert note == "3 epochs from clipped, with up to 144 solver calls for training"

    def test_auto_trains_about_as_long_as_the_search_and_says_what_it_took_and_gained(self):
        rng = np.random.default_rng(0)
        features = rng.normal(size=(100, 4))
        costs = (features @ rng.normal(size=(4, 8))) ** 3 + rng.normal(size=(100, 8))
        # All candidates, so that the search takes far longer than a batch of calls also on a machine that is busy.
        model = WiseRegressorCV(TopK(8, 2), train_solves="auto", random_state=0).fit(features, costs)
        note = (
            r"\d+ epochs from .* with up to [\d,]+ solver calls for training: \d.* seconds; the lowest regret is .* %"
        )
        assert re.match(note, model.notes_["SPO+"])
        assert [name for name in model.cv_results_["candidate"] if name.startswith("spo+ from")]
        assert solves_within(SlowTopK(8, 2), costs, seconds=0.1) <= 100  # of a millisecond each
        model.set_params(problem=SlowTopK(8, 2), max_seconds=1e-9).fit(features, costs)
        assert "no solver calls are allowed" in model.notes_["SPO+"]
        with pytest.raises(ValueError, match="auto"):
            model.set_params(train_solves="much").fit(features, costs)

    def test_a_budget_that_is_too_small_is_said(self, data):
        model = WiseRegressorCV(data.problem, [WiseRegressor()], train_solves=100).fit(data.X, data.costs)
        assert model.notes_["SPO+"].startswith("left out: one epoch takes 4,500 solver calls for training, more than")
        assert (
            WiseRegressorCV(data.problem, [WiseRegressor()]).fit(data.X, data.costs).notes_["SPO+"].startswith("left")
        )


class TestDeadline:
    """After the deadline no fit goes on: every kind is stopped between two of its steps."""

    @pytest.mark.parametrize(
        "name", ["least squares", "gamma", "gamma, ridge 0.1", "wise iterated", "trees", "least squares + trees"]
    )
    def test_a_fit_is_stopped_on_the_way(self, data, name, monkeypatch):
        features, costs = np.tile(data.X, (2, 6)), np.tile(data.costs[:, :3], (2, 1))
        model = default_candidates(features, costs)[name]
        for n_checks in range(2 if name == "least squares" else 5):  # a step or two between any two of them
            ticks = count()
            monkeypatch.setattr(batches, "perf_counter", lambda ticks=ticks: next(ticks))
            with batches.time_limit(n_checks - 0.5), pytest.raises(TimeLimitReached):
                clone(model).fit(features, costs)

    def test_only_the_first_candidate_is_spared(self, data):
        late = on_trial({"first": DummyRegressor(), "second": WiseRegressor()}, more={"lead": WiseRegressor()})
        late.previews = {"lead": WiseRegressor()}
        model = WiseRegressorCV(data.problem, late, max_seconds=1e-9, train_solves=10**6).fit(data.X, data.costs)
        results = dict(zip(model.cv_results_["candidate"], model.cv_results_["status"], strict=True))
        assert results.pop("first") == "scored"
        assert list(results) == ["second", "lead", "spo+ from wise"]
        assert set(results.values()) == {"not tried"}
        assert model.members_ == ["first"]
        assert set(model.cv_results_["note"][1:]) == {"max_seconds was reached"}

    def test_of_the_last_fits_the_quickest_is_spared_and_the_others_are_left_out(self, data):
        models = {"slow": WiseRegressor(), "quick": DummyRegressor()}
        found = fit_all(models, data.X, data.costs, seconds={"slow": 2.0, "quick": 1.0}, deadline=0.0)
        assert found[0] is None
        assert found[1].predict(data.X).shape == data.costs.shape
        assert fit_all({}, data.X, data.costs, seconds={}) == []

    @pytest.fixture
    def slow(self, monkeypatch):
        """Return a candidate each of whose fits takes an hour, on a clock that stands still otherwise."""
        now = [0.0]
        for place in ("kit.batches.perf_counter", "models.selection.race.perf_counter"):
            monkeypatch.setattr(f"decidewise.{place}", lambda: now[0])
        for place in ("models.selection.race.time", "models.selection.search.time", "models.wise_regressor_cv.time"):
            monkeypatch.setattr(f"decidewise.{place}", lambda: now[0])

        class Slow(DummyRegressor):
            def fit(self, X, y, sample_weight=None):
                now[0] += 3600.0
                return super().fit(X, y, sample_weight)

        return Slow()

    def test_a_candidate_whose_folds_take_too_long_is_stopped(self, data, slow):
        candidates = {"first": DummyRegressor(), "slow": slow}
        model = WiseRegressorCV(data.problem, candidates, max_seconds=3000).fit(data.X, data.costs)
        assert model.cv_results_["note"].tolist() == ["", "stopped when max_seconds was reached"]
        assert model.cv_results_["status"][1] == "not tried"

    def test_a_limit_of_the_caller_ends_the_choice(self, data, slow):
        candidates = {"first": DummyRegressor(), "slow": slow}
        with batches.time_limit(3000), pytest.raises(TimeLimitReached):
            WiseRegressorCV(data.problem, candidates).fit(data.X, data.costs)
