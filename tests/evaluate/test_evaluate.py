"""Regret against brute force, ties at their worst, and what the bootstrap intervals promise."""

import pickle
import re
import warnings
from itertools import product

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score

from decidewise import OptimalityWarning
from decidewise.data import make_knapsack, make_portfolio, make_shortest_path
from decidewise.evaluate import (
    Hindsight,
    Interval,
    compare,
    decision_regret,
    normalized_regret,
    regret_interval,
    regret_scorer,
)
from decidewise.evaluate.intervals import N_AT_ONCE, N_GROUPS
from decidewise.kit.gaps import note_gaps
from decidewise.problems import Ball, ConicProgram, Knapsack, Levels, LinearProgram, Problem, Quadratic, TopK


class Listed(Problem):
    """Choose one of the listed decisions; a tie goes to the earlier one."""

    def __init__(self, decisions, *, sense="min"):
        super().__init__(sense=sense)
        self.decisions = np.asarray(decisions, dtype=float)
        self.n_costs = self.decisions.shape[1]

    def minimize(self, costs):
        return self.decisions[np.argmin(costs @ self.decisions.T, axis=1)]


def listed_regret(decisions, sense, prediction, costs, *, worst=False):
    """Regret of one row by inspection of every decision."""
    sign = 1 if sense == "min" else -1
    predicted, true = sign * decisions @ prediction, sign * decisions @ costs
    tied = np.flatnonzero(predicted <= predicted.min() + 1e-12)
    return (true[tied].max() if worst else true[tied[0]]) - true.min()


SQUARE = np.array(list(product([-1.0, 0.0, 2.0], repeat=3)))


@pytest.mark.parametrize("sense", ["min", "max"])
def test_regret_equals_inspection(sense):
    rng = np.random.default_rng(0)
    prediction, costs = rng.normal(size=(2, 50, 3))
    regret = decision_regret(Listed(SQUARE, sense=sense), prediction, costs)
    expected = [listed_regret(SQUARE, sense, *row) for row in zip(prediction, costs, strict=True)]
    np.testing.assert_allclose(regret, expected, atol=1e-12)
    assert regret.max() > 1


@pytest.mark.parametrize("sense", ["min", "max"])
def test_top_k_regret_equals_sorting(sense):
    rng = np.random.default_rng(1)
    prediction, costs = rng.normal(size=(2, 40, 6))
    sign = 1 if sense == "min" else -1
    chosen = np.take_along_axis(costs, np.argsort(sign * prediction, axis=1)[:, :2], axis=1).sum(axis=1)
    best = np.sort(sign * costs, axis=1)[:, :2].sum(axis=1)
    regret = decision_regret(TopK(6, 2, sense=sense), prediction, costs)
    np.testing.assert_allclose(regret, sign * chosen - best, atol=1e-12)


@pytest.mark.parametrize("make", [make_shortest_path, make_knapsack, make_portfolio])
@pytest.mark.parametrize("unambiguous", [False, True])
def test_regret_is_not_negative_and_zero_for_the_truth(make, unambiguous):
    data = make(200, degree=4, seed=0)
    prediction = np.random.default_rng(2).normal(size=data.costs.shape)
    regret = decision_regret(data.problem, prediction, data.costs, unambiguous=unambiguous)
    assert regret.min() > -1e-12
    assert regret.mean() > 0.001
    perfect = decision_regret(data.problem, data.costs, data.costs, unambiguous=unambiguous)
    np.testing.assert_allclose(perfect, 0, atol=1e-8)


def test_regret_ignores_the_scale_of_predictions_and_follows_that_of_costs():
    data = make_shortest_path(50, degree=2, seed=0)
    regret = decision_regret(data.problem, data.mean_costs, data.costs)
    np.testing.assert_array_equal(decision_regret(data.problem, 2.0**-40 * data.mean_costs, data.costs), regret)
    np.testing.assert_array_equal(decision_regret(data.problem, data.mean_costs, 4 * data.costs), 4 * regret)


