"""LANCER, a loss that a network learns from regrets, again and again where training has come to.

Zharmagambetov, Amos, Ferber, Huang, Dilkina & Tian, "Landscape Surrogate: Learning Decision Losses for Mathematical
Optimization Under Partial Information", NeurIPS 2023.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from decidewise.kit.checks import FloatArray, as_flag
from decidewise.kit.errors import NotForProblemError
from decidewise.losses.base import Loss, count, parameter, positive
from decidewise.losses.lodl import spread_of
from decidewise.losses.parts.small_network import SmallNetwork
from decidewise.losses.parts.target import SHARED, Target, ValueAndGrad, row_dot, solve_labels
from decidewise.problems.contract import Problem


@dataclass(frozen=True)
class LandscapeTarget(Target):
    """Costs, their optimal values (n,), and what is learnt: the network, with the points that it was fitted to."""

    values: FloatArray
    network: SmallNetwork = field(metadata=SHARED)
    spread: FloatArray = field(metadata=SHARED)
    scale: float = field(metadata=SHARED)
    seen: FloatArray = field(metadata=SHARED)
    regrets: FloatArray = field(metadata=SHARED)


@dataclass(frozen=True)
class Lancer(Loss):
    """The loss `M((p - c)²)`, where the network `M` is fitted to the regrets of predictions.

    `M` is first fitted at `n_samples` predictions `c + σ s ξ` of each row, with `ξ` normal and `s` the standard
    deviation of each cost, and then, every `refresh_every` epochs, at the present predictions of all rows and at those
    of before. Between, training calls no solver.

    Parameters
    ----------
    n_samples : int
        Predictions drawn per row before training; each takes one solve.
    sigma : float
        The size `σ` of their deviations, in standard deviations of each cost.
    n_hidden : int
        The width of both layers of the network; 100 in the public code.
    n_steps : int
        Steps of Adam in each fit of the network.
    refresh_every : int
        Epochs between fits.
    rising : bool
        Whether `M` never falls where an error grows, by weights at zero or above. The public code has a free network.

    Notes
    -----
    A free network fitted to a few thousand regrets falls along some errors, and training runs there: on shortest paths
    (degree 6, 200 rows) it leads from a regret of 11.8 %, that of its start at least squares, to 33.6 %, and a rising
    one to 11.3 % (`python examples/lancer.py`). More steps, more samples or a refresh in every epoch do not cure it.

    The errors are divided by `s` before they are squared. The public code fits the cost `c·z*(p)` instead of the
    regret, and begins at a model of least squares instead of drawn predictions: for that, use `init="mse"` in
    `DecisionRegressor`. A network that has seen few regrets can mislead: compare with `Lodl`.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> costs = np.random.default_rng(0).uniform(size=(50, 3))
    >>> loss = Lancer(n_steps=300)
    >>> target = loss.prepare(TopK(3, 1, sense="min"), costs)
    >>> near, _ = loss.value_and_grad(costs, target, np.random.default_rng(0))
    >>> far, _ = loss.value_and_grad(1 - costs, target, np.random.default_rng(0))
    >>> bool(near.mean() < far.mean())
    True
    """

    n_samples: int = count(10)
    sigma: float = positive(1.0)
    n_hidden: int = count(32)
    n_steps: int = count(100)
    refresh_every: int = count(5)
    rising: bool = parameter(True, as_flag)

    target_type = LandscapeTarget
    gradient = "exact"
    solves = False

    def label(
        self, problem: Problem, costs: FloatArray, X: FloatArray | None, rng: np.random.Generator
    ) -> LandscapeTarget:
        n_regrets = self.n_samples * len(costs)
        if n_regrets < costs.shape[1]:
            raise NotForProblemError(
                f"Lancer learns from {n_regrets} regrets how {costs.shape[1]} errors count, and so few do not say. "
                "Pass more rows, or raise n_samples."
            )
        spread = spread_of(costs)
        values = row_dot(costs, solve_labels(problem, costs))
        plain = Target(problem, costs)
        errors, regrets = [], []
        for _ in range(self.n_samples):
            noise = self.sigma * spread * plain.predicted_only(rng.standard_normal(costs.shape))
            errors.append((noise / spread) ** 2)
            regrets.append(row_dot(costs, solve_labels(problem, costs + noise)) - values)
        seen, found = np.concatenate(errors), np.concatenate(regrets)
        scale = float(found.mean()) or 1.0
        network = SmallNetwork.drawn(costs.shape[1], self.n_hidden, rng, rising=self.rising)
        network = network.fitted(seen, found / scale, rng, n_steps=self.n_steps)
        return LandscapeTarget(problem, costs, values, network, spread, scale, seen, found)

    def evaluate(self, prediction: FloatArray, target: LandscapeTarget, rng: np.random.Generator) -> ValueAndGrad:
        error = (prediction - target.costs) / target.spread
        values, slope = target.network.value_and_slope(error**2)
        return target.scale * values, target.scale * 2 * error * slope / target.spread

    def refresh(self, prediction: FloatArray, target: LandscapeTarget, rng: np.random.Generator) -> LandscapeTarget:
        """Solve for the regrets of the present predictions, and fit the network to them and to those of before."""
        regrets = row_dot(target.costs, target.minimize(prediction)) - target.values
        most = self.n_samples * len(target)  # the latest, so that the memory does not grow
        seen = np.concatenate([((prediction - target.costs) / target.spread) ** 2, target.seen])[:most]
        regrets = np.concatenate([regrets, target.regrets])[:most]
        network = target.network.fitted(seen, regrets / target.scale, rng, n_steps=self.n_steps)
        return replace(target, network=network, seen=seen, regrets=regrets)
