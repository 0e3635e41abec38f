"""The same losses inside torch and jax: `frontends.torch.loss_module` and `frontends.jax.loss_function`.

Only its own module imports a framework, and each framework has its own extra: `pip install "decidewise[torch]"` or
`pip install "decidewise[jax]"`.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from decidewise.kit.checks import as_choice

Reduction = Literal["mean", "sum", "none"]


def check_reduction(reduction: str) -> None:
    """Raise unless `reduction` is one of the known names."""
    as_choice(reduction, name="reduction", choices=get_args(Reduction))


def reduce(values: Any, reduction: Reduction) -> Any:
    """Return the mean or the sum of the values, or the values themselves."""
    return values if reduction == "none" else getattr(values, reduction)()


def check_batch(prediction: Any, costs: Any, n_costs: int) -> None:
    """Raise unless both have the shape (batch, n_costs); broadcasting would hide a missing axis."""
    if not (prediction.ndim == 2 and prediction.shape == costs.shape and prediction.shape[1] == n_costs):
        raise ValueError(
            f"prediction and costs must both have the shape (batch, {n_costs}), one row per sample; got "
            f"prediction.shape={tuple(prediction.shape)} and costs.shape={tuple(costs.shape)}."
        )
