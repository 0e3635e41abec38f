"""What all costs of a row are multiples of: where there is such a number, two values differ by at least as much."""

from __future__ import annotations

from decidewise.checks import FloatArray
from decidewise.runtime.kernels import kernel

#: Remainders below this are rounding, in units of the largest value.
ROUNDING = 1e-12
#: Divisors below this are too fine to close a gap, and to trust.
FINEST = 1e-4


@kernel
def common_divisor(values: FloatArray) -> float:
    """Return the largest number that all values are multiples of, or zero.

    No value is negative, and the largest is of order 1.

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
                small = 0.0  # a remainder that rounding kept a hair below the divisor
        if 0.0 < divisor < FINEST:
            return 0.0
    return divisor
