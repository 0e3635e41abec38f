"""Losses: prediction and target in, value and gradient out; one loss a file.

`registry` maps names to classes. A loss of your own joins with `registry["mine"] = MyLoss` and then works wherever a
name does.
"""

from decidewise.losses.base import DecisionTarget, Loss, Minimization, Target, row_dot
from decidewise.losses.mse import Mse, mse
from decidewise.losses.wise import Wise, wise

registry: dict[str, type[Loss]] = {
    "mse": Mse,
    "wise": Wise,
}

__all__ = ["DecisionTarget", "Loss", "Minimization", "Mse", "Target", "Wise", "mse", "registry", "row_dot", "wise"]