@pytest.mark.parametrize(("sense", "expected"), [("min", 9.0), ("max", 6.0)])
def test_a_tie_is_scored_at_its_worst(sense, expected):
    # The first two items tie in the prediction, and both are preferred to the third.
    prediction = [[1.0, 1.0, 2.0]] if sense == "min" else [[2.0, 2.0, 1.0]]
    costs = [[1.0, 10.0, 4.0]] if sense == "min" else [[7.0, 1.0, 4.0]]
    problem = TopK(3, 1, sense=sense)
    assert decision_regret(problem, prediction, costs, unambiguous=True) == pytest.approx([expected])


def test_a_prediction_of_zeros_ties_everything():
    costs = np.array([[3.0, -1.0, 5.0], [0.0, 0.0, 0.0]])
    regret = decision_regret(TopK(3, 1, sense="min"), np.zeros((2, 3)), costs, unambiguous=True)
    np.testing.assert_allclose(regret, [6.0, 0.0])


@pytest.mark.parametrize("sense", ["min", "max"])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_worst_of_the_ties_equals_inspection(sense, scale):
    rng = np.random.default_rng(3)
    prediction = rng.integers(-1, 2, size=(80, 3)).astype(float)
    costs = rng.normal(size=(80, 3))
    problem = Listed(SQUARE, sense=sense)
    expected = [listed_regret(SQUARE, sense, *row, worst=True) for row in zip(prediction, costs, strict=True)]
    plain = decision_regret(problem, prediction, costs)
    worst = decision_regret(problem, scale * prediction, costs, unambiguous=True)
    np.testing.assert_allclose(worst, expected, atol=1e-12)
    assert (worst >= plain).all()
    assert (worst > plain + 0.1).any()


def test_worst_of_the_ties_of_a_knapsack():
    rng = np.random.default_rng(4)
    weights, prediction, costs = rng.integers(1, 6, 8), rng.integers(1, 3, (60, 8)), rng.integers(1, 50, (60, 8))
    sets = np.array([w for w in product([0.0, 1.0], repeat=8) if weights @ w <= 12])
    worst = decision_regret(Knapsack([weights], [12.0]), prediction, costs, unambiguous=True)
    expected = [listed_regret(sets, "max", *row, worst=True) for row in zip(prediction, costs, strict=True)]
    np.testing.assert_allclose(worst, expected, atol=1e-9)


def test_without_ties_the_worst_is_the_plain_regret():
    data = make_shortest_path(300, degree=4, seed=0)
    plain, worst = (
        decision_regret(data.problem, data.mean_costs, data.costs, unambiguous=flag) for flag in (False, True)
    )
    np.testing.assert_array_equal(plain, worst)
    # A round region has no ties to break: only the tolerance itself remains.
    prediction, costs = np.random.default_rng(0).normal(size=(2, 50, 3))
    plain, worst = (decision_regret(Ball(3, 1.0), prediction, costs, unambiguous=flag) for flag in (False, True))
    np.testing.assert_allclose(plain, worst, atol=1e-4)


def test_normalized_regret_is_the_ratio_of_sums():
    problem = Listed([[1.0, 0.0], [0.0, 1.0]], sense="max")
    costs = np.array([[-3.0, -1.0], [4.0, 7.0]])
    prediction = np.array([[1.0, 0.0], [0.0, 1.0]])  # the first row decides wrongly, at a loss of 2
    assert normalized_regret(problem, prediction, costs) == pytest.approx(100 * 2 / (1 + 7))
    assert normalized_regret(problem, costs, costs) == 0


def test_normalized_regret_scores_ties():
    costs = [[1.0, 3.0]]
    assert normalized_regret(TopK(2, 1, sense="min"), [[0.0, 0.0]], costs, unambiguous=True) == pytest.approx(200)


