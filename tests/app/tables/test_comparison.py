"""The comparison: what is chosen never sees what it is measured on, and the figures are right."""

import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from decidewise.app.tables import choice
from decidewise.app.tables.choice import choose
from decidewise.app.tables.columns import TableOptions
from decidewise.app.tables.comparison import TableVerdict, compare_samples, share_saved
from decidewise.app.tables.fitting import Advice, fit_in_memory
from decidewise.app.tables.headline import explanation, headline, verdict_in_words
from decidewise.app.tables.health import alarms, doubts, health
from decidewise.app.tables.samples import TableSamples, as_gap, hold_out
from decidewise.app.tables.savings import bills, by_item, by_kind_of_row, extreme_rows
from decidewise.evaluate import Interval
from decidewise.kit.errors import InputError
from decidewise.models import GeneralizedLinear, WiseRegressor, WiseRegressorCV, default_candidates, wise_regressor_cv
from decidewise.problems import KnownCosts, LinearProgram, TopK

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
    real = choice.WiseRegressorCV.fit
    monkeypatch.setattr(
        choice.WiseRegressorCV, "fit", lambda self, X, y, **more: seen.append((X, y)) or real(self, X, y, **more)
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
    for parts in by_kind_of_row(result).values():  # each has its own mean
        np.testing.assert_allclose(np.average([p.saving for p in parts], weights=[p.n_rows for p in parts]), total)
        assert sum(part.n_rows for part in parts) == len(result.rows)
    np.testing.assert_allclose(result.saving.estimate, total)


def test_the_share_is_the_ratio_of_sums(result):
    before, after = (result.regrets[name] for name in (result.baseline, result.chosen))
    assert result.baseline == "forecast"
    np.testing.assert_allclose(result.share.estimate, 100 * (before - after).sum() / before.sum())
    assert result.share.low < result.share.estimate < result.share.high


@pytest.mark.parametrize(("sense", "known"), [("min", False), ("max", False), ("min", True)])
def test_the_bill_is_what_the_decisions_pay_or_earn(sense, known):
    result = compare_samples(make_samples(forecast=True, sense=sense, known=known))
    problem = result.truth.problem
    for bill in bills(result):
        ideal = bill.name == "perfect foresight"
        decided = problem.lifted.solve(result.truth.costs)[:, :D] if ideal else result.decisions[bill.name]
        added = problem.known if known else 0.0
        value = ((result.truth.costs[:, :D] + added) * decided).sum(axis=1).mean()
        np.testing.assert_allclose(bill.value, value)
    before, *others = bills(result)
    assert before.saving == 0
    for bill in others:
        np.testing.assert_allclose(bill.saving, (before.value - bill.value) * (1 if sense == "min" else -1), atol=1e-12)


def test_a_year_has_as_many_rows_as_the_table_had():
    samples = make_samples(400)
    np.testing.assert_allclose(samples.rows_per_year, 365.25)
    sampled = replace(samples.take(np.arange(0, 400, 2)), share=0.5)
    np.testing.assert_allclose(sampled.rows_per_year, 365.25, rtol=0.01)
    assert samples.take(slice(0, 20)).rows_per_year is None  # too short a time to say
    assert replace(samples, times=None).rows_per_year is None


def test_items_are_in_their_own_order(result):
    assert [part.name for part in by_item(result)] == ["a", "b", "c"]


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
    with pytest.raises(InputError, match="--max-solves must be at least 32"):
        compare_samples(make_samples(), max_solves=31)


def test_a_named_model_is_taken_without_a_search():
    found = choose(make_samples(), name="wise")
    assert (found.order, found.search) == (("wise",), None)


@pytest.mark.parametrize(
    "settings", [{}, {"one_model": True}, {"train_solves": 20_000}, {"known": True}, {"times": False, "seed": 7}]
)
def test_what_is_chosen_and_fitted_is_what_wise_regressor_cv_chooses(settings):
    """The same arrays and the same seed give the same members and weights, and the same predictions."""
    made = {name: settings.pop(name) for name in ("known", "times") if name in settings}
    samples = make_samples(120, forecast=True, **made)
    seed = settings.pop("seed", 0)
    own = fit_in_memory(samples, TableOptions.of({}), gap=None, name="choice", seed=seed, **settings)
    X = samples.features(own.choice.prepared)
    one = {"rule": "minimum"} if settings.pop("one_model", False) else {}
    model = WiseRegressorCV(
        samples.problem, forecast=samples.forecast_columns(own.choice.prepared), random_state=seed, **one, **settings
    ).fit(X, samples.costs, times=samples.times)
    assert own.choice.weights == model.weights_
    assert (len(model.weights_) > 1) == (not one)
    np.testing.assert_array_equal(own.model.estimator.predict(X), model.predict(X))
    again = own.choice.model("choice", problem=samples.problem).fit(X, samples.costs)
    np.testing.assert_allclose(again.predict(X), model.predict(X))
    compared = compare_samples(samples, seed=seed, one_model=bool(one), **settings)
    known = samples.take(compared.splits[0][0])
    assert compared.choice.weights == choose(known, seed=seed, one_model=bool(one), **settings).weights


def test_models_trained_with_the_solver_are_measured_and_fitted_anew():
    """Also where the problem differs by row; on the training rows of each window."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(90, 2))
    costs = (x @ rng.normal(size=(2, D))) ** 3 + rng.normal(0, 0.5, (90, D))
    samples = replace(make_samples(90), lines={"x": x[:, 0], "y": x[:, 1]}, costs=costs)
    samples = replace(samples, problem=KnownCosts(TopK(D, 1), rng.uniform(0, 0.1, (90, D))))
    found = compare_samples(samples, train_solves=100_000)
    assert any(family == "SPO+" for family in found.choice.families.values())
    assert "choice" in found.regrets
    assert not found.failures
    with pytest.raises(InputError, match="SPO\\+ needs all rows in memory"):
        choose(samples, train_solves=10, in_blocks=True)


@pytest.mark.parametrize(
    ("challenger", "baseline", "saving", "regrets", "expected"),
    [
        ("choice", "forecast", (1, 0.5, 2), {"choice": 1, "forecast": 2}, ("choice", "better")),
        ("choice", "forecast", (1, -1, 2), {"choice": 1, "forecast": 2}, ("forecast", "unproven")),
        ("choice", "forecast", (-1, -2, -1), {"choice": 3, "forecast": 2}, ("forecast", "worse")),
        ("choice", "forecast", (1, -1, 2), {"choice": 1, "forecast": 2, "do nothing": 1.5}, ("do nothing", "no gain")),
        ("forecast", "forecast", (0, 0, 0), {"forecast": 2, "training mean": 1}, ("forecast", "same")),
        (
            "choice",
            "least squares",
            (1, -1, 2),
            {"choice": 1, "least squares": 2, "training mean": 1},
            ("choice", "unproven"),
        ),
        (
            "choice",
            "least squares",
            (-1, -2, 1),
            {"choice": 3, "least squares": 2, "training mean": 2.5},
            ("least squares", "unproven"),
        ),
        (
            "choice",
            "least squares",
            (1, 0.5, 2),
            {"choice": 2, "least squares": 3, "training mean": 1},
            ("training mean", "no gain"),
        ),
        (
            "choice",
            "least squares",
            (-1, -2, -1),
            {"choice": 3, "least squares": 2, "training mean": 4},
            ("least squares", "worse"),
        ),
    ],
)
def test_no_model_is_advised_that_the_null_model_beats(challenger, baseline, saving, regrets, expected):
    verdict = TableVerdict.of(challenger, baseline, Interval(*saving), regrets)
    assert (verdict.name, verdict.outcome) == expected


def test_headlines(result):
    said = headline(result)
    assert result.verdict.outcome == "better"
    assert re.fullmatch(
        r"An average .* saves about [\d.]+ ± [\d.]+ EUR per day against your forecast: [\d.]+ ± [\d.]+ % of the "
        "avoidable cost.",
        said,
    )
    gained = compare_samples(make_samples(forecast=True, seed=3, sense="max"), test=0.5)
    assert " gain" in headline(gained)
    useless = compare_samples(make_samples(noise=3.0, seed=1))
    assert headline(useless).startswith("Use an average of the best models, which the training rows prefer: it ")
    assert headline(useless).endswith(" against least squares on 12 held-out days, a difference that may be chance.")
    useless.regrets["training mean"][:] = 0.0
    assert headline(useless) == (
        "Use the mean of past costs: on 12 held-out days, neither least squares nor an average of the best models is "
        "proven to decide better."
    )
    idle = replace(result, regrets=result.regrets | {"do nothing": np.zeros(N // 2)})
    assert headline(idle).startswith("Do nothing: on 24 held-out days, neither your forecast nor an average of ")


def test_iterated_wise_is_measured_where_features_are_in_the_units_of_the_costs(result):
    assert {"wise", "wise iterated", "forecast"} <= set(result.regrets)
    assert "wise iterated" not in compare_samples(make_samples(), one_model=True).regrets


def test_an_average_is_explained_by_its_families(result):
    weights = {
        "gamma": 0.3, "wise poisson": 0.2, "forecast": 0.2, "trees": 0.1, "wise iterated": 0.1, "directions": 0.06,
        "spo+ from gamma": 0.04,
    }  # fmt: skip
    made = replace(result.choice, families=result.choice.families | {"trees": "trees", "spo+ from gamma": "SPO+"})
    assert explanation(replace(made, weights=weights)) == (
        "The choice averages 7 models: 50 % log-linear models, 20 % your forecast, 10 % trees, 10 % iterated WISE and "
        "10 % others. The training rows cannot tell which of them decides best."
    )
    assert explanation(replace(result.choice, weights={"gamma": 1.0})) == "The choice is 'gamma': a log-linear model."
    assert explanation(choose(make_samples(), name="wise")) == ""
    lost = replace(result, saving=Interval(-2.0, -5.0, 1.0))
    assert "lost about 2.0 ± 3.0 EUR per day on 24 held-out days, a difference that may be chance." in headline(lost)
    worse = headline(replace(result, saving=Interval(-2.0, -3.0, -1.0)))
    assert worse.endswith("chosen on the training rows, lost about 2.0 ± 1.0 EUR per day on 24 held-out days.")


class Fails(BaseEstimator):
    """A log-linear model that fails with more than so many rows: in its fit, or in any prediction."""

    def __init__(self, rows, error, predicts=True):
        self.rows, self.error, self.predicts = rows, error, predicts

    def fit(self, X, y):
        if len(X) > self.rows:
            raise self.error
        self.model_ = WiseRegressor(GeneralizedLinear("gamma"), exponent=0.75).fit(X, y)
        return self

    def predict(self, X):
        return self.model_.predict(X) if self.predicts else np.full((len(X), D), np.nan)


def replace_candidate(monkeypatch, name, model):
    def menu(*arguments, **options):
        found = default_candidates(*arguments, **options)
        found[name] = model
        return found

    for module in (choice, wise_regressor_cv):
        monkeypatch.setattr(module, "default_candidates", menu)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (Fails(0, RuntimeError("odd")), "Not fitted: 'wise 0.75 gamma': RuntimeError: odd."),
        (Fails(23, MemoryError()), "Not fitted: 'wise 0.75 gamma': on all rows: MemoryError."),
        (Fails(30, np.linalg.LinAlgError("singular")), "Not measured: 'choice': LinAlgError: singular."),
        (Fails(99, OSError(), predicts=False), "Not fitted: 'wise 0.75 gamma': ValueError: prediction "),
    ],
    ids=["in a fold", "in the last fit of the choice", "in a later window", "in prediction"],
)
def test_a_candidate_that_fails_is_said_and_the_next_best_is_taken(monkeypatch, result, model, reason):
    assert "wise 0.75 gamma" in result.choice.weights
    replace_candidate(monkeypatch, "wise 0.75 gamma", model)
    other = compare_samples(make_samples(forecast=True, seed=3), test=0.5)
    assert [note for note in other.notes if note.startswith(reason)]
    late = reason.startswith("Not measured")
    assert ("wise 0.75 gamma" in other.choice.weights) == ("choice" in other.failures) == late
    assert (other.challenger == other.choice.order[1]) == late != (other.challenger == "choice")
    assert other.challenger in other.regrets


def test_a_first_negative_cost_in_a_late_row_gets_a_floor():
    """The training rows have positive costs only, so the search has log links without one."""
    samples = make_samples(seed=3)
    samples.costs[40, 0] = -0.5
    result = compare_samples(samples, test=0.5)
    assert "gamma, quadratic, ridge 0.1" in result.choice.weights
    assert not result.failures
    assert np.isfinite(result.predictions["choice"]).all()


def test_a_prediction_that_cannot_be_decided_is_a_row():
    """Least squares predict costs below zero, which have no best decision; then others are compared with the mean."""
    n = 60
    x = np.linspace(0, 1, n)
    costs = np.maximum(0.05, 1 - 3 * x)[:, np.newaxis] * np.random.default_rng(0).uniform(0.9, 1.1, (n, 5))
    problem = LinearProgram([[-1.0] * 5], [-1.0])
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
    assert "Unbounded" in result.failures["least squares"]
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
    assert [topic for topic, finding in found.items() if finding.look] == ["test rows"]  # there are 12


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
    said = " ".join(alarms(health(found)))
    assert verdict_in_words(found, doubts(health(found))).endswith(
        ", with doubts: only 4 blocks of test days; 1 of 3 features drifted"
    )
    assert "Outliers: 3 costs" in said
    assert "Drift in the features: the mean of 'x' moved" in said
    samples.lines["hint"] = 3 + 1.19 * samples.costs[:, 1]
    leaked = compare_samples(samples)
    assert leaked.leaks == ["hint"]
    assert "a possible leak" in doubts(health(leaked))
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
    assert not any("features" in said for said in alarms(health(found)))


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
