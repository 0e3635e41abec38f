import io
import pickle
import signal
import threading

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.linear_model import GammaRegressor, LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from decidewise import DecisionRegressor, DivergenceError, GeneralizedLinear, WiseRegressor, WiseRegressorCV
from decidewise.data import make_knapsack, make_shortest_path
from decidewise.evaluate import normalized_regret
from decidewise.losses import Cave, Loss, Pfy, SpoPlus, Target, registry
from decidewise.measure import norms, transform
from decidewise.models.training.step import Average
from decidewise.problems import Ball, CountedProblem, ShortestPath, TopK


@parametrize_with_checks(
    [DecisionRegressor(Ball(1), "wise", init="zeros", epochs=3)],
    expected_failed_checks=lambda _: {"check_regressor_multioutput": "the problem fixes the number of outputs"},
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    return make_shortest_path(1200, degree=6, seed=0).split(200)


def regret(model, test):
    return normalized_regret(test.problem, model.predict(test.X), test.costs)


def test_spo_plus_decides_better_than_least_squares(data):
    train, test = data
    model = DecisionRegressor(train.problem, "spo+", random_state=0).fit(train.X, train.costs)
    assert regret(model, test) < 0.8 * regret(LinearRegression().fit(train.X, train.costs), test)


@pytest.mark.parametrize("loss", ["mse", "wise"])
def test_adam_reaches_the_exact_minimiser_of_solver_free_losses(data, loss):
    train, test = data
    model = DecisionRegressor(
        train.problem, loss, init="torch", epochs=3000, batch_size=200, learning_rate=0.01, random_state=0
    ).fit(train.X, train.costs)
    exact = WiseRegressor(exponent=float(loss == "wise"), scale="unit").fit(train.X, train.costs)
    np.testing.assert_allclose(
        model.predict(test.X), exact.predict(test.X), atol=1e-2 * np.abs(exact.predict(test.X)).max()
    )
    assert model.history_[-1].n_solves == 0


def test_adam_is_torchs(data):
    torch = pytest.importorskip("torch")
    train, _ = data
    X, costs = torch.tensor(train.X), torch.tensor(train.costs)
    start = np.random.default_rng(1).normal(size=(6, 40))
    layer = torch.nn.Linear(5, 40, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(start[1:].T))
        layer.bias.copy_(torch.tensor(start[0]))
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.02)
    for _ in range(5):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(layer(X), costs).backward()
        optimizer.step()
    ours = DecisionRegressor(
        train.problem,
        "mse",
        protocol="paper",
        init=start,
        epochs=5,
        batch_size=200,
        learning_rate=0.02,
        random_state=0,
    ).fit(train.X, train.costs)
    np.testing.assert_allclose(ours.coef_, layer.weight.detach().numpy(), rtol=1e-9)
    np.testing.assert_allclose(ours.intercept_, layer.bias.detach().numpy(), rtol=1e-9)


@pytest.mark.filterwarnings("ignore::decidewise.TrainingWarning")
@pytest.mark.parametrize("name", sorted(set(registry) - {"implicit", "compact"}))  # which refuse paths
def test_every_registered_loss_trains_and_repeats_bit_by_bit(data, name):
    train, test = data
    model = DecisionRegressor(train.problem, name, epochs=2, random_state=3).fit(train.X[:64], train.costs[:64])
    again = clone(model).fit(train.X[:64], train.costs[:64])
    assert len(model.history_) == 2
    assert np.isfinite(model.predict(test.X)).all()
    np.testing.assert_array_equal(model.coef_, again.coef_)
    assert [epoch.loss for epoch in model.history_] == [epoch.loss for epoch in again.history_]


def test_a_loss_of_ones_own_works_by_name(data, monkeypatch):
    train, _ = data

    class Blind(Loss):
        target_type = Target
        gradient = "exact"
        solves = False

        def evaluate(self, prediction, target, rng):
            return np.abs(prediction).sum(axis=1), np.sign(prediction)

    monkeypatch.setitem(registry, "blind", Blind)
    model = DecisionRegressor(train.problem, "blind", init="mse", epochs=300, random_state=0).fit(train.X, train.costs)
    assert np.abs(model.predict(train.X)).mean() < 0.1


