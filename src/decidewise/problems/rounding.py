"""When two decisions are tied, also in rows that have some huge costs.

The costs of two decisions differ by `sum(c_i (w_i - v_i))`, a sum over the entries in which they differ. The decisions
are tied if this sum is within the rounding of its terms: decimal costs do not add up exactly in binary, so `0.1 + 0.2`
and `0.3` are tied. Costs of entries that both decisions choose are not in the sum, and equal costs of different entries
cancel. So a cost of 1e15 that forbids an entry does not enlarge the tolerance, even if every decision must pay one.
"""

from __future__ import annotations

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.kit.kernels import kernel

EPS = float(np.finfo(float).eps)
#: The tolerance, as a fraction of the sum of the absolute terms: equal costs computed in a few operations are tied.
TIE = 16 * EPS


@kernel(inner=True)
def is_tie(terms: FloatArray, count: int, tolerance: float) -> bool:
    """Return whether the first `count` terms sum to at most the tolerance times the sum of their absolute values.

    Terms that cancel exactly do not count in the latter sum. The terms, `c_i (w_i - v_i)`, are overwritten.

    >>> bool(is_tie(np.array([0.1, 0.2, -0.3]), 3, TIE))
    True
    >>> bool(is_tie(np.array([1e15, 0.2, -1e15, -0.1]), 4, TIE))
    False
    """
    total = sum_of(terms, count)
    size = 0.0
    for i in range(count):
        size += abs(terms[i])
    if total <= 0.0 or total > tolerance * size:
        return total <= 0.0
    size = 0.0
    for i in range(count):
        for j in range(i):
            if terms[j] == -terms[i]:
                size -= abs(terms[j])
                terms[i] = terms[j] = 0.0
        size += abs(terms[i])
    return total <= tolerance * size


@kernel(inner=True)
def sum_of(terms: FloatArray, count: int) -> float:
    """Return the sum of the first `count` terms, computed in twice the precision.

    >>> float(sum_of(np.array([1e15, 0.25, -1e15]), 3))
    0.25
    """
    total, low = 0.0, 0.0
    for i in range(count):
        high = total + terms[i]
        part = high - total
        low += (total - (high - part)) + (terms[i] - part)
        total = high
    return total + low


@kernel(inner=True)
def safe_unit(largest: float) -> float:
    """Return a power of two; costs up to `largest`, multiplied by it, have sums and tolerances in the range of float64.

    >>> safe_unit(1e15), safe_unit(1e308) < 1e-100, safe_unit(1e-310) > 1e100
    (1.0, True, True)
    """
    if largest > 2.0**900:
        return 2.0**-500
    return 2.0**500 if largest < 2.0**-500 else 1.0


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
