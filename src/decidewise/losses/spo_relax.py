"""SPO-relax: SPO+ on the linear relaxation, for integer problems whose solver is slow.

Mandi, Demirović, Stuckey & Guns, "Smart Predict-and-Optimize for Hard Combinatorial Optimization Problems", AAAI 2020.
"""

from __future__ import annotations

from dataclasses import dataclass

from decidewise.losses.parts.target import RelaxedTarget
from decidewise.losses.spo_plus import SpoPlus


@dataclass(frozen=True)
class SpoRelax(SpoPlus):
    """The SPO+ loss of the linear relaxation: both `w` and `z*(2p - c)` are optimal vertices of the relaxation.

    Notes
    -----
    It is SPO+ itself if the problem is not integer or its relaxation has integer vertices, and an upper bound of the
    regret on the relaxation otherwise. The regret that counts stays that of the integer problem. HiGHS starts every
    row at the best vertex that it knows; a rule for ties makes the answer independent of the start.

    Examples
    --------
    >>> import numpy as np
    >>> from decidewise.problems import Knapsack
    >>> loss = SpoRelax()
    >>> target = loss.prepare(Knapsack([[2.0, 3.0]], [4.0]), [[2.0, 6.0]])
    >>> target.decisions
    array([[0.5, 1. ]])
    >>> values, gradient = loss.value_and_grad([[3.0, 3.5]], target, np.random.default_rng(0))
    >>> values.round(9), gradient.round(9)
    (array([1.66666667]), array([[ 1.        , -0.66666667]]))
    """

    target_type = RelaxedTarget