class TestStarts:
    def fitted(self, train, init, loss="spo+", **settings):
        # A learning rate this small leaves the start where it was.
        return DecisionRegressor(
            train.problem, loss, init=init, epochs=1, learning_rate=1e-12, random_state=0, **settings
        ).fit(train.X, train.costs)

    def test_wise_is_the_exact_fit_at_the_size_of_the_costs(self, data):
        train, test = data
        exact = WiseRegressor(scale="unit").fit(train.X, train.costs).predict(test.X)
        np.testing.assert_allclose(
            self.fitted(train, "wise").predict(test.X), exact * norms(train.costs).mean(), rtol=1e-6, atol=1e-9
        )
        np.testing.assert_allclose(self.fitted(train, "wise", "wise").predict(test.X), exact, rtol=1e-6, atol=1e-9)

    def test_mse_is_least_squares(self, data):
        train, test = data
        exact = LinearRegression().fit(train.X, train.costs)
        np.testing.assert_allclose(self.fitted(train, "mse").predict(test.X), exact.predict(test.X), atol=1e-8)
        np.testing.assert_allclose(self.fitted(train, exact).predict(test.X), exact.predict(test.X), atol=1e-8)

    def test_torch_is_uniform_and_zeros_is_zero(self, data):
        train, _ = data
        model = self.fitted(train, "torch", protocol="paper")
        assert np.abs(model.coef_).max() <= 1 / np.sqrt(5) + 1e-9
        assert 0.2 < np.abs(model.coef_).mean() < 0.25
        assert np.abs(self.fitted(train, "zeros").coef_).max() < 1e-9

    def test_wise_with_the_log_link_is_the_gamma_fit_at_the_size_of_the_costs(self, data):
        train, test = data
        weights, targets = transform(train.costs)
        learner = MultiOutputRegressor(GammaRegressor(alpha=0, solver="newton-cholesky", tol=1e-9))
        expected = learner.fit(train.X, targets, sample_weight=weights).predict(test.X)
        np.testing.assert_allclose(
            self.fitted(train, "wise", link="log").predict(test.X), expected * weights.mean(), rtol=1e-5
        )
        np.testing.assert_allclose(self.fitted(train, "wise", "wise", link="log").predict(test.X), expected, rtol=1e-5)

    def test_mse_with_the_log_link_is_least_squares_of_exponentials(self, data):
        train, _ = data
        model = self.fitted(train, "mse", link="log")

        def total(parameters, column):
            return ((np.exp(parameters[0] + train.X @ parameters[1:]) - train.costs[:, column]) ** 2).sum()

        for column in (0, 17):
            found = np.r_[model.intercept_[column], model.coef_[column]]
            best = minimize(total, np.zeros(6), args=(column,), method="BFGS")
            assert total(found, column) <= best.fun * (1 + 1e-9)

    def test_bad_starts_are_named(self, data):
        train, _ = data
        with pytest.raises(ValueError, match=r"init must be one of wise, mse, torch, zeros.*got 'warm'"):
            self.fitted(train, "warm")
        with pytest.raises(ValueError, match=r"shape \(n_features \+ 1, n_costs\) = \(6, 40\).*got \(2, 2\)"):
            self.fitted(train, np.eye(2))


def test_the_log_link_follows_its_gradient(data):
    train, _ = data
    model = DecisionRegressor(train.problem, "mse", link="log", init="zeros", epochs=400, random_state=0)
    model.fit(train.X, train.costs)
    assert model.history_[-1].loss < 0.5 * model.history_[0].loss
    assert (
        model.history_[-1].loss
        < ((LinearRegression().fit(train.X, train.costs).predict(train.X) - train.costs) ** 2).mean()
    )


def test_the_average_does_not_end_above_a_start_that_is_already_right():
    # At degree 1 the start is the best linear model, and steps of a constant size end around it, not on it.
    excess = {}
    for seed in (11, 12):
        train, test = make_shortest_path(1_500, degree=1, seed=seed).split(500)
        start = regret(WiseRegressor().fit(train.X, train.costs), test)
        for protocol in ("safe", "paper"):
            model = DecisionRegressor(
                train.problem, "spo+", protocol=protocol, epochs=30, learning_rate=0.03, random_state=0
            )
            excess.setdefault(protocol, []).append(regret(model.fit(train.X, train.costs), test) - start)
    assert np.mean(excess["paper"]) > 0.6
    assert np.mean(excess["safe"]) < 0.4


def test_the_average_weighs_steps_as_a_power():
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(20, 2, 3))
    average = Average(rng.normal(size=(2, 3)))
    for step in steps:
        average.add(step)
    # The weight of step t is proportional to (t + 1) (t + 2) ... (t + 7) t.
    weights = np.array([np.prod(np.arange(t, t + 8, dtype=float)) for t in range(1, 21)])
    np.testing.assert_allclose(average.parameters, np.average(steps, axis=0, weights=weights))


