"""The advice is right on data made to deserve it, and the floor is near the true one."""

import sys
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold, TimeSeriesSplit, cross_val_predict

from decidewise import DecisionRegressor, OptimalityWarning, SolverError, WiseRegressor, WiseRegressorCV
from decidewise.data import make_knapsack, make_shortest_path
from decidewise.evaluate import Interval, normalized_regret
from decidewise.evaluate.intervals import plus_minus
from decidewise.models import default_candidates
from decidewise.operate.diagnose import Diagnosis, diagnose
from decidewise.operate.diagnose.diagnosis import advice_of, call_of
from decidewise.operate.diagnose.measure import _spo_plus
from decidewise.problems import LinearProgram, ShortestPath, Storage, TopK

TOP = TopK(8, 2)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def X(rng):
    return rng.normal(size=(400, 4))


class TestAdvice:
    def test_keep_least_squares_where_the_truth_is_linear(self):
        data = make_shortest_path(300, degree=1, seed=1)
        found = diagnose(data.problem, data.X, data.costs)
        assert found.advice == "Use least squares: that another model decides better is not proven with these rows."
        assert found.call == "default_candidates(X, costs)['least squares'].fit(X, costs)"
        assert found.gain.low <= 0 < found.gain_on_mean.low

    def test_use_the_log_link_where_costs_are_a_high_power(self):
        data = make_shortest_path(300, degree=6, seed=1)
        found = diagnose(data.problem, data.X, data.costs)
        assert found.advice.startswith("Use a log link, ")
        assert found.best_name in found.advice
        assert 0 < found.gain.low < found.gain.estimate < found.gain.high
        assert found.gain.estimate == pytest.approx(found.least_squares.estimate - found.best.estimate)

    def test_use_the_change_of_measure_where_sizes_vary_and_directions_are_linear(self, rng, X):
        costs = np.exp(X[:, :1]) * (X @ rng.normal(size=(4, 8)) + rng.normal(size=(400, 8)))
        found = diagnose(TOP, X, costs, max_solves=20_000)
        assert found.advice.startswith(("Use the change of measure, which suits sizes", "Use the iterated scale, "))

    def test_use_another_learner_where_the_truth_is_quadratic(self, rng, X):
        costs = (X @ rng.normal(size=(4, 8))) ** 2 - 3 + rng.normal(size=(400, 8))
        found = diagnose(TOP, X, costs)
        assert "quadratic" in found.advice or "smooth" in found.advice
        assert found.advice.startswith("Use ")

    def test_spend_solver_calls_where_no_candidate_fits_but_a_linear_model_could_decide(self, rng, X):
        # Cubes keep the order of their linear bases, so that a linear model decides almost without regret; fitted to
        # the cubes themselves it weighs each cost by the squared norm of its coefficients.
        bases = rng.normal(size=(4, 8)) * np.array([1, 1, 0.3, 0.3, 2, 2, 1, 0.5])
        found = diagnose(TOP, X, (X @ bases) ** 3 + rng.normal(size=(400, 8)))
        assert found.advice == "Train with the solver: SPO+ pays, and takes up to 6,000 solver calls."
        assert found.spo_plus_gain.low > 0
        assert "learning_rate=" in found.call

    def test_features_that_say_nothing_do_not_pay(self, rng, X):
        costs = np.arange(1.0, 9.0) + 3 * rng.normal(size=(400, 8))
        found = diagnose(TOP, X, costs, max_solves=30_000)
        assert found.advice.startswith("Your features do not pay: ")
        assert found.call == "default_candidates(X, costs)['training mean'].fit(X, costs)"

    def test_a_forecast_that_no_model_beats_is_good_enough(self, rng, X):
        means = rng.normal(size=(400, 8))
        found = diagnose(TOP, np.hstack([X, means]), means + rng.normal(size=(400, 8)), forecast=range(4, 12))
        assert found.advice.startswith("The forecast you have is good enough: ")
        assert found.forecast.estimate < found.training_mean.estimate
        assert "regret of the forecast you have" in str(found)
        with pytest.raises(ValueError, match=r"the forecast 'forecast' has shape \(400, 2\)"):
            diagnose(TOP, X, means, forecast=[0, 1])

    def test_rules(self):
        none, some = Interval(0.2, -0.1, 0.5), Interval(0.3, 0.1, 0.5)
        begins = [
            # gains on least squares, on the mean, on the forecast, of SPO+; log link, exponent
            ((none, some, None, none, True, 1.0), "Use least squares"),
            ((none, none, None, None, False, 0.0), "Your features do not pay"),
            ((some, none, none, None, False, 0.0), "The forecast you have is good enough"),
            (
                (some, none, none, some, False, 0.0),
                "Train with the solver: SPO+ pays, and takes up to 70 solver calls.",
            ),
            ((some, some, some, none, True, 0.0), "Use a log link, which suits effects that multiply: 'it'"),
            ((some, some, None, None, False, 0.75), "Use the change of measure, which suits sizes that vary: 'it'"),
            ((None, None, None, none, False, 0.0), "Use another learner: 'it'"),
        ]
        for (gain, on_mean, on_forecast, spo_plus, log_link, exponent), beginning in begins:
            gains = {"gain": gain, "gain_on_mean": on_mean, "gain_on_forecast": on_forecast, "spo_plus_gain": spo_plus}
            model = {"log_link": log_link, "exponent": exponent, "n_training": 70}
            assert advice_of("it", gains, iterated=False, **model)[0].startswith(beginning)
        assert "iterated scale" in advice_of("it", {}, log_link=False, exponent=1.0, iterated=True, n_training=70)[0]


