"""The array library that a prediction and its costs belong to."""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace


def namespace_of(prediction: Any, costs: Any) -> Any:
    """Return the array functions of the library, NumPy, torch or jax, that both arrays belong to."""
    try:
        return array_namespace(prediction, costs)
    except TypeError as reason:
        raise TypeError(
            "prediction and costs must be arrays of the same library, NumPy, torch or jax; got "
            f"{type(prediction).__name__} and {type(costs).__name__}."
        ) from reason