def test_the_last_rows_are_held_out_if_rows_are_in_order(data):
    train, _ = data
    settings = {"early_stopping": True, "validation_fraction": 0.25, "epochs": 1, "random_state": 0}
    model = DecisionRegressor(train.problem, "spo+", validation="last", learning_rate=1e-12, **settings)
    model.fit(train.X, train.costs)
    start = WiseRegressor().fit(train.X[:150], train.costs[:150])
    expected = normalized_regret(train.problem, start.predict(train.X[150:]), train.costs[150:])
    assert model.history_[0].validation_regret == pytest.approx(expected)
    with pytest.raises(ValueError, match="validation must be"):
        DecisionRegressor(train.problem, validation="first").fit(train.X, train.costs)


class TestBudgets:
    def test_solver_calls_never_exceed_the_budget(self, data):
        train, _ = data
        for budget in (200, 201, 1000, 3333):
            for loss in ("spo+", Pfy(n_samples=3), "dbb"):
                counted = Counting(train.problem)
                model = DecisionRegressor(counted, loss, max_solves=budget, random_state=0).fit(train.X, train.costs)
                assert counted.rows <= budget
                assert model.stopped_ == "max_solves"
                assert model.n_solves_ == counted.rows

    def test_validation_is_within_the_budget(self, data):
        train, _ = data
        counted = Counting(train.problem)
        model = DecisionRegressor(counted, "spo+", max_solves=900, early_stopping=True, random_state=0)
        model.fit(train.X, train.costs)
        assert counted.rows <= 900
        assert model.history_[-1].validation_regret is not None

    def test_a_budget_below_the_labels_is_an_error(self, data):
        train, _ = data
        with pytest.raises(ValueError, match=r"max_solves=100 does not cover the labels .* 200 rows"):
            DecisionRegressor(train.problem, "spo+", max_solves=100).fit(train.X, train.costs)

    def test_seconds_end_training(self, data):
        train, _ = data
        model = DecisionRegressor(train.problem, "spo+", epochs=10**6, max_seconds=0.2).fit(train.X, train.costs)
        assert model.stopped_ == "max_seconds"
        assert 0 < len(model.history_) < 10**6

    def test_labels_are_counted(self, data):
        train, _ = data
        model = DecisionRegressor(train.problem, "spo+", epochs=2, random_state=0).fit(train.X, train.costs)
        assert model.label_solves_ == 200
        assert model.label_seconds_ > 0
        # After the labels the loss of the start, and after the last epoch those of the end and of two points between.
        assert [epoch.n_solves for epoch in model.history_] == [600, 800]
        assert model.n_solves_ == 800 + 3 * 200
        papers = DecisionRegressor(train.problem, "spo+", protocol="paper", epochs=2).fit(train.X, train.costs)
        assert [epoch.n_solves for epoch in papers.history_] == [400, 600]
        assert papers.n_solves_ == 600


class Counting(ShortestPath):
    def __init__(self, problem):
        super().__init__(5, 5)
        self.rows = 0

    def minimize(self, costs):
        self.rows += len(costs)
        return super().minimize(costs)


class TestEarlyStopping:
    @pytest.mark.filterwarnings("ignore::decidewise.TrainingWarning")
    def test_it_keeps_the_best_model_and_never_ends_worse_than_it_started(self, data):
        train, _ = data
        model = DecisionRegressor(
            train.problem, "spo+", early_stopping=True, learning_rate=1.0, n_iter_no_change=4, random_state=0
        ).fit(train.X, train.costs)
        assert model.stopped_ == "no change"
        order = np.random.default_rng(np.random.RandomState(0).randint(2**31)).permutation(200)
        held = order[:40]
        kept = normalized_regret(train.problem, model.predict(train.X[held]), train.costs[held])
        start = WiseRegressor().fit(train.X[order[40:]], train.costs[order[40:]])
        started = normalized_regret(train.problem, start.predict(train.X[held]), train.costs[held])
        assert kept == pytest.approx(min([started] + [epoch.validation_regret for epoch in model.history_]))

    def test_too_few_rows_to_set_aside_is_an_error(self, data):
        train, _ = data
        with pytest.raises(ValueError, match=r"validation_fraction=0.2 sets aside 0 of 2 rows"):
            DecisionRegressor(train.problem, early_stopping=True).fit(train.X[:2], train.costs[:2])


