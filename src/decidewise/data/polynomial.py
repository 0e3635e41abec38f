"""Functions shared by the generators.

The generators draw from NumPy's legacy `RandomState`, whose stream never changes, in the order and with the arithmetic
of PyEPO 2.2.7. Equal seeds give equal numbers, so results can be compared cell by cell.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from decidewise.kit.checks import FloatArray, all_finite, as_integer, as_number

#: The largest degree: soon above it `3.5^degree` overflows float64. Most costs overflow at lower degrees.
MAX_DEGREE = 500


def streams(seed: Any, instance_seed: Any = None) -> tuple[np.random.RandomState, np.random.RandomState]:
    """Return the random stream of the instance and that of the samples; without an instance seed both are the same."""
    samples = _stream(seed, "seed")
    return (samples if instance_seed is None else _stream(instance_seed, "instance_seed")), samples


def _stream(seed: Any, name: str) -> np.random.RandomState:
    return np.random.RandomState(as_integer(seed, name=name, minimum=0, maximum=2**32 - 1))


def checked(n: Any, degree: Any, n_features: Any, noise: Any = 0.0) -> tuple[int, int, int, float]:
    """Return the arguments that generators share; raise unless they are in range, the noise in [0, 1]."""
    return (
        as_integer(n, name="n"),
        as_integer(degree, name="degree", maximum=MAX_DEGREE),
        as_integer(n_features, name="n_features"),
        as_number(noise, name="noise", at_least=0, at_most=1),
    )


def polynomial(
    X: FloatArray, B: npt.NDArray[np.integer | np.floating], degree: int, *, scale: float = 1.0
) -> FloatArray:
    """Return `scale / 3.5^degree · ((B x / √p + 3)^degree + 1)` for every row `x`: (n, p), (d, p) -> (n, d)."""
    with np.errstate(over="ignore"):  # `single_precision` raises if a cost is not finite
        return ((X @ B.T / np.sqrt(X.shape[1]) + 3) ** degree + 1) * scale / 3.5**degree


def single_precision(costs: FloatArray) -> FloatArray:
    """Return the costs rounded to float32, as PyEPO returns them, but with the type float64."""
    with np.errstate(over="ignore"):
        rounded = costs.astype(np.float32).astype(np.float64)
    if not all_finite(rounded):
        raise ValueError("degree is too high: some costs are beyond the range of float32, 3e38. Choose a lower degree.")
    return rounded
