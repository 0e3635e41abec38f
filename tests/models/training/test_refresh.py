"""Losses that renew their target during training, and losses that label from the features."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from decidewise import DecisionRegressor
from decidewise.data import make_knapsack, make_shortest_path
from decidewise.kit import batches
from decidewise.losses import SHARED, Cmap, DecisionTarget, Mse, SpoPlus, Target
from decidewise.losses.parts.pool import Pool
from decidewise.models import decision_regressor
from decidewise.models.decision_regressor import neighbor_costs
from decidewise.models.training import loop
from decidewise.problems import CountedProblem
from decidewise.testing import check_loss


@dataclass(frozen=True)
class GrowingCmap(Cmap):
    """CMAP as its authors train it: the pool grows by the decisions for some of the predictions."""

    solve_ratio: float = 1.0
    refresh_every: int | None = 2
    sizes: list[int] = field(default_factory=list, compare=False)

    def refresh(self, prediction, target, rng):
        some = rng.random(len(prediction)) < self.solve_ratio
        known = np.vstack([target.pool.decisions, target[some].minimize(prediction[some])])
        self.sizes.append(len(target.pool))
        return replace(target, pool=Pool(np.unique(known, axis=0)))


@pytest.fixture(scope="module")
def data():
    return make_shortest_path(100, degree=4, seed=0)


def fit(problem, loss, data, **settings):
    model = DecisionRegressor(problem, loss, **{"epochs": 5, "random_state": 0, "learning_rate": 1e-3, **settings})
    return model.fit(data.X, data.costs)


class TestGrowingPool:
    def test_it_keeps_the_contract(self, data):
        check_loss(GrowingCmap(), data.problem)
        check_loss(GrowingCmap(solve_ratio=0.5), make_knapsack(10, degree=1, seed=0).problem)

    def test_it_happens_every_one_or_more_epochs(self, data):
        for wrong in (0, 1.5, "two"):
            with pytest.raises(ValueError, match=r"GrowingCmap\.refresh_every must be"):
                fit(data.problem, GrowingCmap(refresh_every=wrong), data)

    def test_it_grows_every_other_epoch_and_its_solver_calls_count(self, data):
        loss, problem = GrowingCmap(), CountedProblem(data.problem)
        model = fit(problem, loss, data)
        assert [epoch.n_solves for epoch in model.history_] == [100, 100, 200, 200, 300]
        assert model.n_solves_ == problem.n_solves == 300
        assert model.label_solves_ == 100
        assert loss.sizes == sorted(set(loss.sizes))
        assert len(loss.sizes) == 2

    def test_a_refresh_that_the_calls_do_not_cover_ends_the_training(self, data):
        model = fit(data.problem, GrowingCmap(), data, max_solves=299)
        assert (model.stopped_, len(model.history_), model.n_solves_) == ("max_solves", 4, 200)
        # 80 rows of labels and twice 20 held out, 20 after each epoch; a refresh of 80 must leave 20 for its epoch.
        model = fit(data.problem, GrowingCmap(), data, max_solves=80 + 40 + 40 + 80 + 19, early_stopping=True)
        assert (model.stopped_, len(model.history_), model.n_solves_) == ("max_solves", 2, 160)

    def test_nor_does_one_begin_an_epoch_after_the_seconds_are_over(self, data, monkeypatch):
        clock = [0.0]

        class Slow(GrowingCmap):
            def refresh(self, prediction, target, rng):
                clock[0] += 50.0
                return target

        for module in (batches, loop, decision_regressor):
            monkeypatch.setattr(module, "perf_counter", lambda: clock[0])
        model = fit(data.problem, Slow(), data, max_seconds=70, epochs=1000)
        assert (model.stopped_, len(model.history_)) == ("max_seconds", 4)

    def test_ctrl_c_in_a_refresh_keeps_a_model(self, data):
        class Interrupted(GrowingCmap):
            def refresh(self, prediction, target, rng):
                raise KeyboardInterrupt

        model = fit(data.problem, Interrupted(), data)
        assert (model.stopped_, len(model.history_)) == ("interrupted", 2)
        assert np.isfinite(model.predict(data.X)).all()

    def test_the_random_numbers_of_labels_are_not_those_of_the_training(self, data):
        class Draws(Cmap):
            refresh_every = 1

            def label(self, problem, costs, X, rng):
                rng.random(17)
                return super().label(problem, costs, X, rng)

            def refresh(self, prediction, target, rng):
                rng.random(17)
                return target

        np.testing.assert_array_equal(fit(data.problem, Draws(), data).coef_, fit(data.problem, Cmap(), data).coef_)


@dataclass(frozen=True)
class OffsetTarget(Target):
    offset: np.ndarray = field(metadata=SHARED)

    @classmethod
    def of(cls, problem, costs):
        return cls(problem, costs, np.zeros(()))


@dataclass(frozen=True)
class Rising(Mse):
    """Least squares, with a constant that a refresh raises; the last one is interrupted if asked to."""

    target_type = OffsetTarget
    native = None
    refresh_every: int | None = 1
    interrupted: bool = False

    def evaluate(self, prediction, target, rng):
        values, gradient = super().evaluate(prediction, target, rng)
        return values + target.offset, gradient

    def refresh(self, prediction, target, rng):
        if self.interrupted and target.offset == 300:
            raise KeyboardInterrupt
        return replace(target, offset=target.offset + 100)


class TestLossesAgainstAnotherTarget:
    """They do not compare: here every refresh raises the loss, and every epoch makes the model better."""

    def test_the_end_is_compared_with_the_start_on_the_target_of_the_start(self, data):
        rising = fit(data.problem, Rising(), data, init="zeros")  # without a TrainingWarning
        assert [round(epoch.loss // 100) for epoch in rising.history_] == [0, 1, 2, 3, 4]
        np.testing.assert_array_equal(rising.coef_, fit(data.problem, Mse(), data, init="zeros").coef_)

    def test_an_interrupt_keeps_the_best_since_the_last_refresh(self, data):
        interrupted = fit(data.problem, Rising(interrupted=True), data, init="zeros")
        assert interrupted.stopped_ == "interrupted"
        np.testing.assert_array_equal(interrupted.coef_, fit(data.problem, Mse(), data, init="zeros", epochs=4).coef_)


@dataclass(frozen=True)
class SmoothedSpoPlus(SpoPlus):
    """SPO+ for costs averaged with those of the samples with the nearest features."""

    requires = frozenset({"features"})
    n_neighbors: int = 3

    def label(self, problem, costs, X, rng):
        return DecisionTarget.of(problem, neighbor_costs(X, costs, self.n_neighbors))


def test_a_loss_that_asks_for_the_features_gets_those_of_the_training_rows(data):
    check_loss(SmoothedSpoPlus(), data.problem)
    settings = {"protocol": "paper", "init": "zeros", "early_stopping": True}
    by_loss = fit(data.problem, SmoothedSpoPlus(), data, **settings)
    by_regressor = fit(data.problem, "spo+", data, **settings, n_neighbors=3)
    np.testing.assert_array_equal(by_loss.coef_, by_regressor.coef_)
    assert (by_loss.coef_ != fit(data.problem, "spo+", data, **settings).coef_).any()