@pytest.mark.parametrize("times", [None, np.arange(150)], ids=["shuffled", "in order"])
def test_the_best_candidate_is_the_one_that_the_choice_takes_alone(times):
    data = make_shortest_path(150, degree=4, seed=2)
    found = diagnose(data.problem, data.X, data.costs, times=times, train_solves=0, random_state=3)
    choice = WiseRegressorCV(data.problem, rule="minimum", random_state=3).fit(data.X, data.costs, times=times)
    assert found.best_name == choice.best_name_


def test_where_nothing_is_proven_better_than_nothing_that_is_the_advice(rng):
    prices = 5 + 0.4 * rng.normal(size=(60, 6))
    found = diagnose(Storage(6, 1.0, 2.0, efficiency=0.9), rng.normal(size=(60, 2)), prices)
    assert found.gain_on_nothing.low <= 0
    assert found.advice.startswith("Do nothing")
    assert not eval(found.call, {"np": np, "costs": prices}).any()


def test_the_call_is_that_of_the_model_that_was_measured(rng):
    # As a manager would use it: pasted below the diagnosis, it has the regret that was promised.
    train, test = make_shortest_path(1_400, degree=6, seed=5).split(400)
    found = diagnose(train.problem, train.X, train.costs)
    names = {"problem": train.problem, "X": train.X, "costs": train.costs, "default_candidates": default_candidates}
    model = eval(found.call, names | {"DecisionRegressor": DecisionRegressor})
    regret = normalized_regret(test.problem, model.predict(test.X), test.costs)
    assert regret == pytest.approx(found.best.estimate, rel=0.25)


def test_the_call_of_spo_plus_has_all_that_was_measured():
    data = make_shortest_path(80, degree=2, seed=0)
    call = call_of("spo+", _spo_plus(data.problem, log_link=True), lifted=False, forecast=False)
    names = {"problem": data.problem, "X": data.X, "costs": data.costs, "DecisionRegressor": DecisionRegressor}
    measured = _spo_plus(data.problem, log_link=True).fit(data.X, data.costs)
    np.testing.assert_array_equal(eval(call, names).predict(data.X), measured.predict(data.X))
    assert "learning_rate=" in call


def test_regret_is_also_in_the_units_of_the_costs():
    data = make_shortest_path(100, degree=2, seed=0)
    best = np.einsum("ij,ij->i", data.costs, data.problem.solve(data.costs)).mean()
    found = diagnose(data.problem, data.X, 1000 * data.costs, max_solves=8_000)
    assert found.value == pytest.approx(1000 * best, rel=0.1)
    assert f"{plus_minus(found.best.scaled(found.value / 100))} per row" in str(found)


