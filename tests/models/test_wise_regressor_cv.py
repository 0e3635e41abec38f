"""The choice is by out-of-fold regret, computed here a second time by scikit-learn's means, and within its budget."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GroupKFold, KFold, RepeatedKFold, TimeSeriesSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from decidewise import GeneralizedLinear, OptimalityWarning, WiseRegressor, WiseRegressorCV
from decidewise.data import make_knapsack, make_shortest_path
from decidewise.evaluate import decision_regret, normalized_regret
from decidewise.kit.scaling import unit_rows
from decidewise.models import TimeFolds, default_candidates
from decidewise.models.selection.scores import close
from decidewise.problems import Ball, CountedProblem, LinearProgram, TopK

FEW = {"mean": DummyRegressor(), "least squares": LinearRegression(), "wise": WiseRegressor()}


@pytest.mark.filterwarnings("ignore:there is one cost only")
@parametrize_with_checks(
    [WiseRegressorCV(Ball(1), {"least squares": LinearRegression(), "wise": WiseRegressor()})],
    expected_failed_checks=lambda _: {"check_regressor_multioutput": "the problem fixes the number of outputs"},
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    return make_shortest_path(700, degree=6, seed=1).split(200)


class Unfit(BaseEstimator):
    def fit(self, X, y):
        raise OSError("the licence has expired")

    def predict(self, X):
        raise NotImplementedError


class StrangeError(Exception):
    """An exception that cannot be sent to another process, since it takes two arguments and keeps one."""

    def __init__(self, one, other):
        super().__init__(one)


class FailsFrom(BaseEstimator):
    """WISE, which fails with more than so many rows: in its fit, or in the prediction of any rows."""

    def __init__(self, rows, error, predicts=True):
        self.rows, self.error, self.predicts = rows, error, predicts

    def fit(self, X, y):
        if len(X) > self.rows:
            raise self.error
        self.model_ = WiseRegressor().fit(X, y)
        return self

    def predict(self, X):
        if not self.predicts:
            raise self.error
        return self.model_.predict(X)


class Expert(BaseEstimator):
    """Knows the costs but for some rows, which it predicts upside down; it recognises rows by their first feature."""

    def __init__(self, costs, wrong=()):
        self.costs, self.wrong = costs, wrong

    def fit(self, X, y):
        return self

    def predict(self, X):
        rows = X[:, 0].astype(int)
        return np.where(np.isin(rows, self.wrong)[:, None], -1.0, 1.0) * self.costs[rows]


class TestScores:
    @pytest.mark.parametrize(
        ("cv", "groups"),
        [
            (KFold(4), None),
            (list(KFold(3).split(np.zeros((200, 1)))), None),
            (GroupKFold(3), np.arange(200) // 7),
        ],
    )
    def test_regret_is_that_of_cross_val_predict(self, data, cv, groups):
        train, _ = data
        model = WiseRegressorCV(train.problem, FEW, cv=cv).fit(train.X, train.costs, groups=groups)
        for name, regret in zip(FEW, model.cv_results_["regret"], strict=True):
            predicted = cross_val_predict(FEW[name], train.X, train.costs, cv=cv, groups=groups)
            assert regret == pytest.approx(normalized_regret(train.problem, predicted, train.costs))

    def test_standard_errors_are_those_of_a_bootstrap_and_paired_ones_are_smaller(self, data):
        train, _ = data
        model = WiseRegressorCV(train.problem, FEW, cv=KFold(5)).fit(train.X, train.costs)
        regret = {
            name: decision_regret(train.problem, cross_val_predict(FEW[name], train.X, train.costs), train.costs)
            for name in ("least squares", "wise")
        }
        best = np.einsum("ij,ij->i", train.costs, train.problem.solve(train.costs))
        drawn = np.random.default_rng(0).integers(200, size=(4000, 200))
        resampled = {name: 100 * r[drawn].sum(1) / best[drawn].sum(1) for name, r in regret.items()}
        results = model.cv_results_
        assert results["candidate"][results["rank"].argmin()] == "wise"
        assert results["standard_error"][1] == pytest.approx(resampled["least squares"].std(), rel=0.1)
        paired = (resampled["least squares"] - resampled["wise"]).std()
        assert results["difference_standard_error"][1] == pytest.approx(paired, rel=0.1)
        assert results["difference"][1] == pytest.approx(results["regret"][1] - results["regret"][2])

    def test_rows_never_held_out_do_not_count(self, data):
        train, _ = data
        cv = TimeSeriesSplit(4)
        model = WiseRegressorCV(train.problem, {"wise": WiseRegressor()}, cv=cv).fit(train.X, train.costs)
        predicted = [WiseRegressor().fit(train.X[a], train.costs[a]).predict(train.X[b]) for a, b in cv.split(train.X)]
        regret = normalized_regret(train.problem, np.concatenate(predicted), train.costs[40:])
        assert model.cv_results_["regret"][0] == pytest.approx(regret)
        assert model.n_solves_ == 160 + 160

    def test_a_row_held_out_several_times_counts_once(self, data):
        train, _ = data
        cv = RepeatedKFold(n_splits=3, n_repeats=4, random_state=0)
        model = WiseRegressorCV(train.problem, {"wise": WiseRegressor()}, cv=cv).fit(train.X, train.costs)
        total = np.zeros(200)
        for a, b in cv.split(train.X):
            predicted = WiseRegressor().fit(train.X[a], train.costs[a]).predict(train.X[b])
            total[b] += decision_regret(train.problem, predicted, train.costs[b]) / 4
        best = np.einsum("ij,ij->i", train.costs, train.problem.solve(train.costs))
        assert model.cv_results_["regret"][0] == pytest.approx(100 * total.sum() / best.sum())
        assert model.n_solves_ == 200 + 4 * 200

    def test_an_integer_makes_shuffled_folds_or_groups(self, data):
        train, _ = data
        order = np.argsort(train.X[:, 0])  # in this order, folds without a shuffle would ask for extrapolation
        wise = {"wise": WiseRegressor()}
        shuffled = WiseRegressorCV(train.problem, wise, random_state=0).fit(train.X[order], train.costs[order])
        in_order = WiseRegressorCV(train.problem, wise, cv=KFold(5)).fit(train.X[order], train.costs[order])
        assert shuffled.cv_results_["regret"][0] < in_order.cv_results_["regret"][0]
        groups = np.arange(200) // 40
        grouped = WiseRegressorCV(train.problem, wise).fit(train.X, train.costs, groups=groups)
        left_out = WiseRegressorCV(train.problem, wise, cv=KFold(5)).fit(train.X, train.costs)
        assert grouped.cv_results_["regret"][0] == pytest.approx(left_out.cv_results_["regret"][0])


class TestChoice:
    # 100 rows of ±1: an expert errs where it is told to, and each error costs 2 of an optimal value of 1.
    X, costs = np.arange(100.0)[:, None], np.ones((100, 1))

    def choose(self, *wrong, **settings):
        candidates = [Expert(self.costs, rows) for rows in wrong]
        return WiseRegressorCV(Ball(1), candidates, random_state=0, **settings).fit(self.X, self.costs)

    def test_those_within_one_paired_standard_error_are_close(self):
        # Two errors against none differ by 4 % with a standard error of 2.8 %; against one elsewhere by 2 % and 3.4 %.
        assert close(self.choose([7, 8], []).cv_results_).tolist() == [1]
        assert close(self.choose([7, 8], [9]).cv_results_).tolist() == [0, 1]
        assert close(self.choose([7, 8, 9], [7, 8], [5]).cv_results_).tolist() == [1, 2]

    def test_those_within_one_standard_error_are_averaged_or_the_lowest_is_taken(self):
        averaged = self.choose([7, 8, 9, 10], [7, 8], [5])
        assert averaged.members_ == ["2 Expert", "3 Expert"]
        assert averaged.best_name_ == "3 Expert"
        # Half of the weight is equal. The other half is fitted: with errors in different rows, the fit counts them, by
        # the inverse of the Gram matrix [[100, 94], [94, 100]] times the products [96, 98] with the truth.
        fitted = np.linalg.solve([[100, 94], [94, 100]], [96, 98])
        weights = 0.25 + 0.5 * fitted / fitted.sum()
        np.testing.assert_allclose(list(averaged.weights_.values()), weights, rtol=1e-3)
        first, second = averaged.weights_.values()
        expected = [1, first - second, 1, second - first, second - first]  # where one is upside down
        np.testing.assert_allclose(averaged.predict(self.X)[4:9, 0], expected)
        assert self.choose([7, 8, 9, 10], [7, 8], [5], rule="minimum").members_ == ["3 Expert"]

    @pytest.mark.parametrize(("wrong", "n_of_mean"), [([], 0), ([90], 1), ([90, 91], 1)])
    def test_the_training_mean_has_a_share_until_another_is_proven_better(self, wrong, n_of_mean, capsys):
        # The mean is wrong in the four rows with negative costs, and an expert in rows of its own.
        costs = np.where(self.X < 4, -1.0, 1.0)
        candidates = {"mean": DummyRegressor(), "expert": Expert(costs, wrong)}
        model = WiseRegressorCV(Ball(1), candidates, random_state=0).fit(self.X, costs)
        more = np.repeat([2.0, -2.0, 0.0], [4, len(wrong), 96 - len(wrong)])
        n_errors = more.mean() / (more.std(ddof=1) / 10)
        share = max(0.0, 1 - n_errors / 2)
        weights = {"expert": 1 - share} | ({"mean": share} if n_of_mean else {})
        if n_errors < 1:  # then the mean is also one of the candidates that are close
            weights = {"mean": share + (1 - share) / 4, "expert": 0.75 * (1 - share)}  # all of the fitted half
        assert model.weights_ == pytest.approx(weights)
        expert = np.sign(costs) * np.where(np.isin(self.X, wrong), -1.0, 1.0)
        expected = weights["expert"] * expert + weights.get("mean", 0.0)
        size = weights["expert"] + weights.get("mean", 0.0) * abs(costs.mean())  # an expert predicts sizes of one
        np.testing.assert_allclose(model.predict(self.X), size * expected)
        print(model.summary())
        said = "% of the average, since no candidate is proven to decide better"
        assert (said in capsys.readouterr().out) == bool(n_of_mean)

    def test_what_is_hard_for_all_does_not_blur_the_difference(self):
        hard = list(range(50))
        model = self.choose([*hard, 60, 61], hard)
        assert model.best_index_ == 1
        assert model.cv_results_["standard_error"][0] > model.cv_results_["difference"][0]

    def test_equal_candidates_go_to_the_first(self):
        assert self.choose([3], [3]).best_name_ == "1 Expert"

    def test_results_are_columns_of_a_frame(self):
        frame = pd.DataFrame(self.choose([1, 2, 3], []).cv_results_).set_index("candidate")
        assert frame["regret"].to_dict() == {"1 Expert": pytest.approx(6), "2 Expert": 0}
        assert frame["rank"].to_dict() == {"1 Expert": 2, "2 Expert": 1}
        assert (frame["n_solves"] == 100).all()


def test_the_log_link_is_found_and_pays(data):
    train, test = data
    model = WiseRegressorCV(train.problem, random_state=0).fit(train.X, train.costs)
    assert "gamma" in model.best_name_ or "poisson" in model.best_name_ or "log" in model.best_name_
    least_squares = normalized_regret(
        test.problem, LinearRegression().fit(train.X, train.costs).predict(test.X), test.costs
    )
    assert -model.score(test.X, test.costs) < 0.6 * least_squares
    candidates = default_candidates(train.X, train.costs)
    members = {name: clone(candidates[name]).fit(train.X, train.costs).predict(test.X) for name in model.members_}
    average = sum(model.weights_[name] * unit_rows(prediction) for name, prediction in members.items())
    np.testing.assert_allclose(unit_rows(model.predict(test.X)), unit_rows(average))


class TestDefaults:
    def test_log_links_only_for_positive_costs(self, data):
        train, _ = data
        positive = default_candidates(train.X, train.costs)
        negative = default_candidates(train.X, train.costs - train.costs.mean())
        assert {"gamma", "wise gamma", "poisson", "wise 0.75 log squared"} <= positive.keys()
        assert list(negative)[:4] == ["training mean", "least squares", "wise 0.75", "wise"]
        assert not any("gamma" in name or "poisson" in name or "log" in name for name in negative)
        assert negative.notes["log links"].startswith("left out: ")

    def test_quadratic_features_only_with_three_rows_for_each_and_not_too_many(self):
        costs = np.ones((60, 2))
        assert any("quadratic" in name for name in default_candidates(np.zeros((60, 5)), costs))  # 20 features
        assert not any("quadratic" in name for name in default_candidates(np.zeros((59, 5)), costs[1:]))
        assert not any("quadratic" in name for name in default_candidates(np.zeros((900, 20)), np.ones((900, 2))))

    def test_names_say_what_the_models_are(self, data):
        train, _ = data
        candidates = default_candidates(train.X, train.costs)
        assert candidates["least squares"].exponent == 0
        assert candidates["wise 0.75 poisson"].exponent == 0.75
        assert candidates["wise 0.75 poisson"].estimator.deviance == "poisson"
        assert candidates["wise gamma, quadratic, ridge 0.1"].estimator[-1].alpha == 0.1
        fitted = candidates["wise gamma, quadratic, ridge 0.1"].fit(train.X, train.costs)
        assert fitted.estimator_[-1].n_features_in_ == 20

    def test_every_default_fits(self, data):
        train, test = data
        model = WiseRegressorCV(train.problem, cv=2, random_state=0).fit(train.X, train.costs)
        assert not any(model.cv_results_["error"])
        assert model.predict(test.X).shape == test.costs.shape


class TestBudget:
    def test_calls_are_counted_and_labels_solved_once(self, data):
        train, _ = data
        problem = CountedProblem(train.problem)
        model = WiseRegressorCV(problem, FEW).fit(train.X, train.costs)
        assert (
            problem.n_solves == model.n_solves_ == 200 * (1 + 3 + 2)
        )  # the best decisions, the candidates, two averages

    def test_rows_are_drawn_to_stay_within_the_budget(self, data):
        train, _ = data
        problem = CountedProblem(train.problem)
        model = WiseRegressorCV(problem, FEW, max_solves=330, random_state=0).fit(train.X, train.costs)
        assert problem.n_solves == model.n_solves_ == 6 * 55
        again = clone(model).fit(train.X, train.costs)
        np.testing.assert_array_equal(again.cv_results_["regret"], model.cv_results_["regret"])
        other = clone(model).set_params(random_state=1).fit(train.X, train.costs)
        assert other.cv_results_["regret"][0] != model.cv_results_["regret"][0]

    def test_the_models_still_see_all_rows_of_their_folds(self, data):
        train, _ = data
        sizes = []

        class Recorder(DummyRegressor):
            def fit(self, X, y):
                sizes.append(len(X))
                return super().fit(X, y)

        WiseRegressorCV(train.problem, [Recorder()], max_solves=100, random_state=0).fit(train.X, train.costs)
        assert sizes == [160] * 5 + [200]

    def test_a_budget_for_less_than_two_rows_is_an_error(self, data):
        train, _ = data
        with pytest.raises(ValueError, match=r"5 models take 12 for two rows, and max_solves=11"):
            WiseRegressorCV(train.problem, FEW, max_solves=11).fit(train.X, train.costs)
        model = WiseRegressorCV(train.problem, FEW, max_solves=12, random_state=0).fit(train.X, train.costs)
        assert model.n_solves_ == 12  # two rows: the best decisions, three candidates, and two averages
        with pytest.raises(ValueError, match=r"3 models take 8 for two rows, and max_solves=7"):
            WiseRegressorCV(train.problem, FEW, rule="minimum", max_solves=7).fit(train.X, train.costs)

    @pytest.mark.parametrize("cv", [5, RepeatedKFold(n_splits=3, n_repeats=2, random_state=0), TimeFolds(4)])
    @pytest.mark.parametrize("max_solves", [250, 700, 2000])
    def test_the_default_candidates_keep_within_the_budget(self, data, cv, max_solves):
        train = data[0][:120]
        problem = CountedProblem(train.problem)
        model = WiseRegressorCV(problem, cv=cv, max_solves=max_solves, train_solves=20_000, random_state=0)
        model.fit(train.X, train.costs)
        assert model.n_solves_ <= max_solves
        assert problem.n_solves <= max_solves + 20_000


class TestFailures:
    def test_a_candidate_that_fails_is_a_row_with_its_reason(self, data, capsys):
        train, _ = data
        costs = train.costs.copy()
        costs[5, 2] = 0.0
        candidates = {"gamma": WiseRegressor(GeneralizedLinear("gamma")), "unfit": Unfit(), **FEW}
        model = WiseRegressorCV(train.problem, candidates, random_state=0).fit(train.X, costs)
        results = model.cv_results_
        assert np.isnan(results["regret"][:2]).all()
        assert np.isfinite(results["regret"][2:]).all()
        assert results["error"][0].startswith("ValueError: the gamma deviance")
        assert results["error"][1] == "OSError: the licence has expired"
        assert sorted(results["rank"]) == [1, 2, 3, 4, 5]
        assert set(results["rank"][:2]) == {4, 5}
        assert results["n_solves"].tolist() == [0, 0, 200, 200, 200]
        print(model.summary())
        assert "the licence has expired" in capsys.readouterr().out

    def test_if_all_fail_the_error_lists_the_reasons(self, data):
        train, _ = data
        candidates = {"first": Unfit(), "second": WiseRegressor(exponent=-1)}
        with pytest.raises(
            ValueError, match=r"(?s)none of the 2 candidates.*- 'first': OSError: the licence.*- 'second': "
        ):
            WiseRegressorCV(train.problem, candidates).fit(train.X, train.costs)

    @pytest.mark.parametrize(
        ("where", "error"),
        [
            ("fold", RuntimeError("odd")),
            ("all rows", np.linalg.LinAlgError("singular")),
            ("all rows", StrangeError("two", "parts")),
            ("prediction", MemoryError()),
        ],
    )
    def test_whatever_fails_wherever_the_next_best_is_taken(self, data, where, error, capsys):
        train, _ = data
        least = {"fold": 0, "all rows": 170, "prediction": 1_000}[where]
        bad = FailsFrom(least, error, predicts=where != "prediction")
        candidates = {"mean": DummyRegressor(), "bad": bad, "wise": WiseRegressor()}
        model = WiseRegressorCV(train.problem, candidates, random_state=0)
        print(model.fit(train.X, train.costs).summary())
        assert model.members_ == ["wise"]
        assert sum(model.weights_.values()) == 1.0
        assert model.cv_results_["status"][1] == "failed"
        assert model.predict(train.X[:1]).shape == (1, 40)
        assert f"{type(error).__name__}" in capsys.readouterr().out
        assert not model.cv_results_["note"][1].endswith(": ")
        with pytest.raises(ValueError, match=f"(?s)none of the 1 candidates.*'bad': .*{type(error).__name__}"):
            WiseRegressorCV(train.problem, {"bad": bad}).fit(train.X, train.costs)

    def test_the_weights_of_the_members_that_are_left_sum_to_one(self, data):
        train, _ = data
        candidates = {
            "a": GeneralizedLinear(),
            "bad": FailsFrom(170, OSError("gone")),
            "b": GeneralizedLinear(alpha=0.01),
        }
        model = WiseRegressorCV(train.problem, candidates, random_state=0).fit(train.X, train.costs)
        left = {name: candidates[name] for name in "ab"}
        expected = WiseRegressorCV(train.problem, left, random_state=0).fit(train.X, train.costs)
        assert model.members_ == expected.members_
        np.testing.assert_allclose(model.predict(train.X), expected.predict(train.X), rtol=1e-2)
        assert sum(model.weights_.values()) == pytest.approx(1.0)
        assert model.cv_results_["note"][1] == "on all rows: OSError: gone"

    def test_training_with_the_solver_may_fail(self):
        """Predictions less costs are below zero, where there is no best decision: SPO+ fails in every fold."""
        rng = np.random.default_rng(0)
        problem = LinearProgram([[-1.0] * 5], [-1.0])
        X = rng.normal(size=(60, 2))
        costs = np.exp(X @ rng.normal(size=(2, 5)) + rng.normal(size=(60, 5)))
        candidates = {"gamma": WiseRegressor(GeneralizedLinear("gamma")), "mean": DummyRegressor()}
        model = WiseRegressorCV(problem, candidates, train_solves=100_000, random_state=0).fit(X, costs)
        status = dict(zip(model.cv_results_["candidate"], model.cv_results_["status"], strict=True))
        assert {status[name] for name in status if name.startswith("spo+")} == {"failed"}
        assert set(model.members_) <= set(candidates)

    def test_one_reason_of_many_is_said_once(self, data, capsys):
        train, _ = data
        candidates = {"first": Unfit(), "second": Unfit(), "third": WiseRegressor(exponent=-1)}
        with pytest.raises(ValueError, match="none of the 3 candidates") as caught:
            WiseRegressorCV(train.problem, candidates).fit(train.X, train.costs)
        lines = str(caught.value).splitlines()
        assert lines[1] == "- 'first', 'second': OSError: the licence has expired"
        assert len(lines) == 3
        print(WiseRegressorCV(train.problem, candidates | FEW).fit(train.X, train.costs).summary())
        assert "'first', 'second': OSError: the licence has expired" in capsys.readouterr().out

    def test_an_interrupt_inside_a_candidate_is_an_interrupt(self, data):
        train, _ = data

        class Interrupted(LinearRegression):
            def fit(self, X, y):
                self.stopped_ = "interrupted"  # as a DecisionRegressor has it
                return super().fit(X, y)

        with pytest.raises(KeyboardInterrupt):
            WiseRegressorCV(train.problem, [Interrupted()]).fit(train.X, train.costs)


@pytest.mark.parametrize("unit", [1e-300, 1e-155, 1e155, 1e300])
def test_the_choice_does_not_depend_on_the_unit_of_the_costs(data, unit):
    train, _ = data
    plain, scaled = (
        WiseRegressorCV(train.problem, [WiseRegressor(exponent=0), WiseRegressor()], random_state=0)
        .fit(train.X, size * train.costs)
        .cv_results_
        for size in (1.0, unit)
    )
    for name in ("regret", "standard_error", "difference_standard_error"):
        np.testing.assert_allclose(scaled[name], plain[name], rtol=1e-6, atol=1e-12)


def test_summary_prints_the_candidates_lowest_regret_first(data, capsys):
    train, _ = data
    model = WiseRegressorCV(train.problem, {**FEW, "[odd] name": DummyRegressor()}, random_state=0)
    print(model.fit(train.X, train.costs).summary())
    shown = capsys.readouterr().out
    assert shown.index("wise") < shown.index("least squares") < shown.index("mean")
    assert "[odd] name" in shown
    assert f"{model.cv_results_['regret'][2]:.2f}" in shown
    assert f"{model.n_solves_:,} solver calls" in shown
    page = model.summary()._repr_html_()
    assert page.index(">wise<") < page.index(">least squares<") < page.index(">mean<")
    assert "[odd] name" in page
    chosen = page[page.index("font-weight: bold") :]
    assert chosen.startswith(f'font-weight: bold">{model.best_name_}<')
    assert "<details><summary>" in page  # notes are folded


def test_a_maximisation_chooses_as_its_mirror_image():
    rng = np.random.default_rng(0)
    X, costs = rng.normal(size=(80, 3)), rng.normal(size=(80, 5))
    low = WiseRegressorCV(TopK(5, 2, sense="min"), FEW, random_state=0).fit(X, costs)
    high = WiseRegressorCV(TopK(5, 2, sense="max"), FEW, random_state=0).fit(X, -costs)
    np.testing.assert_allclose(high.cv_results_["regret"], low.cv_results_["regret"])
    assert high.best_name_ == low.best_name_


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_and_pipelines(data, frame):
    train, test = data
    X, costs = frame(train.X, **names(frame, "x", 5)), frame(train.costs, **names(frame, "edge", 40))
    model = make_pipeline(StandardScaler(), WiseRegressorCV(train.problem, FEW, random_state=0)).fit(
        train.X, train.costs
    )
    framed = WiseRegressorCV(train.problem, FEW, random_state=0).fit(X, costs)
    assert list(framed.feature_names_in_) == [f"x{i}" for i in range(5)]
    np.testing.assert_allclose(framed.predict(frame(test.X, **names(frame, "x", 5))), model.predict(test.X), rtol=1e-6)


def names(frame, prefix, n):
    columns = [f"{prefix}{i}" for i in range(n)]
    return {"columns": columns} if frame is pd.DataFrame else {"schema": columns}


def test_columns_of_any_kind_for_candidates_that_take_them():
    data = make_knapsack(60, degree=1, seed=0)
    X = pd.DataFrame(data.X, columns=list("abcde")).assign(day=["Mon", "Tue", "Wed"] * 20)
    numbers = make_pipeline(_Columns(), LinearRegression())
    model = WiseRegressorCV(data.problem, {"numbers": numbers}, random_state=0).fit(X, data.costs)
    assert model.predict(X).shape == (60, 16)


class _Columns(BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X[list("abcde")].to_numpy()


def test_bad_input_is_named(data):
    train, _ = data
    with pytest.raises(ValueError, match=r"ShortestPath needs 40 columns of costs"):
        WiseRegressorCV(train.problem).fit(train.X, train.costs[:, :39])
    with pytest.raises(ValueError, match=r"X has 199 rows, costs has 200 rows"):
        WiseRegressorCV(train.problem).fit(train.X[1:], train.costs)
    with pytest.raises(ValueError, match=r"candidates is empty"):
        WiseRegressorCV(train.problem, {}).fit(train.X, train.costs)
    with pytest.raises(ValueError, match=r"cv must be at least 2; got cv=1"):
        WiseRegressorCV(train.problem, cv=1).fit(train.X, train.costs)
    bad = train.X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"X must be finite; row \d+, column 1 has NaN"):
        WiseRegressorCV(train.problem, cv=KFold(5)).fit(bad[::-1], train.costs)  # it is in the last fold
    model = WiseRegressorCV(train.problem, FEW).fit(train.X, train.costs)
    with pytest.raises(ValueError, match="regret is not weighted"):
        model.score(train.X, train.costs, sample_weight=np.ones(200))


def mistaken():
    """Return a problem that maximises although its sense is "min"; of a class that workers need not import."""

    class Mistaken(TopK):
        def minimize(self, costs):
            return super().minimize(-costs)

    return Mistaken(5, 1)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_problem_with_the_wrong_sense_is_told_so_once(n_jobs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    costs = np.exp(X @ rng.normal(size=(2, 5)))
    candidates = {"mean": DummyRegressor(), "least squares": LinearRegression(), "wise": WiseRegressor()}
    model = WiseRegressorCV(mistaken(), candidates, lags=(1,), random_state=0, n_jobs=n_jobs)
    with pytest.warns() as said:
        model.fit(X, costs)
    assert [(each.category, each.filename) for each in said] == [(OptimalityWarning, __file__)]
