"""What every loss is built on: labels, and the edge at which the sense is flipped."""

import numpy as np
import pytest

from decidewise.losses import DecisionTarget, Loss, SpoPlus, registry
from decidewise.problems import Knapsack, TopK

PROBLEM = TopK(3, 1, sense="min")
COSTS = np.arange(12.0).reshape(4, 3)


class TestLabels:
    def test_by_default_they_are_the_optimal_decisions_of_a_minimisation(self):
        problem = TopK(3, 1, sense="max")
        target = SpoPlus().prepare(problem, COSTS)
        assert type(target) is DecisionTarget
        np.testing.assert_array_equal(target.costs, -COSTS)
        np.testing.assert_array_equal(target.decisions, problem.solve(COSTS))
        np.testing.assert_array_equal(target.values, -COSTS[:, 2])

    def test_few_losses_need_labels_of_their_own(self):
        own = {name for name, loss in registry.items() if loss.label is not Loss.label}
        assert own == {
            "cave", "cave+", "cave-hybrid", "cilp", "compact", "dys", "egl", "intopt", "lancer", "lava", "lodl",
            "mipaal", "mom", "one-sided", "pear", "projectnet",
        }  # fmt: skip

    def test_features_and_random_numbers_are_at_hand(self):
        class Spies(SpoPlus):
            requires = frozenset({"features"})

            def label(self, problem, costs, X, rng):
                seen.append((X, rng.random()))
                return super().label(problem, costs, X, rng)

        seen = []
        X = np.ones((4, 2))
        Spies().prepare(PROBLEM, COSTS, X=X.tolist(), rng=np.random.default_rng(7))
        Spies().prepare(PROBLEM, COSTS, X=X)
        np.testing.assert_array_equal(seen[0][0], X)
        assert [number for _, number in seen] == [np.random.default_rng(seed).random() for seed in (7, 0)]
        with pytest.raises(ValueError, match="Spies computes its labels from the features; pass them as X"):
            Spies().prepare(PROBLEM, COSTS)
        with pytest.raises(ValueError, match="X has 3 rows, costs has 4 rows"):
            Spies().prepare(PROBLEM, COSTS, X=X[:3])
        with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator"):
            Spies().prepare(PROBLEM, COSTS, X=X, rng=0)

    @pytest.mark.parametrize("requires", [frozenset({"solver"}), ("features",), "features"])
    def test_what_a_loss_requires_is_declared_by_known_names(self, requires):
        with pytest.raises(TypeError, match=r"Odd\.requires must be a frozenset of some of 'polyhedron', .*; got"):
            type("Odd", (SpoPlus,), {"requires": requires})

    @pytest.mark.parametrize("name", ["cave", "lava"])
    def test_a_relaxation_is_solved_by_the_problem_itself(self, name, monkeypatch):
        problem = Knapsack([[3.0, 4.0, 5.0]], [7.0])
        costs = np.random.default_rng(0).uniform(1, 2, size=(300, 3))
        loss = registry[name]()
        before = loss.prepare(problem, costs)
        rows, relax = [], problem.minimize_relaxation
        monkeypatch.setattr(problem, "minimize_relaxation", lambda part: rows.append(len(part)) or relax(part))
        monkeypatch.setattr(problem, "minimize", lambda part: pytest.fail("solved in integers"))

        target = loss.prepare(problem, costs)

        assert rows == [128, 128, 44]  # a bar moves between them
        np.testing.assert_array_equal(*(vars(t).get("decisions", vars(t).get("vertex")) for t in (target, before)))


def test_refresh_sees_a_minimisation():
    class Watches(SpoPlus):
        refresh_every = 1

        def refresh(self, prediction, target, rng):
            seen.append(prediction)
            return target

    seen = []
    for sense in ("min", "max"):
        problem = TopK(3, 1, sense=sense)
        Watches().refreshed(COSTS, Watches().prepare(problem, COSTS), np.random.default_rng(0))
    np.testing.assert_array_equal(seen, [COSTS, -COSTS])