def sign_samples(rng, n):
    """Predictions of the sign of a cost, wrong with probability 0.2: the ratio is 2 · 0.2 of the optimum."""
    costs = rng.lognormal(0, 0.5, size=(n, 1))
    return costs * rng.choice([-1.0, 1.0], p=[0.2, 0.8], size=(n, 1)), costs


def test_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(5)
    problem = Listed([[-1.0], [1.0]])
    hits = 0
    for _ in range(400):
        prediction, costs = sign_samples(rng, 200)
        interval = regret_interval(problem, prediction, costs, level=0.9, n_resamples=500, rng=rng)
        assert interval.low <= interval.estimate <= interval.high
        hits += interval.low <= 40 <= interval.high
    assert abs(hits / 400 - 0.9) < 0.04  # the standard error of the share is 0.015


def test_interval_is_reproducible_and_the_generator_is_heeded():
    problem = Listed([[-1.0], [1.0]])
    prediction, costs = sign_samples(np.random.default_rng(6), 100)
    default = regret_interval(problem, prediction, costs)
    assert default == regret_interval(problem, prediction, costs, rng=np.random.default_rng(0))
    other = regret_interval(problem, prediction, costs, rng=np.random.default_rng(1))
    assert default.estimate == other.estimate == normalized_regret(problem, prediction, costs)
    assert default != other
    assert str(Interval(1.0, -0.001, 2.5)) == "1.00 [0.00, 2.50]"


def test_comparison_is_paired():
    data = make_shortest_path(600, degree=6, seed=0)
    rng = np.random.default_rng(0)
    near = data.mean_costs * rng.uniform(0.9, 1.1, data.costs.shape)
    far = near * rng.uniform(0.7, 1.3, data.costs.shape)
    result = compare(data.problem, {"near": near, "far": far, "floor": data.mean_costs}, data.costs, baseline="near")
    assert [row.name for row in result] == ["near", "far", "floor"]
    assert len(result) == 3
    assert result[0].difference is None
    for row, prediction in zip(result, (near, far, data.mean_costs), strict=True):
        single = regret_interval(data.problem, prediction, data.costs)
        np.testing.assert_allclose(row.regret, single, rtol=1e-9)
    difference = result[1].difference
    assert difference.estimate == pytest.approx(result[1].regret.estimate - result[0].regret.estimate)
    assert 0 < difference.low < difference.estimate < difference.high
    # Independent errors would add in quadrature.
    unpaired = np.hypot(*(row.regret.high - row.regret.low for row in result[:2]))
    assert difference.high - difference.low < 0.85 * unpaired


def test_comparison_with_itself_is_zero():
    prediction, costs = sign_samples(np.random.default_rng(8), 50)
    result = compare(Listed([[-1.0], [1.0]]), {"a": prediction, "b": 3 * prediction}, costs)
    assert result.baseline == "a"
    assert result[1].difference == (0, 0, 0)


def test_comparison_prints_an_aligned_table():
    prediction, costs = sign_samples(np.random.default_rng(8), 50)
    result = compare(Listed([[-1.0], [1.0]]), {"a": prediction, "longer name": costs}, costs, level=0.9)
    head, first, second, foot = str(result).splitlines()
    assert head.split("  ")[0] == "model"
    assert head.index("regret %") == first.index(str(result[0].regret)) == second.index(str(result[1].regret))
    assert head.index("minus a") == second.index(str(result[1].difference))
    assert foot == "90 % bootstrap intervals over 50 rows."


def test_comparison_solves_the_costs_once():
    class Counting(Listed):
        calls = 0

        def minimize(self, costs):
            Counting.calls += 1
            return super().minimize(costs)

    prediction, costs = sign_samples(np.random.default_rng(8), 20)
    compare(Counting([[-1.0], [1.0]]), {"a": prediction, "b": prediction, "c": costs}, costs, n_resamples=10)
    assert Counting.calls == 4


