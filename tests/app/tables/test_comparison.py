"""The comparison: what is chosen never sees what it is measured on, and the figures are right."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from decidewise.app.tables import comparison, measured
from decidewise.app.tables.advice import Advice
from decidewise.app.tables.comparison import choose, compare_samples, share_saved
from decidewise.app.tables.fitting import fit_in_memory
from decidewise.app.tables.headline import headline
from decidewise.app.tables.health import alarms, health
from decidewise.app.tables.held_out import as_gap, hold_out
from decidewise.app.tables.options import TableOptions
from decidewise.app.tables.samples import TableSamples
from decidewise.app.tables.savings import by_item, by_kind_of_row, extreme_rows
from decidewise.evaluate import Interval
from decidewise.kit.errors import InputError
from decidewise.models import GeneralizedLinear, WiseRegressor, default_candidates, wise_regressor_cv
from decidewise.problems import KnownCosts, ShortestPath, TopK

N, D = 48, 3


def make_samples(n=N, *, seed=0, forecast=False, times=True, sense="min", known=False, noise=0.1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    costs = np.exp(x @ rng.normal(size=(2, D)) * 0.7 + rng.normal(0, noise, (n, D)))
    lines = {"x": x[:, 0], "y": x[:, 1]}
    if forecast:
        lines |= {f"f{j}": costs[:, j] * rng.uniform(0.1, 1.9, n) for j in range(D)}
    days = np.datetime64("2026-01-01T00:00:00.000000") + np.arange(n) * np.timedelta64(1, "D")
    problem = TopK(D, 1, sense=sense)
    return TableSamples(
        lines,
        per_item=False,
        cost_names=("a", "b", "c"),
        keys=days,
        title="day",
        costs=costs,
        times=days if times else None,
        problem=KnownCosts(problem, rng.uniform(0, 1, (n, D))) if known else problem,
        forecast=tuple(f"f{j}" for j in range(D)) if forecast else (),
        unit="EUR",
    )


@pytest.fixture(scope="module")
def result():
    return compare_samples(make_samples(forecast=True, seed=3), test=0.5)


@pytest.mark.parametrize("gap", [None, np.timedelta64(3, "D")])
def test_nothing_is_trained_on_what_comes_later(gap):
    times = make_samples().times
    splits = hold_out(N, 0.25, np.random.default_rng(0), times=times, gap=gap)
    assert np.concatenate([test for _, test in splits]).tolist() == list(range(36, 48))
    for train, test in splits:
        assert times[train].max() < times[test].min() - (gap or np.timedelta64(0, "D"))
    assert [len(train) for train, _ in splits] == sorted(len(train) for train, _ in splits)


def test_groups_are_held_out_whole():
    groups = np.repeat(list("abcdefgh"), 6)
    [(train, test)] = hold_out(N, 0.25, np.random.default_rng(0), groups=groups)
    assert not set(groups[train]) & set(groups[test])
    assert len(train) + len(test) == N


def test_the_choice_and_the_preparation_see_no_held_out_row(monkeypatch):
    """Other costs and features in the held-out rows change neither what is chosen nor how features are prepared."""
    seen = []
    real = comparison.WiseRegressorCV.fit
    monkeypatch.setattr(
        comparison.WiseRegressorCV, "fit", lambda self, X, y, **more: seen.append((X, y)) or real(self, X, y, **more)
    )
    samples = make_samples()
    changed = make_samples()
    changed.costs[36:] = np.random.default_rng(9).uniform(1, 9, (12, D))
    changed.lines["x"][36:] = np.nan
    first, second = compare_samples(samples), compare_samples(changed)
    assert [len(X) for X, _ in seen] == [36, 36]
    np.testing.assert_array_equal(seen[0][1], seen[1][1])
    np.testing.assert_array_equal(seen[0][0], seen[1][0])
    assert first.chosen == second.chosen
    assert first.choice.prepared.columns_ == second.choice.prepared.columns_


def test_a_rolling_origin_is_the_same_as_fitting_by_hand():
    samples = make_samples()
    result = compare_samples(samples)
    X = samples.features(result.choice.prepared)
    for train, test in result.splits:
        expected = GeneralizedLinear().fit(X[train], samples.costs[train]).predict(X[test])
        np.testing.assert_allclose(result.predictions["least squares"][test - 36], expected)
    chosen = samples.costs[36:][np.arange(12), result.predictions["least squares"].argmin(axis=1)]
    np.testing.assert_allclose(result.regrets["least squares"], chosen - samples.costs[36:].min(axis=1))


@pytest.mark.parametrize(("sense", "known"), [("min", False), ("max", False), ("min", True)])
def test_savings_of_all_parts_add_up(sense, known):
    result = compare_samples(make_samples(forecast=True, sense=sense, known=known))
    total = (result.regrets[result.baseline] - result.regrets[result.challenger]).mean()
    assert result.challenger != result.baseline
    np.testing.assert_allclose(sum(part.saving for part in by_item(result)), total)
    for parts in by_kind_of_row(result).values():
        np.testing.assert_allclose(sum(part.saving for part in parts), total)
        assert sum(part.n_rows for part in parts) == len(result.rows)
    np.testing.assert_allclose(result.saving.estimate, total)


def test_the_share_is_the_ratio_of_sums(result):
    before, after = (result.regrets[name] for name in (result.baseline, result.chosen))
    assert result.baseline == "forecast"
    np.testing.assert_allclose(result.share.estimate, 100 * (before - after).sum() / before.sum())
    assert result.share.low < result.share.estimate < result.share.high


def test_no_regret_has_no_share():
    assert share_saved(np.zeros(5), np.ones(5)) is None


def test_the_largest_savings_and_losses_are_named(result):
    rows = extreme_rows(result)
    assert rows[0][1] == max(result.regrets["forecast"] - result.regrets[result.chosen])
    assert rows[0][0].startswith(("2026-01-", "2026-02-"))


def test_a_budget_of_solver_calls_is_kept():
    solved = []

    class Watched(TopK):
        def solve(self, costs):
            solved.append(len(costs))
            return super().solve(costs)

    samples = make_samples(times=False)
    result = compare_samples(replace(samples, problem=Watched(D, 1, sense="min")), max_solves=700)
    assert result.n_solves <= 700
    assert sum(solved) <= 700


def test_too_small_a_budget():
    with pytest.raises(InputError, match="--max-solves must be at least 28"):
        compare_samples(make_samples(), max_solves=27)


def test_a_named_model_is_taken_without_a_search():
    choice = choose(make_samples(), name="wise")
    assert (choice.order, choice.search) == (("wise",), None)


def test_the_average_if_asked_for():
    assert compare_samples(make_samples(), average=True).challenger == "average"
    assert choose(make_samples(), name="average").name == "average"


def test_headlines(result):
    said = headline(result)
    assert result.verdict.outcome == "better"
    assert "of the avoidable cost against your forecast: about " in said
    assert "EUR ± " in said
    assert said.endswith("per day.")
    useless = compare_samples(make_samples(noise=3.0, seed=1))
    assert headline(useless).startswith("Keep least squares")
    lost = replace(result, saving=Interval(-2.0, -5.0, 1.0))
    assert headline(lost).endswith("held-out rows (it lost about 2 EUR ± 3 per day).")
    assert headline(replace(result, saving=Interval(-2.0, -3.0, -1.0))).endswith("decides worse on the held-out ones.")


class Fails(BaseEstimator):
    """A log-linear model that fails with more than so many rows: in its fit, or in any prediction."""

    def __init__(self, rows, error, predicts=True):
        self.rows, self.error, self.predicts = rows, error, predicts

    def fit(self, X, y):
        if len(X) > self.rows:
            raise self.error
        self.model_ = WiseRegressor(GeneralizedLinear("poisson"), exponent=0.0).fit(X, y)
        return self

    def predict(self, X):
        return self.model_.predict(X) if self.predicts else np.full((len(X), D), np.nan)


def replace_candidate(monkeypatch, name, model):
    def menu(*arguments, **options):
        found = default_candidates(*arguments, **options)
        found[name] = model
        return found

    for module in (comparison, measured, wise_regressor_cv):
        monkeypatch.setattr(module, "default_candidates", menu)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Fails(0, RuntimeError("odd")), "Not fitted: 'poisson': RuntimeError: odd."),
        (Fails(23, MemoryError()), "Not fitted: 'poisson': on all rows: MemoryError."),
        (Fails(30, np.linalg.LinAlgError("singular")), "Not measured: 'poisson': LinAlgError: singular."),
        (Fails(99, OSError(), predicts=False), "Not fitted: 'poisson': ValueError: prediction "),
    ],
    ids=["in a fold", "in the last fit of the choice", "in a later window", "in prediction"],
)
def test_a_candidate_that_fails_is_said_and_the_next_best_is_taken(monkeypatch, result, model, reason):
    assert result.challenger == "poisson"
    replace_candidate(monkeypatch, "poisson", model)
    other = compare_samples(make_samples(forecast=True, seed=3), test=0.5)
    assert other.challenger not in ("poisson", "forecast")
    assert [note for note in other.notes if note.startswith(reason)]
    assert ("poisson" in other.failures) == reason.startswith("Not measured")
    assert "poisson" not in other.regrets


def test_a_first_negative_cost_in_a_late_row_gets_a_floor():
    """The training rows have positive costs only, so the search has log links without one."""
    samples = make_samples(seed=3)
    samples.costs[40, 0] = -0.5
    result = compare_samples(samples, test=0.5)
    assert result.challenger == "gamma, ridge 1"
    assert not result.failures
    assert np.isfinite(result.predictions["gamma, ridge 1"]).all()


def test_a_prediction_that_cannot_be_decided_is_a_row():
    """Least squares predict a cycle below zero for the last rows; then the mean is what others are compared with."""
    n = 60
    x = np.linspace(0, 1, n)
    costs = np.maximum(0.05, 1 - 3 * x)[:, np.newaxis] * np.random.default_rng(0).uniform(0.9, 1.1, (n, 5))
    problem = ShortestPath.from_edges([0, 1, 2, 1, 2], [1, 2, 1, 3, 3], source=0, target=3)
    samples = TableSamples(
        {"x": x},
        per_item=False,
        cost_names=tuple("abcde"),
        keys=np.arange(n),
        title="row",
        costs=costs,
        problem=problem,
    )
    result = compare_samples(samples)
    assert "a cycle has a negative cost" in result.failures["least squares"]
    assert (result.baseline, result.chosen in result.regrets) == ("training mean", True)


@pytest.mark.parametrize("order", [("gamma", "wise"), ("gamma",)])
def test_if_the_last_fit_fails_the_next_best_is_taken(monkeypatch, order):
    samples, options = make_samples(), TableOptions.of({})
    replace_candidate(monkeypatch, "gamma", Fails(0, RuntimeError("odd")))
    monkeypatch.setattr(Advice, "on", lambda *_, **__: Advice(order))
    if len(order) == 1:
        with pytest.raises(RuntimeError, match="odd"):
            fit_in_memory(samples, options, gap=None)
        return
    found = fit_in_memory(samples, options, gap=None)
    said = "'gamma' failed on all rows (RuntimeError: odd), and the next best is taken."
    assert found.choice.name == "wise"
    assert found.summary(options, "")["notes"][-1] == found.notes[-1] == said
    replace_candidate(monkeypatch, "gamma", Fails(0, MemoryError()))
    with pytest.raises(MemoryError):  # the fault of the machine
        fit_in_memory(samples, options, gap=None)


def findings(samples):
    return {finding.topic: finding for finding in health(compare_samples(samples))}


def test_healthy_data_is_called_fine():
    found = findings(make_samples(times=False))
    assert not any(finding.look for finding in found.values()), found


def test_a_column_is_judged_by_what_became_of_it_not_by_its_name():
    samples = make_samples(times=False)
    samples.lines["gaps left out"] = np.tile(["u", "v"], N // 2)
    found = findings(samples)
    assert not found["gaps"].look
    assert not found["columns dropped or converted"].look
    samples.lines["gaps left out"][::3] = ""
    samples.lines["same"] = np.ones(N)
    found = findings(samples)
    assert found["gaps"].look
    assert found["columns dropped or converted"].look


def test_sick_data_is_noticed():
    samples = make_samples(noise=0.3)
    samples.lines["x"][36:] += 9
    samples.lines["twin"] = 2 * samples.lines["y"]
    samples.lines["leak"] = samples.costs[:, 1].copy()
    samples.costs[3, 0] = 1e6
    samples.costs[:12, 2] = 0.0
    found = findings(samples)
    for topic in ("drift in the features", "collinearity", "costs among the features", "outliers", "heavy tails"):
        assert found[topic].look, topic
    assert found["zeros and negative costs"].look
    assert "'leak'" in found["costs among the features"].found
    assert "'a' of 2026-01-04" in found["outliers"].found
    assert "'x'" in found["drift in the features"].found


def test_what_makes_a_result_doubtful_is_said_with_it():
    samples = make_samples(noise=0.3)
    samples.lines["x"][36:] += 9
    samples.lines["spike"] = np.where(np.arange(N) == 3, 1e6, samples.lines["y"])  # a shared outlier is no leak
    samples.costs[3, 0] = 1e6
    found = compare_samples(samples)
    assert not headline(found).startswith("Possible leak")
    said = " ".join(alarms(found))
    assert "Outliers: 3 costs" in said
    assert "Drift in the features: the mean of 'x' moved" in said
    samples.lines["hint"] = 3 + 1.19 * samples.costs[:, 1]
    leaked = compare_samples(samples)
    assert leaked.leaks == ["hint"]
    assert headline(leaked).startswith(
        "Possible leak: 'hint' is almost identical to a cost of the same row. If you do not know it when you decide, "
        "drop it (--features): the result below is then wrong. "
    )


def test_drift_within_the_range_of_training_is_not_loud():
    samples = make_samples(noise=0.3)
    samples.lines["x"] = np.where(np.arange(N) < 36, np.linspace(0, 10, N) % 5, 4.0)
    found = compare_samples(samples)
    [drift] = [finding for finding in health(found) if finding.topic == "drift in the features"]
    assert (drift.look, drift.loud) == (True, False)
    assert not any("features" in said for said in alarms(found))


def test_of_the_notes_only_doubts_deserve_a_look():
    samples = make_samples(times=False)
    samples = replace(samples, notes=("Rows are in order.", "'x': -9999 occurs."), doubts=("'x': -9999 occurs.",))
    read = [finding for finding in health(compare_samples(samples)) if finding.topic == "how the table was read"]
    assert [(finding.found, finding.look) for finding in read] == [
        ("Rows are in order", False),
        ("'x': -9999 occurs", True),
    ]


@pytest.mark.parametrize("unit", [1e-250, 1e250])
def test_findings_in_any_unit(unit):
    samples = make_samples(noise=0.3)
    samples.lines["x"][36:] += 9
    samples.lines["leak"] = samples.costs[:, 1].copy()
    expected = findings(samples)
    samples = replace(samples, costs=samples.costs * unit)
    for name in ("x", "y", "leak"):
        samples.lines[name] = samples.lines[name] * unit
    found = findings(samples)  # and warnings are errors
    for topic in ("drift in the features", "drift in the costs", "heavy tails", "costs among the features"):
        assert found[topic] == expected[topic]


def test_gaps():
    days = make_samples().times
    assert as_gap("2", days) == np.timedelta64(2, "D")
    assert as_gap("36h", days) == np.timedelta64(36, "h")
    assert as_gap(None, days) is None
    assert as_gap("2.5", np.arange(5)) == 2.5
