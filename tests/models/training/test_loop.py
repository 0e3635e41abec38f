"""Training never ends worse than it started, within its budgets, and what ends it early keeps a model."""

import warnings

import numpy as np
import pytest

from decidewise import DecisionRegressor, TrainingWarning, WiseRegressor
from decidewise.data import make_shortest_path
from decidewise.evaluate import normalized_regret
from decidewise.kit import batches
from decidewise.losses import Dbb, Mse, Pfy, SpoPlus, Wise
from decidewise.models import decision_regressor
from decidewise.models.training import loop
from decidewise.problems import ShortestPath


@pytest.fixture(scope="module")
def data():
    return make_shortest_path(700, degree=4, seed=0).split(200)


def mean_loss(loss, model, train):
    target = loss.prepare(train.problem, train.costs)
    return loss.value_and_grad(model.predict(train.X), target, np.random.default_rng(0))[0].mean()


@pytest.fixture(scope="module")
def started(data):
    train, _ = data
    # A learning rate this small leaves the start where it was.
    return DecisionRegressor(train.problem, "spo+", learning_rate=1e-12, epochs=1).fit(train.X, train.costs)


class TestNeverWorse:
    @pytest.mark.parametrize("rate", [1e-3, 1e-2, 1.0])
    @pytest.mark.parametrize("loss", [SpoPlus(), Mse(), Dbb()])
    def test_on_the_training_loss(self, data, started, loss, rate):
        train, _ = data
        model = DecisionRegressor(train.problem, loss, epochs=4, learning_rate=rate, random_state=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(train.X, train.costs)
        kept, start = mean_loss(loss, model, train), mean_loss(loss, started, train)
        assert kept <= start * (1 + 1e-9)
        # Either training has lowered the loss, or the start is kept and the caller is told.
        assert [w.category for w in caught] == ([] if kept < 0.999 * start else [TrainingWarning])

    def test_the_sentence_says_what_to_do(self, data):
        train, _ = data
        model = DecisionRegressor(train.problem, "spo+", learning_rate=5.0, epochs=2, random_state=0)
        expected = r"ended with a mean loss of .*, and started with one of .* the start is kept. Lower learning_rate"
        with pytest.warns(TrainingWarning, match=expected):
            model.fit(train.X, train.costs)
        with pytest.warns(TrainingWarning, match=r"ended with a regret on the rows held out of .* the start is kept"):
            model.set_params(early_stopping=True).fit(train.X, train.costs)

    def test_the_exact_minimiser_is_kept(self, data):
        train, test = data
        with pytest.warns(TrainingWarning):
            model = DecisionRegressor(train.problem, "wise", random_state=0, epochs=2).fit(train.X, train.costs)
        exact = WiseRegressor(scale="unit").fit(train.X, train.costs)
        np.testing.assert_allclose(model.predict(test.X), exact.predict(test.X), rtol=1e-9)
        assert mean_loss(Wise(), model, train) == pytest.approx(mean_loss(Wise(), exact, train))

    @pytest.mark.parametrize("loss", ["pfy", "dpo", "imle", "cave-hybrid"])
    def test_noise_is_the_same_at_both_ends(self, data, loss):
        train, _ = data
        # Steps that change no decision: with other random numbers the loss would rise as often as not.
        for seed in range(4):
            model = DecisionRegressor(train.problem, loss, learning_rate=1e-13, epochs=1, random_state=seed)
            model.fit(train.X[:64], train.costs[:64])

    def test_the_papers_protocol_keeps_the_last_iterate(self, data, started):
        train, _ = data
        model = DecisionRegressor(train.problem, "spo+", protocol="paper", learning_rate=5.0, epochs=2, random_state=0)
        model.fit(train.X, train.costs)
        assert mean_loss(SpoPlus(), model, train) > mean_loss(SpoPlus(), started, train)


class Counting(ShortestPath):
    def __init__(self):
        super().__init__(5, 5)
        self.rows, self.batches = 0, 0

    def minimize(self, costs):
        self.rows += len(costs)
        self.batches += 1
        return super().minimize(costs)


class TestWhatItCosts:
    @pytest.mark.parametrize("loss", [SpoPlus(), Pfy(n_samples=3)])
    @pytest.mark.parametrize(("init", "n_passes"), [("wise", 4), ("zeros", 2)])
    def test_passes_over_the_rows_where_calls_are_not_limited(self, data, loss, init, n_passes):
        train, _ = data
        problem = Counting()
        model = DecisionRegressor(problem, loss, init=init, epochs=1, random_state=0).fit(train.X, train.costs)
        calls = 200 * getattr(loss, "n_samples", 1)
        assert model.n_solves_ == problem.rows == 200 + (1 + n_passes) * calls
        assert model.history_[-1].n_solves == 200 + 2 * calls

    def test_no_solver_calls_for_a_loss_without_a_solver(self, data):
        train, _ = data
        model = DecisionRegressor(train.problem, "lava", epochs=1, max_solves=200, random_state=0)
        assert model.fit(train.X, train.costs).n_solves_ == 200

    def test_a_twentieth_of_a_budget_for_each_evaluation(self, data):
        train, _ = data
        model = DecisionRegressor(Counting(), "spo+", max_solves=1200, random_state=0).fit(train.X, train.costs)
        # Two batches of 32 are the first to exceed a twentieth of the 1,000 calls that the labels leave.
        assert model.history_[0].n_solves == 200 + 2 * 32 + 200
        assert 1200 - 32 < model.n_solves_ <= 1200


class Clock:
    """Time goes on by a second with every batch that is solved, and not otherwise."""

    def __init__(self, monkeypatch):
        self.problem = Counting()
        for module in (batches, loop, decision_regressor):
            monkeypatch.setattr(module, "perf_counter", lambda: float(self.problem.batches))


class TestSeconds:
    def test_no_batch_begins_after_they_are_over(self, data, monkeypatch):
        train, _ = data
        clock = Clock(monkeypatch)
        model = DecisionRegressor(clock.problem, "spo+", epochs=10**6, max_seconds=40, random_state=0)
        model.fit(train.X, train.costs)
        assert model.stopped_ == "max_seconds"
        assert clock.problem.batches <= 41
        assert len(model.history_) > 1

    @pytest.mark.filterwarnings("ignore::decidewise.TrainingWarning")  # so few steps need not help
    def test_held_out_rows_are_not_scored_after_they_are_over(self, data, monkeypatch):
        train, _ = data
        clock = Clock(monkeypatch)
        model = DecisionRegressor(
            clock.problem, "spo+", epochs=10**6, max_seconds=40, early_stopping=True, random_state=0
        )
        model.fit(train.X, train.costs)
        assert model.stopped_ in {"max_seconds", "no change"}
        assert clock.problem.batches <= 41

    def test_over_before_the_labels_are_there_the_start_is_kept_with_a_word(self, data, monkeypatch):
        train, test = data
        model = DecisionRegressor(Clock(monkeypatch).problem, "spo+", max_seconds=0.5)
        with pytest.warns(TrainingWarning, match=r"max_seconds=0.5 was reached before the labels of 200 rows"):
            model.fit(train.X, train.costs)
        assert (model.stopped_, model.history_) == ("max_seconds", [])
        start = normalized_regret(test.problem, WiseRegressor().fit(train.X, train.costs).predict(test.X), test.costs)
        assert -model.score(test.X, test.costs) == pytest.approx(start)


class Interrupted(Counting):
    """Ctrl-C in the batch of that number."""

    def __init__(self, batch):
        super().__init__()
        self.batch = batch

    def minimize(self, costs):
        decisions = super().minimize(costs)
        if self.batches == self.batch:
            raise KeyboardInterrupt
        return decisions


class TestInterrupts:
    def test_before_the_labels_are_there_nothing_changes(self, data):
        train, _ = data
        fresh = DecisionRegressor(Interrupted(2), "spo+", random_state=0)
        with pytest.raises(KeyboardInterrupt):
            fresh.fit(train.X, train.costs)
        assert not hasattr(fresh, "n_features_in_")
        model = DecisionRegressor(train.problem, "spo+", epochs=1, random_state=0).fit(train.X, train.costs)
        before = dict(vars(model))
        model.problem = before["problem"] = Interrupted(2)
        with pytest.raises(KeyboardInterrupt):
            model.fit(train.X[:, :2], train.costs)
        assert vars(model) == before

    @pytest.mark.parametrize("early_stopping", [False, True])
    def test_before_the_first_epoch_the_start_is_kept(self, data, early_stopping):
        train, _ = data
        model = DecisionRegressor(Interrupted(3), "spo+", early_stopping=early_stopping, random_state=0)
        model.fit(train.X, train.costs)
        assert (model.stopped_, model.history_) == ("interrupted", [])
        assert np.isfinite(model.predict(train.X)).all()

    def test_at_any_moment_the_best_so_far_is_kept(self, data, started):
        train, _ = data
        for batch in (10, 12, 30, 40):
            model = DecisionRegressor(Interrupted(batch), "spo+", learning_rate=3.0, epochs=4, random_state=0)
            model.fit(train.X, train.costs)
            assert model.stopped_ == "interrupted"
            # No epoch at this rate was better than the start.
            assert mean_loss(SpoPlus(), model, train) == pytest.approx(mean_loss(SpoPlus(), started, train), rel=1e-6)