def test_scorer_selects_by_regret_in_parallel():
    data = make_shortest_path(150, degree=4, seed=0)
    scorer = regret_scorer(data.problem)
    search = GridSearchCV(Ridge(), {"alpha": [0.1, 1e5]}, scoring=scorer, cv=3, n_jobs=2)
    search.fit(data.X, data.costs)
    assert search.best_params_ == {"alpha": 0.1}
    by_hand = [
        -normalized_regret(
            data.problem,
            Ridge(alpha=0.1).fit(np.delete(data.X, rows, 0), np.delete(data.costs, rows, 0)).predict(data.X[rows]),
            data.costs[rows],
        )
        for rows in np.split(np.arange(150), 3)
    ]
    np.testing.assert_allclose(cross_val_score(Ridge(alpha=0.1), data.X, data.costs, scoring=scorer, cv=3), by_hand)


def test_scorer_pickles_and_says_what_it_scores():
    data = make_knapsack(30, degree=1, seed=0)
    scorer = regret_scorer(data.problem)
    model = Ridge().fit(data.X, data.costs)
    score = scorer(model, data.X, data.costs)
    assert score < 0
    assert pickle.loads(pickle.dumps(scorer))(model, data.X, data.costs) == score  # noqa: S301
    assert repr(scorer).startswith("RegretScorer(problem=")


GOOD = np.ones((3, 2))


@pytest.mark.parametrize(
    ("prediction", "costs", "message"),
    [
        (GOOD[:2], GOOD, "prediction has 2 rows, costs has 3 rows"),
        (np.ones((3, 5)), GOOD, r"TopK needs 2 columns of prediction.*got prediction.shape=\(3, 5\)"),
        (GOOD, np.ones((3, 5)), r"TopK needs 2 columns of costs"),
        (np.ones(2), GOOD, "prediction must be two-dimensional"),
        ([[1.0, 2.0], [np.nan, 1.0], [0.0, 0.0]], GOOD, "prediction must be finite; row 1, column 0 has NaN"),
        (GOOD, [[1.0, np.inf]], "costs must be finite; row 0, column 1"),
        (np.ones((0, 2)), np.ones((0, 2)), "costs is empty"),
    ],
)
@pytest.mark.parametrize("score", [decision_regret, normalized_regret, regret_interval])
def test_bad_arrays(score, prediction, costs, message):
    with pytest.raises(ValueError, match=message):
        score(TopK(2, 1), prediction, costs)


@pytest.mark.parametrize("score", [normalized_regret, regret_interval])
def test_costs_of_zero_have_no_percentage(score):
    with pytest.raises(ValueError, match="optimal value of every row is 0"):
        score(TopK(2, 1), GOOD, np.zeros((3, 2)))


def test_too_few_rows_with_a_value():
    costs = np.zeros((20, 2))
    costs[0] = 1
    with pytest.raises(ValueError, match="too few of the 20 rows"):
        regret_interval(TopK(2, 1), np.ones((20, 2)), costs)


