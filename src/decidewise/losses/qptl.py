"""QPTL, the regret of a linear program smoothed by a quadratic term, differentiated through its optimality conditions.

Wilder, Dilkina & Tambe, "Melding the Data-Decisions Pipeline: Decision-Focused Learning for Combinatorial
Optimization", AAAI 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from decidewise.losses.base import positive
from decidewise.losses.parts.target import DecisionTarget, RelaxedTarget
from decidewise.losses.rfwo import Rfwo


@dataclass(frozen=True)
class Qptl(Rfwo):
    """The regret `c·z(p) - c·w` of `z(p) = argmin_z p·z + λ/2 ‖z‖²` over the linear relaxation; `w` is its optimum.

    This is RFWO on the relaxation of the region, and the same as RFWO where the relaxation has integer vertices (paths,
    assignments, choices of k items).

    Parameters
    ----------
    lambd : float
        The strength `λ` of the quadratic term. The paper writes `γ‖z‖²`, so `λ = 2γ`; its code starts at 0.1.
    max_iter, tol
        As for `Rfwo`.

    Notes
    -----
    The gradient is `-F c / λ`, where `F` projects on the directions of the face of `z(p)`: the derivative of the
    optimality conditions of the quadratic program. It is zero where `z(p)` is a vertex.

    Examples
    --------
    >>> import numpy as np
    >>> from decidewise.problems import Knapsack
    >>> loss = Qptl(lambd=1.0)
    >>> target = loss.prepare(Knapsack([[2.0, 3.0]], [4.0]), [[2.0, 6.0]])
    >>> target.decisions  # of the relaxation: the second item, and half of the first
    array([[0.5, 1. ]])
    >>> values, gradient = loss.value_and_grad([[1.0, 1.0]], target, np.random.default_rng(0))
    >>> values.round(6), gradient.round(6)  # z(p) is (0.846154, 0.769231)
    (array([0.692308]), array([[ 1.384615, -0.923077]]))
    """

    lambd: float = positive(0.1)

    target_type: ClassVar[type[DecisionTarget]] = RelaxedTarget
