"""What the generators share.

They draw from NumPy's legacy `RandomState`, whose stream is frozen for good, in the order and with the arithmetic of
PyEPO 2.2.7: at equal seeds the numbers are equal, and so results can be compared cell by cell.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from decidewise.checks import FloatArray, as_integer


def streams(seed: Any, instance_seed: Any = None) -> tuple[np.random.RandomState, np.random.RandomState]:
    """Return the stream of the instance and that of the samples; they are one where there is no instance seed."""
    samples = np.random.RandomState(as_integer(seed, name="seed", minimum=0))
    if instance_seed is None:
        return samples, samples
    return np.random.RandomState(as_integer(instance_seed, name="instance_seed", minimum=0)), samples


def polynomial(X: FloatArray, B: npt.NDArray[np.integer], degree: int, *, scale: float = 1.0) -> FloatArray:
    """Return `scale / 3.5^degree · ((B x / √p + 3)^degree + 1)` for every row `x`: (n, p), (d, p) -> (n, d)."""
    return ((X @ B.T / np.sqrt(X.shape[1]) + 3) ** degree + 1) * scale / 3.5**degree


def single_precision(costs: FloatArray) -> FloatArray:
    """Round to the nearest float32, which is what PyEPO returns, and keep the type float64."""
    return costs.astype(np.float32).astype(np.float64)


def as_noise(value: Any) -> float:
    """Return the half-width of a multiplicative noise around 1, or raise if a factor could be negative."""
    noise = float(value) if isinstance(value, Real) else np.nan
    if not 0 <= noise <= 1:
        raise ValueError(f"noise must lie in [0, 1], for factors between 1 - noise and 1 + noise; got {value!r}.")
    return noise