class Interrupting(ShortestPath):
    """Presses Ctrl-C after a number of batches."""

    def __init__(self, batches):
        super().__init__(5, 5)
        self.batches = batches

    def minimize(self, costs):
        self.batches -= 1
        if self.batches == 0:
            signal.raise_signal(signal.SIGINT)
            threading.Event().wait(1)
        return super().minimize(costs)


def test_control_c_keeps_the_best_model_so_far(data):
    train, test = data
    model = DecisionRegressor(Interrupting(25), "spo+", epochs=10**6, random_state=0).fit(train.X, train.costs)
    assert model.stopped_ == "interrupted"
    assert 1 <= len(model.history_) <= 4
    assert np.isfinite(model.predict(test.X)).all()


class Exploding(SpoPlus):
    def evaluate(self, prediction, target, rng):
        values, gradient = super().evaluate(prediction, target, rng)
        return (values * np.nan, gradient) if rng.random() < 0.05 else (values, gradient)


def test_a_loss_that_is_not_a_number_names_its_epoch_and_keeps_the_best_model(data):
    train, test = data
    model = DecisionRegressor(train.problem, Exploding(), random_state=0)
    with pytest.raises(DivergenceError, match=r"epoch \d+: the loss became nan") as caught:
        model.fit(train.X, train.costs)
    assert caught.value.epoch == len(model.history_) + 1
    assert model.stopped_ == "diverged"
    assert np.isfinite(model.predict(test.X)).all()
    assert pickle.loads(pickle.dumps(caught.value)).epoch == caught.value.epoch  # noqa: S301


def test_a_diverging_loss_stops_too(data):
    train, _ = data
    with pytest.raises(DivergenceError, match=r"epoch \d+"):
        DecisionRegressor(train.problem, "mse", learning_rate=1e12, epochs=50, random_state=0).fit(train.X, train.costs)


def test_history_is_a_table(data):
    train, _ = data
    model = DecisionRegressor(train.problem, epochs=3, early_stopping=True, random_state=0).fit(train.X, train.costs)
    frame = pd.DataFrame(model.history_)
    assert list(frame) == ["epoch", "loss", "validation_regret", "n_solves", "seconds"]
    assert frame["seconds"].is_monotonic_increasing


@pytest.mark.filterwarnings("ignore::decidewise.TrainingWarning")
def test_verbose_shows_progress_on_standard_error(data, capfd):
    train, _ = data
    DecisionRegressor(train.problem, epochs=2, verbose=True, early_stopping=True).fit(train.X, train.costs)
    shown = capfd.readouterr()
    assert "2/2" in shown.err
    assert "regret" in shown.err
    assert shown.out == ""
    DecisionRegressor(train.problem, epochs=1).fit(train.X, train.costs)
    assert capfd.readouterr().err == ""


@pytest.mark.filterwarnings("ignore::decidewise.TrainingWarning")
def test_a_maximisation_trains_to_the_mirror_of_its_minimisation():
    rng = np.random.default_rng(0)
    X, costs = rng.normal(size=(60, 3)), rng.normal(size=(60, 5))
    for loss in ("spo+", "pfy", "cave", "wise"):
        low = DecisionRegressor(TopK(5, 2, sense="min"), loss, epochs=3, random_state=0).fit(X, costs)
        high = DecisionRegressor(TopK(5, 2, sense="max"), loss, epochs=3, random_state=0).fit(X, -costs)
        np.testing.assert_allclose(high.coef_, -low.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore::decidewise.TrainingWarning")
def test_robust_labels_average_the_costs_of_neighbours_for_any_loss(data):
    train, _ = data
    for loss in ("spo+", "wise", "nce"):
        model = DecisionRegressor(train.problem, loss, n_neighbors=5, epochs=2, random_state=0)
        model.fit(train.X, train.costs)
        standardised = train.X / train.X.std(axis=0)
        distances = np.linalg.norm(standardised[:, None] - standardised, axis=2)
        np.fill_diagonal(distances, np.inf)
        near = np.argsort(distances, axis=1)[:, :5]
        averaged = 0.5 * train.costs + 0.5 * train.costs[near].mean(axis=1)
        plain = DecisionRegressor(train.problem, loss, epochs=2, random_state=0).fit(train.X, averaged)
        np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-9)
    with pytest.raises(ValueError, match=r"n_neighbors must be between 1 and 199"):
        DecisionRegressor(train.problem, n_neighbors=200).fit(train.X, train.costs)


