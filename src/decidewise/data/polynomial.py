"""What the generators share.

They draw from NumPy's legacy `RandomState`, whose stream is frozen for good, in the order and with the arithmetic of
PyEPO 2.2.7: at equal seeds the numbers are equal, and so results can be compared cell by cell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from decidewise.checks import FloatArray, all_finite, as_integer, as_number

#: Beyond it `3.5^degree` would soon leave the range of float64; the costs themselves mostly do so before.
MAX_DEGREE = 500


def streams(seed: Any, instance_seed: Any = None) -> tuple[np.random.RandomState, np.random.RandomState]:
    """Return the stream of the instance and that of the samples; they are one where there is no instance seed."""
    samples = _stream(seed, "seed")
    return (samples if instance_seed is None else _stream(instance_seed, "instance_seed")), samples


def _stream(seed: Any, name: str) -> np.random.RandomState:
    return np.random.RandomState(as_integer(seed, name=name, minimum=0, maximum=2**32 - 1))


def as_degree(value: Any) -> int:
    """Return the degree of a polynomial."""
    return as_integer(value, name="degree", maximum=MAX_DEGREE)


def polynomial(
    X: FloatArray, B: npt.NDArray[np.integer | np.floating], degree: int, *, scale: float = 1.0
) -> FloatArray:
    """Return `scale / 3.5^degree · ((B x / √p + 3)^degree + 1)` for every row `x`: (n, p), (d, p) -> (n, d)."""
    with np.errstate(over="ignore"):  # `single_precision` refuses what is not finite
        return ((X @ B.T / np.sqrt(X.shape[1]) + 3) ** degree + 1) * scale / 3.5**degree


def single_precision(costs: FloatArray) -> FloatArray:
    """Round to the nearest float32, which is what PyEPO returns, and keep the type float64."""
    with np.errstate(over="ignore"):
        rounded = costs.astype(np.float32).astype(np.float64)
    if not all_finite(rounded):
        raise ValueError("degree is too high: some costs are beyond the range of float32, 3e38. Choose a lower degree.")
    return rounded


def as_noise(value: Any) -> float:
    """Return the half-width of a multiplicative noise around 1, or raise if a factor could be negative."""
    return as_number(value, name="noise", at_least=0, at_most=1)