@pytest.mark.parametrize("options", [{"level": 0.0}, {"level": 95}, {"n_resamples": 0}])
def test_bad_interval_options(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        regret_interval(TopK(2, 1), GOOD, GOOD, **options)


@pytest.mark.parametrize(
    ("predictions", "baseline", "message"),
    [
        ({}, None, "predictions is empty"),
        ({"ols": GOOD, "wise": GOOD}, "spo", r"baseline must be one of \['ols', 'wise'\]; got 'spo'"),
        ({"ols": GOOD, "wise": GOOD[:2]}, None, r"predictions\['wise'\] has 2 rows, costs has 3 rows"),
        ({"ols": GOOD, "wise": GOOD[:, :1]}, None, r"TopK needs 2 columns of predictions\['wise'\]"),
        ({"wise": np.full((3, 2), np.nan)}, None, r"predictions\['wise'\] must be finite"),
    ],
)
def test_bad_comparisons(predictions, baseline, message):
    with pytest.raises(ValueError, match=message):
        compare(TopK(2, 1), predictions, GOOD, baseline=baseline)


class Mistaken(TopK):
    """Chooses the worst where it should choose the best."""

    def minimize(self, costs):
        return super().minimize(-costs)


@pytest.mark.parametrize(("sense", "wrong"), [("min", "maximise"), ("max", "minimise")])
def test_a_problem_that_maximises_by_mistake_is_told_so(sense, wrong):
    problem = Mistaken(3, 1, sense=sense)
    costs = np.array([[1.0, 1.0, 1.0], [1.0, 2.0, 3.0]])
    sentence = (
        f"row 1: the decision for the prediction is better.*Mistaken does not.*Does it {wrong} although.*{sense!r}"
    )
    with pytest.warns(OptimalityWarning, match=sentence):
        regret = decision_regret(problem, -costs, costs)
    np.testing.assert_array_equal(regret, [0.0, -2.0])
    with pytest.warns(OptimalityWarning, match="row 1"):
        compare(problem, {"a": costs, "b": -costs}, costs)


def test_the_gap_of_an_integer_solver_is_no_mistake():
    class Gap(Problem):
        n_costs = 1

        def minimize(self, costs):
            return np.where(costs > 0, 1.0, self.better)

    problem = Gap()
    problem.better = 1 - 0.9e-4
    assert decision_regret(problem, [[-1.0]], [[1.0]]) == pytest.approx([-0.9e-4])  # and warnings are errors
    problem.better = 1 - 3e-4
    with pytest.warns(OptimalityWarning):
        decision_regret(problem, [[-1.0]], [[1.0]])


def test_what_a_conic_solver_leaves_of_nothing_is_no_mistake():
    """Where all returns are losses the best is to buy nothing, and a solver buys 1e-12 of something."""
    problem = ConicProgram(cones=[Quadratic(np.eye(2), r=1.0)], sense="max")
    returns = np.array([[-1.0, -2.0], [-0.5, -0.1], [3.0, 1.0]])
    regret = decision_regret(problem, returns - [[0.1, 3.0], [2.0, 0.2], [0.0, 0.0]], returns)  # warnings are errors
    np.testing.assert_allclose(regret, 0.0, atol=1e-8)
    assert (problem.solve(returns)[:2] > 0).any(axis=1).all()  # so there is something to forgive


def test_groups_of_rows_give_the_interval_of_the_rows(monkeypatch):
    rng = np.random.default_rng(9)
    prediction, costs = sign_samples(rng, 5_000)
    costs *= rng.lognormal(0, 1, size=costs.shape)  # heavy tails
    problem = Listed([[-1.0], [1.0]])
    plain = regret_interval(problem, prediction, costs, n_resamples=8_000)
    monkeypatch.setattr("decidewise.evaluate.intervals.N_GROUPS", 1024)
    grouped = regret_interval(problem, prediction, costs, n_resamples=8_000)
    assert grouped.estimate == plain.estimate
    # The ends of both have a Monte Carlo error of 0.03 standard errors, and 1,024 groups one of 0.04.
    standard_error = (plain.high - plain.low) / (2 * 1.96)
    np.testing.assert_allclose(grouped, plain, atol=0.2 * standard_error)
    assert grouped != plain


def test_interval_over_many_rows_is_that_of_the_normal_distribution():
    n = 2 * N_GROUPS + 77
    prediction, costs = sign_samples(np.random.default_rng(10), n)
    order = np.lexsort((costs[:, 0], prediction[:, 0] < 0))  # rows that come in an order must not make a difference
    problem = Listed([[-1.0], [1.0]])
    interval = regret_interval(problem, prediction[order], costs[order], n_resamples=800)
    values, regret = costs[:, 0], 2 * costs[:, 0] * (prediction[:, 0] < 0)
    ratio = regret.sum() / values.sum()
    standard_error = 100 * np.sqrt(n) * np.std(regret - ratio * values) / values.sum()
    assert interval.estimate == pytest.approx(100 * ratio, rel=1e-12)
    # The Monte Carlo error of either end is 0.1 standard errors.
    expected = 100 * ratio + 1.96 * standard_error * np.array([-1, 1])
    np.testing.assert_allclose(interval[1:], expected, atol=0.35 * standard_error)


def test_few_rows_are_drawn_one_by_one(monkeypatch):
    monkeypatch.setattr("decidewise.evaluate.intervals._grouped", lambda columns, rng: pytest.fail("grouped"))
    prediction, costs = sign_samples(np.random.default_rng(11), N_GROUPS)
    regret_interval(Listed([[-1.0], [1.0]]), prediction, costs, n_resamples=2)


def test_options_are_checked_before_anything_is_solved(monkeypatch):
    problem = TopK(2, 1)
    monkeypatch.setattr(problem, "solve", lambda costs: pytest.fail("solved"))
    with pytest.raises(ValueError, match="level must be"):
        compare(problem, {"a": GOOD}, GOOD, level=95)
    with pytest.raises(ValueError, match="n_resamples must be"):
        regret_interval(problem, GOOD, GOOD, n_resamples=1e4)


def test_long_resampling_shows_its_progress(monkeypatch):
    shown = []
    monkeypatch.setattr("decidewise.evaluate.intervals.BLOCK_SIZE", 1)
    monkeypatch.setattr(
        "decidewise.evaluate.intervals.tracked", lambda blocks, what: shown.append((len(blocks), what)) or blocks
    )
    regret_interval(TopK(2, 1), GOOD, GOOD, n_resamples=2 * N_AT_ONCE + 1)
    assert shown == [(3, "Resampling rows")]


def test_values_beyond_the_range_are_refused():
    costs = np.full((3, 2), 1.7e308)
    with pytest.raises(ValueError, match="row 0: its costs add up to more than float64 can hold"):
        decision_regret(TopK(2, 2), costs, costs)
    with pytest.raises(ValueError, match="the optimal values add up to more than float64 can hold"):
        normalized_regret(TopK(2, 1), costs, costs)
    np.testing.assert_array_equal(decision_regret(TopK(2, 1), costs, costs), 0)
    assert normalized_regret(TopK(2, 1), [[1.0, 0.0]], [[1e300, 2e300]]) == pytest.approx(50)


def test_a_prediction_that_cannot_be_decided_is_a_row_of_the_comparison():
    cover = LinearProgram([[-1.0] * 5], [-1.0])  # unbounded where a cost is below zero
    costs = np.random.default_rng(0).uniform(1, 2, (9, 5))
    predictions = {"below zero": costs - 2, "right": costs, "mean": np.ones((9, 5)), 7: costs - 3}
    found = compare(cover, predictions, costs, baseline="below zero")
    assert [row.name for row in found] == ["right", "mean"]
    assert (found.baseline, list(found.failures)) == ("right", ["below zero", 7])
    assert "below zero  failed: SolverError: row 0: HiGHS ended with status 'Unbounded'" in str(found)
    assert "7           failed: " in str(found)
    with pytest.raises(ValueError, match="none of the 1 predictions could be decided"):
        compare(cover, {"a": costs - 2}, costs)
    with pytest.raises(ValueError, match=r"predictions\['a'\]"):  # a bad argument is not a model that fails
        compare(cover, {"a": costs[:, :2], "right": costs}, costs)


class Stopped(TopK):
    """It stops before it has proved anything, and may be 0.5 from the best in the first row."""

    def minimize(self, costs):
        note_gaps(np.where(np.arange(len(costs)) == 0, 0.5, 0.0), np.ones(len(costs), bool))
        return super().minimize(costs)


def test_what_is_not_proven_in_hindsight_is_said():
    costs = np.array([[1.0, 3.0, 5.0], [2.0, 4.0, 1.0], [6.0, 1.0, 2.0]])
    sentence = "In hindsight 1 of 3 decisions is not proven optimal: all together may be better by up to 3.3 %. Regrets"
    with pytest.warns(OptimalityWarning, match=re.escape(sentence)):
        found = compare(Stopped(3, 1), {"a": costs, "b": -costs}, costs)
    assert sentence in str(found)
    assert sentence in found._repr_html_()
    with pytest.warns(OptimalityWarning, match=re.escape(sentence)):
        truth = Hindsight.of(Stopped(3, 1), costs)
    assert truth.take([1, 2]).caution == compare(TopK(3, 1), {"a": costs}, costs).unproven == ""


def test_a_decision_better_than_one_that_is_not_proven_is_no_reason_to_doubt():
    costs = np.array([[1.0, 3.0, 5.0], [2.0, 4.0, 1.0]])
    found = np.array([4.6, 4.0])  # in the first row not the best
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        regrets = Hindsight(TopK(3, 1), costs, found, gaps=np.array([0.5, 0.0])).regret(costs)
    np.testing.assert_allclose(regrets, [-0.4, 0.0])
    for gaps in (None, np.array([0.3, 0.0])):
        with pytest.warns(OptimalityWarning, match="row 0: the decision for the prediction is better than the optimal"):
            Hindsight(TopK(3, 1), costs, found, gaps=gaps).regret(costs)


class TestInNotebooks:
    """A comparison as a table of HTML, as a frame and as a figure."""

    @pytest.fixture
    def costs(self):
        return np.random.default_rng(0).uniform(1.0, 9.0, size=(60, 4))

    @pytest.fixture
    def predictions(self, costs):
        rng = np.random.default_rng(1)
        return {f"<{noise}>": costs + noise * rng.normal(size=costs.shape) for noise in (4.0, 1.0)}

    def test_the_table_has_all_numbers_and_escapes_names(self, costs, predictions):
        found = compare(TopK(4, 1, sense="min"), predictions, costs)
        page = found._repr_html_()
        assert "&lt;4.0&gt;" in page
        assert "<1.0>" not in page
        for row in found:
            assert str(row.regret) in page
        assert str(found).splitlines()[-1] in page

    def test_the_frame_has_the_ends_of_intervals(self, costs, predictions):
        found = compare(TopK(4, 1, sense="min"), predictions, costs)
        frame = found.to_frame()
        assert frame.index.tolist() == list(predictions)
        row = frame.loc["<1.0>"]
        assert tuple(row[["regret", "regret_low", "regret_high"]]) == found[1].regret
        assert (
            tuple(row[["mean_difference", "mean_difference_low", "mean_difference_high"]]) == found[1].mean_difference
        )
        assert frame.loc["<4.0>"][["difference", "mean_difference_low"]].isna().all()

    @pytest.mark.parametrize("blocks", [None, "auto"])
    def test_the_figure_shows_intervals_and_the_time_if_rows_are_in_order(self, costs, predictions, blocks):
        found = compare(TopK(4, 1, sense="min"), predictions, costs, blocks=blocks)
        ax = found.plot()
        try:
            assert [label.get_text() for label in ax.get_yticklabels()] == list(predictions)
            drawn = {tuple(line.get_xdata()) for line in ax.lines}
            assert {(row.regret.low, row.regret.high) for row in found} <= drawn
            first, *others = ax.figure.axes
            assert first is ax
            assert len(others) == (blocks is not None)
            for over_time in others:
                for line, regrets in zip(over_time.lines, found.regrets.values(), strict=True):
                    assert np.mean(line.get_ydata()) == pytest.approx(regrets.mean())  # parts are equally long here
        finally:
            pyplot.close(ax.figure)

    def test_a_figure_on_axes_that_are_there(self, costs, predictions):
        ax = Figure().add_subplot()
        assert compare(TopK(4, 1, sense="min"), predictions, costs, blocks="auto").plot(ax) is ax
        assert ax.figure.axes == [ax]


def test_a_row_without_a_decision_is_named():
    levels = Levels([[0, 1], [0, 2]], total=[3, 1.5], on_error="nan")  # none sum to 1.5
    costs = np.ones((2, 4))
    with pytest.raises(ValueError, match=r"row 1 has no decision, since it could not be solved"):
        normalized_regret(levels, costs, costs)
