"""When two decisions are tied, whatever large costs forbid or demand something else.

The costs of two decisions differ by `sum(c_i (w_i - v_i))`, a sum over the entries in which they differ. They are tied
if this is no more than rounding makes of those entries: decimal costs do not add up exactly in binary, and `0.1 + 0.2`
against `0.3` is a tie. A cost that both decisions pay is no part of the comparison, nor is one that each pays once: so
a cost of 1e15 that forbids an entry blurs nothing, not even where every decision has to pay one.
"""

from __future__ import annotations

import numpy as np

from decidewise.checks import FloatArray
from decidewise.runtime.kernels import kernel

EPS = float(np.finfo(float).eps)
#: What rounding may make of the sum of the sizes: costs that took a few operations to compute still tie.
TIE = 16 * EPS


@kernel(inner=True)
def is_tie(terms: FloatArray, count: int, tolerance: float) -> bool:
    """Whether the first terms sum to no more than the tolerance times their sizes, once equal ones have cancelled.

    The terms, `c_i (w_i - v_i)`, are overwritten.

    >>> bool(is_tie(np.array([0.1, 0.2, -0.3]), 3, TIE))
    True
    >>> bool(is_tie(np.array([1e15, 0.2, -1e15, -0.1]), 4, TIE))
    False
    """
    total, low = 0.0, 0.0  # together exact to twice the digits
    size = 0.0
    for i in range(count):
        term = terms[i]
        size += abs(term)
        high = total + term
        part = high - total
        low += (total - (high - part)) + (term - part)
        total = high
    total += low
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
def safe_unit(largest: float) -> float:
    """Return a power of two in whose units no sum of costs up to the largest overflows and no tolerance vanishes.

    >>> safe_unit(1e15), safe_unit(1e308) < 1e-100, safe_unit(1e-310) > 1e100
    (1.0, True, True)
    """
    if largest > 2.0**900:
        return 2.0**-500
    return 2.0**500 if largest < 2.0**-500 else 1.0
