"""NCE and CMAP: compare the optimal decision with all decisions of a pool, or with the best of them.

Mulamba, Mandi, Diligenti, Lombardi, Bucarey & Guns, "Contrastive Losses and Solution Caching for
Predict-and-Optimize", IJCAI 2021.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.losses.parts.pool import PoolLoss, PoolTarget
from decidewise.losses.parts.target import ValueAndGrad, row_dot


@dataclass(frozen=True)
class Nce(PoolLoss):
    """The contrastive loss `mean_v p·(w - v)` over the pool, with `w` the optimal decision of the costs.

    Notes
    -----
    It is linear in `p`, so it has no minimum: stop training early. The paper sums over the pool; its authors' code,
    PyEPO and this class take the mean (`w` itself is in the pool and adds zero). The paper's variant with `p - c` in
    place of `p` has the same gradient.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = Nce()
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0], [3.0, 1.0, 2.0]])
    >>> loss.value_and_grad([[2.0, 1.0, 4.0]], target[[0]], np.random.default_rng(0))
    (array([0.5]), array([[ 0.5, -0.5,  0. ]]))
    """

    gradient = "exact"

    def evaluate(self, prediction: FloatArray, target: PoolTarget, rng: np.random.Generator) -> ValueAndGrad:
        """Return values and gradient `w - mean_v v`."""
        gradient = target.decisions - target.pool.mean
        return row_dot(prediction, gradient), gradient


@dataclass(frozen=True)
class Cmap(PoolLoss):
    """The contrastive loss `max_v p·(w - v)` over the pool, with `w` the optimal decision of the costs.

    Notes
    -----
    It is convex. It is non-negative because `w` is in the pool, and zero where no decision of the pool is better than
    `w` under `p`, such as at `p = 0`. The paper also has a variant with `p - c` in place of `p`; PyEPO and this class
    use `p`.

    Examples
    --------
    >>> from decidewise.problems import TopK
    >>> loss = Cmap()
    >>> target = loss.prepare(TopK(3, 1, sense="min"), [[1.0, 2.0, 4.0], [3.0, 1.0, 2.0]])
    >>> loss.value_and_grad([[2.0, 1.0, 4.0]], target[[0]], np.random.default_rng(0))
    (array([1.]), array([[ 1., -1.,  0.]]))
    """

    gradient = "subgradient"

    def evaluate(self, prediction: FloatArray, target: PoolTarget, rng: np.random.Generator) -> ValueAndGrad:
        best = target.pool.objectives(prediction).argmin(axis=1)  # ties go to the first of the pool
        subgradient = target.decisions - target.pool.decisions[best]
        return row_dot(prediction, subgradient), subgradient
