"""The common divisor of the costs of a row: two sums of costs that are not equal differ by at least this much."""

from __future__ import annotations

from decidewise.checks import FloatArray
from decidewise.runtime.kernels import kernel

#: Remainders below this are rounding, in units of the largest value.
ROUNDING = 1e-12
#: Divisors below this are too small to help a search, and cannot be told from rounding.
FINEST = 1e-4


@kernel
def common_divisor(values: FloatArray) -> float:
    """Return the largest number of which all values are multiples, or zero if it is below `FINEST`.

    The values must not be negative, and the largest must be of order 1.

    >>> import numpy as np
    >>> round(common_divisor(np.array([0.0, 0.4, 1.0, 0.6])), 9)
    0.2
    >>> common_divisor(np.array([1.0, 0.5**0.5]))
    0.0
    """
    divisor = 0.0
    for value in values:
        small = value
        while small > ROUNDING:
            divisor, small = small, divisor % small
            if divisor - small < ROUNDING:
                small = 0.0  # the exact remainder is zero; rounding made it almost the divisor
        if 0.0 < divisor < FINEST:
            return 0.0
    return divisor
