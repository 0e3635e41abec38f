"""The array library that a prediction and its costs belong to."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace


def namespace_of(prediction: Any, costs: Any) -> Any:
    """Return the functions of NumPy, torch or jax, whichever made both arrays."""
    try:
        return array_namespace(prediction, costs)
    except TypeError as reason:
        raise TypeError(
            "prediction and costs must both be arrays of one library, NumPy, torch or jax; got "
            f"{type(prediction).__name__} and {type(costs).__name__}."
        ) from reason