@pytest.mark.parametrize(
    "data",
    [make_shortest_path(400, degree=4, seed=0), make_knapsack(300, degree=2, seed=0)],
    ids=["shortest path", "knapsack"],
)
def test_the_floor_is_near_that_of_the_true_mean(data):
    floor = normalized_regret(data.problem, data.mean_costs, data.costs)
    found = diagnose(data.problem, data.X, data.costs, max_solves=100 * len(data))
    assert found.floor.low < floor < found.floor.high
    assert found.floor.estimate == pytest.approx(floor, rel=0.25)


def test_least_squares_is_scored_out_of_fold():
    data = make_shortest_path(120, degree=4, seed=0)
    found = diagnose(data.problem, data.X, data.costs, cv=KFold(3))
    predicted = cross_val_predict(LinearRegression(), data.X, data.costs, cv=KFold(3))
    assert found.least_squares.estimate == pytest.approx(normalized_regret(data.problem, predicted, data.costs))


def test_decisions_are_steadier_with_more_rows_and_without_noise():
    def flips(n, noise):
        data = make_shortest_path(n, degree=1, seed=2, noise=noise)
        return diagnose(data.problem, data.X, data.costs, max_solves=5000).flips

    assert 0 < flips(300, 0.1) < flips(300, 0.5) < flips(60, 0.5) < 1


class Counted(ShortestPath):
    """Counts for all copies, those inside estimators too."""

    n_solves = 0

    def minimize(self, costs):
        Counted.n_solves += len(costs)
        return super().minimize(costs)


@pytest.mark.parametrize("max_solves", [None, 3_000, 30_000])
def test_solver_calls_are_counted_and_bounded(max_solves):
    data = make_shortest_path(200, degree=2, seed=0)
    Counted.n_solves = 0
    found = diagnose(Counted(5, 5), data.X, data.costs, max_solves=max_solves)
    assert found.n_solves == Counted.n_solves
    assert max_solves is None or 0.75 * min(max_solves, 19_000) <= found.n_solves <= max_solves
    assert (found.spo_plus_gain is None) == (max_solves == 3_000)
    assert (found.n_rows < 200) == (max_solves == 3_000)


def test_it_repeats_and_takes_frames_and_chronological_folds():
    data = make_shortest_path(120, degree=4, seed=0)
    found = diagnose(data.problem, pd.DataFrame(data.X), pd.DataFrame(data.costs), cv=TimeSeriesSplit(3))
    assert found == diagnose(data.problem, data.X, data.costs, cv=TimeSeriesSplit(3))
    assert found.n_rows == 90
    in_order = diagnose(data.problem, data.X[:60], data.costs[:60], cv=3, times=np.arange(60))
    assert "With only 4 blocks" in in_order.failures[-1]


def test_text_and_html_say_the_same_and_html_is_escaped():
    found = Diagnosis(
        least_squares=Interval(9.5, 8, 11),
        training_mean=Interval(30, 20, 40),
        forecast=None,
        best_name="<i>tagged</i> & odd",
        best=Interval(7.25, 6, 8),
        gain=Interval(2.25, 1, 3),
        gain_on_mean=Interval(20, 10, 30),
        gain_on_forecast=None,
        gain_on_nothing=None,
        spo_plus_gain=None,
        gain_of_sharing=None,
        floor=Interval(6.5, 5, 8),
        flips=0.125,
        value=50_000.0,
        n_rows=1_200,
        n_solves=34_000,
        advice="Mind < and >.",
        chosen="odd",
        call="fit(<X>)",
    )
    html = found._repr_html_()
    for part in (
        "9.50 [8.00, 11.00]",
        "7.25 [6.00, 8.00]",
        "2.25 [1.00, 3.00]",
        "6.50 [5.00, 8.00]",
        "12 %",
        "4,750 ± 750 per row",
        "1,200",
        "34,000",
    ):
        assert part in str(found)
        assert part in html
    assert "<i>tagged</i> & odd" in str(found)
    assert "&lt;i&gt;tagged&lt;/i&gt; &amp; odd" in html
    assert "Mind &lt; and &gt;." in html
    assert "fit(&lt;X&gt;)" in html
    assert "not measured" in str(found)
    assert "0.30 [0.10, 0.50]" in str(replace(found, spo_plus_gain=Interval(0.3, 0.1, 0.5)))
    with pytest.raises(FrozenInstanceError):
        found.advice = "Buy more rows."


