"""What one more unit in stock is worth, by dynamic programming over the periods.

The best total from period `t` on is a concave function of the level at its start. It is held as segments: their slopes,
the marginal values, in falling order, and their lengths. One period back, the stock may also be traded on the market at
given prices, each up to a given amount. The best of both is the supremal convolution of two concave functions, whose
segments are those of both, merged in the order of their slopes.
"""

from __future__ import annotations

from decidewise.kit.checks import FloatArray, IntArray
from decidewise.kit.kernels import kernel
from decidewise.problems.rounding import TIE


@kernel(inner=True)
def merge_offers(
    slopes: FloatArray,
    lengths: FloatArray,
    counts: IntArray,
    period: int,
    offers: FloatArray,
    amounts: FloatArray,
    skip: float,
    room: float,
    tiny: float,
) -> None:
    """Set the segments of a period to those of the next one merged with offers, whose prices do not increase.

    The first `skip` units of length belong to levels below the lowest one, and what exceeds `room` to levels above the
    highest: both are cut off. Lengths up to `tiny` are rounding.
    """
    ahead = period + 1
    taken = offered = count = 0
    while room > tiny and taken + offered < counts[ahead] + len(offers):
        has_segment = taken < counts[ahead]
        if offered < len(offers) and not (has_segment and slopes[ahead, taken] > offers[offered]):
            slope, length = offers[offered], amounts[offered]
            offered += 1
        else:
            slope, length = slopes[ahead, taken], lengths[ahead, taken]
            taken += 1
        cut = min(skip, length)
        skip -= cut
        length = min(length - cut, room)
        room -= length
        if length > tiny:
            slopes[period, count], lengths[period, count] = slope, length
            count += 1
    counts[period] = count


@kernel(inner=True)
def length_above(slopes: FloatArray, lengths: FloatArray, count: int, price: float, with_ties: bool) -> float:
    """Return the length of the segments whose slope is above the price, or tied with it if `with_ties`."""
    total = 0.0
    for k in range(count):
        gain = slopes[k] - price
        tolerance = TIE * (abs(slopes[k]) + abs(price))
        if gain < -tolerance or (gain <= tolerance and not with_ties):
            break
        total += lengths[k]
    return total