def test_search_and_pipeline_choose_by_regret(data):
    train, test = data
    search = GridSearchCV(
        make_pipeline(StandardScaler(), DecisionRegressor(train.problem, epochs=3, random_state=0)),
        {"decisionregressor__loss": ["spo+", "mse"]},
        cv=3,
    ).fit(train.X, train.costs)
    assert search.best_score_ == pytest.approx(search.cv_results_["mean_test_score"].max())
    assert search.score(test.X, test.costs) == pytest.approx(-regret(search, test))


def test_a_fitted_model_can_be_pickled(data):
    train, test = data
    model = DecisionRegressor(train.problem, epochs=1, random_state=0).fit(train.X, train.costs)
    stored = io.BytesIO(pickle.dumps(model))
    np.testing.assert_array_equal(pickle.load(stored).predict(test.X), model.predict(test.X))  # noqa: S301


@pytest.mark.parametrize("deviance", ["poisson", "squared"])
def test_a_log_link_trains_on_a_few_costs_of_zero_if_its_start_admits_them(data, deviance):
    train, test = data
    costs = train.costs.copy()
    costs[3, 1] = costs[5, 2] = 0.0
    start = WiseRegressor(GeneralizedLinear(deviance, link="log"))
    model = DecisionRegressor(train.problem, "spo+", init=start, link="log", epochs=5, random_state=0)
    assert -model.fit(train.X, costs).score(test.X, test.costs) < 25
    with pytest.raises(ValueError, match=r"gamma deviance .* needs positive targets; row 3, column 1 is zero"):
        DecisionRegressor(train.problem, "spo+", link="log").fit(train.X, costs)
    # In a choice, SPO+ starts from such a model where it is the best.
    choice = WiseRegressorCV(train.problem, {"log": start}, train_solves=100_000, random_state=0).fit(train.X, costs)
    assert list(choice.cv_results_["status"]) == ["scored"] * 3


def test_a_loss_is_found_in_any_case(data):
    train, _ = data
    [lower, upper] = [
        DecisionRegressor(train.problem, name, epochs=1, random_state=0).fit(train.X, train.costs)
        for name in ("spo+", "SPO+")
    ]
    np.testing.assert_array_equal(lower.coef_, upper.coef_)
    with pytest.raises(ValueError, match=r"got 'SPOPlus'; the nearest of \d+ names are 'spo\+'"):
        DecisionRegressor(train.problem, "SPOPlus").fit(train.X, train.costs)


def test_bad_input_is_named(data):
    train, _ = data
    with pytest.raises(ValueError, match=r"ShortestPath needs 40 columns of costs"):
        DecisionRegressor(train.problem).fit(train.X, train.costs[:, :39])
    bad = train.costs.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"costs must be finite; row 3, column 1 has NaN"):
        DecisionRegressor(train.problem).fit(train.X, bad)
    with pytest.raises(ValueError, match=r"loss must be one of .*got 'spo'; the nearest of \d+ names are 'spo\+'"):
        DecisionRegressor(train.problem, "spo").fit(train.X, train.costs)
    with pytest.raises(ValueError, match=r"Cave needs linear constraints, and Ball has no polyhedron"):
        DecisionRegressor(Ball(40), "cave").fit(train.X, train.costs)
    with pytest.raises(ValueError, match=r'link="log" predicts positive costs only; column \d+ has the mean -'):
        DecisionRegressor(train.problem, link="log").fit(train.X, -train.costs)
    for wrong in ({"epochs": 0}, {"batch_size": 0}, {"learning_rate": -1.0}, {"link": "probit"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            DecisionRegressor(train.problem, **wrong).fit(train.X, train.costs)


@pytest.mark.parametrize("loss", ["lava", Cave(relaxed=True)], ids=["lava", "cave"])
def test_relaxations_of_integer_problems_are_counted_once_by_whoever_counts(loss):
    data = make_knapsack(30, degree=2, seed=0)
    problem = CountedProblem(data.problem)
    model = DecisionRegressor(problem, loss, epochs=2, random_state=0).fit(data.X, data.costs)
    assert model.label_solves_ == model.history_[-1].n_solves == problem.n_solves == 30
    with pytest.raises(ValueError, match="max_solves=29 does not cover the labels"):
        DecisionRegressor(data.problem, loss, max_solves=29).fit(data.X, data.costs)