class Moody(ShortestPath):
    """Fails on batches of the size that training has; the first is the second part of the labels of 160 rows."""

    def minimize(self, costs):
        if len(costs) == 32:
            raise SolverError("no licence left", row=3)
        return super().minimize(costs)


def test_a_step_that_fails_is_a_line_and_not_the_end():
    data = make_shortest_path(200, degree=6, seed=0)
    found = diagnose(Moody(5, 5), data.X, data.costs)
    assert found.failures == ("SPO+ could not be trained: SolverError: row 131: no licence left",)
    assert found.spo_plus_gain is None
    assert found.advice.startswith("Use a log link")
    for shown in (str(found), found._repr_html_()):
        assert "SPO+ could not be trained: SolverError: row 131: no licence left" in shown
    assert None not in (found.least_squares, found.gain, found.floor, found.flips)


def test_candidates_that_fail_are_a_line_least_squares_included(monkeypatch):
    def some(X, costs, **_):
        wrong = WiseRegressor(Ridge(alpha=-1))
        mean = DummyRegressor()
        return {"training mean": mean, "least squares": wrong, "wise": WiseRegressor(), "another": wrong}

    monkeypatch.setattr(sys.modules[diagnose.__module__], "default_candidates", some)
    data = make_shortest_path(100, degree=4, seed=0)
    found = diagnose(data.problem, data.X, data.costs, max_solves=2_000)
    line, untrained = found.failures
    assert untrained == "SPO+ was not trained: 6,000 solver calls are more than half of max_solves."
    assert line.startswith(
        "Not fitted: 'least squares', 'another': InvalidParameterError: The 'alpha' parameter of Ridge"
    )
    assert (found.least_squares, found.gain) == (None, None)
    assert found.best_name == "wise"
    assert found.advice == "Use the change of measure, which suits sizes that vary: 'wise' decides better."


def test_bad_input_is_named(X):
    for wrong in (None, "path", ShortestPath):
        with pytest.raises(TypeError, match=r"problem must be a decidewise problem, such as ShortestPath\(5, 5\)"):
            diagnose(wrong, X, np.ones((400, 8)))
    with pytest.raises(ValueError, match=r"max_solves must be a Python or NumPy integer; got 'x' of type str"):
        diagnose(TOP, X, np.ones((400, 8)), max_solves="x")
    with pytest.raises(ValueError, match=r"random_state must be a Python or NumPy integer"):
        diagnose(TOP, X, np.ones((400, 8)), random_state="x")
    with pytest.raises(ValueError, match=r"TopK needs 8 columns of costs"):
        diagnose(TOP, X, np.ones((400, 7)))
    with pytest.raises(ValueError, match=r"X has 400 rows, costs has 399 rows"):
        diagnose(TOP, X, np.ones((399, 8)))
    X[5, 1] = np.nan
    with pytest.raises(ValueError, match=r"X must be finite; row 5, column 1 has NaN"):
        diagnose(TOP, X, np.ones((400, 8)))
    with pytest.raises(ValueError, match=r"rows can be scored"):
        diagnose(TOP, np.ones((400, 1)), np.ones((400, 8)), max_solves=20)


def test_a_problem_with_the_wrong_sense_is_told_so_once():
    class Mistaken(TopK):
        def minimize(self, costs):
            return super().minimize(-costs)

    X = np.random.default_rng(0).normal(size=(60, 2))
    costs = np.exp(X @ np.array([[1.0, -1.0, 0.5], [0.5, 1.0, -1.0]]))
    with pytest.warns() as said:
        diagnose(Mistaken(3, 1), X, costs)
    assert [(each.category, each.filename) for each in said] == [(OptimalityWarning, __file__)]


def test_a_forecast_that_cannot_be_decided_is_a_line():
    rng = np.random.default_rng(0)
    costs = rng.uniform(1, 2, (60, 5))
    problem = LinearProgram(-np.ones((1, 5)), [-1.0])  # without an end where a cost is negative
    found = diagnose(problem, np.hstack([rng.normal(size=(60, 1)), costs - 2]), costs, forecast=[1, 2, 3, 4, 5])
    assert (found.forecast, found.gain_on_forecast) == (None, None)
    assert any(line.startswith("Not fitted: 'forecast': SolverError") for line in found.failures)
