"""The sums of a linear fit, straight from the columns of a file: each number is read once, and no block is copied."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from decidewise.kit.checks import FloatArray
from decidewise.kit.kernels import kernel
from decidewise.models.linear.blocks import RowBlocks
from decidewise.rows.source import ColumnMatrix

# Rows that are worked on at once, so that their features stay in the cache; columns that are multiplied at once.
_TILE, _FOUR = 256, 4
# The squares of norms between these neither overflow nor underflow.
_LOW, _HIGH = 1e-140, 1e140


def column_sums(blocks: RowBlocks, shift: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Return `Σ w a aᵀ` and `Σ w a zᵀ` with `a = (1, x - shift)` over all rows of some blocks with features in columns.

    Return None if they must be found in the general way: of costs that are not in columns, under changes of measure
    that are not one function of the costs, or of numbers so extreme that a sum is not finite.
    """
    X: Any = blocks.X
    costs, scale, how = blocks.targets, blocks.scale, blocks.how
    is_plain = how.unit == 1 and how.smallest_size is None and how.deviance is None
    if not (isinstance(costs, ColumnMatrix) and is_plain) or isinstance(scale, np.ndarray):
        return None
    exponent = math.nan if how.exponent is None else float(how.exponent)
    weights = np.empty(0) if blocks.sample_weight is None else np.ascontiguousarray(blocks.sample_weight)
    weights = weights.view()
    weights.flags.writeable = False  # as those of files are: for others, the kernel would be compiled once more
    gram, cross = _sums(*X.in_one_memory(), *costs.in_one_memory(), len(X), weights, shift, exponent)
    if how.exponent is not None and scale is not None:
        gram, cross = gram / scale ** (2 - how.power), cross / scale ** (1 - how.power)
    return (gram, cross * blocks.back) if np.isfinite(gram).all() and np.isfinite(cross).all() else None


# Sums may be reordered for vector instructions, in one way per processor. NaN and infinity stay what they are.
_FAST = {"reassoc", "contract", "nsz"}


@kernel(fastmath=_FAST)
def _sums(X, x_places, costs, cost_places, n_rows, weights, shift, exponent):  # type: ignore[no-untyped-def]
    """Return the sums over rows of columns, given as places in long views; no weights are ones, a NaN no exponent."""
    n_features, n_costs, is_weighted = len(x_places), len(cost_places), len(weights) > 0
    n_design, n_crosses = -(-(n_features + 1) // _FOUR) * _FOUR, -(-n_costs // _FOUR) * _FOUR
    design, weighted = np.zeros((n_design, _TILE)), np.zeros((n_design, _TILE))
    gram, cross = np.zeros((n_design, n_design)), np.zeros((n_design, n_crosses))
    sizes = np.empty(_TILE)
    for first in range(0, n_rows, _TILE):
        n = min(_TILE, n_rows - first)
        design[0, :n] = 1.0
        for feature in range(n_features):
            begin, center, entries = x_places[feature] + first, shift[feature], design[feature + 1]
            column = X[begin : begin + n]
            for row in range(n):
                entries[row] = column[row] - center
        left = design
        if is_weighted:
            left = weighted
            own = weights[first : first + n]
            for place in range(n_features + 1):
                entries, products = design[place], weighted[place]
                for row in range(n):
                    products[row] = entries[row] * own[row]
        sizes[:n] = 0.0
        for group in range(0, n_costs, _FOUR):
            # A last group that is not full repeats the last column; its products are dropped at the end.
            b0 = cost_places[group] + first
            b1 = cost_places[min(group + 1, n_costs - 1)] + first
            b2 = cost_places[min(group + 2, n_costs - 1)] + first
            b3 = cost_places[min(group + 3, n_costs - 1)] + first
            y0, y1, y2, y3 = costs[b0 : b0 + n], costs[b1 : b1 + n], costs[b2 : b2 + n], costs[b3 : b3 + n]
            for place in range(0, n_design, _FOUR):
                _add_products(left, place, y0, y1, y2, y3, n, cross, group)
            for number in range(group, min(group + _FOUR, n_costs)):
                begin = cost_places[number] + first
                column = costs[begin : begin + n]
                for row in range(n):
                    sizes[row] += column[row] * column[row]
        _squares_to_sizes(sizes, n, costs, cost_places, first, exponent)
        for place in range(n_features + 1):
            entries, products = left[place], weighted[place]
            for row in range(n):
                products[row] = entries[row] * sizes[row]
        for place in range(0, n_design, _FOUR):
            for other in range(0, place + _FOUR, _FOUR):
                w0, w1, w2, w3 = weighted[other], weighted[other + 1], weighted[other + 2], weighted[other + 3]
                _add_products(design, place, w0, w1, w2, w3, n, gram, other)
    for place in range(n_features + 1):
        for other in range(place):
            gram[other, place] = gram[place, other]
    return gram[: n_features + 1, : n_features + 1].copy(), cross[: n_features + 1, :n_costs].copy()


@kernel(inner=True, fastmath=_FAST)
def _add_products(left, place, y0, y1, y2, y3, n, result, column):  # type: ignore[no-untyped-def]
    """Add the products of four lines of `left` with four others; their sixteen sums stay in registers."""
    x0, x1, x2, x3 = left[place], left[place + 1], left[place + 2], left[place + 3]
    s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = 0.0
    for row in range(n):
        a, b, c, d = x0[row], x1[row], x2[row], x3[row]
        e, f, g, h = y0[row], y1[row], y2[row], y3[row]
        s00, s01, s02, s03 = s00 + a * e, s01 + a * f, s02 + a * g, s03 + a * h
        s10, s11, s12, s13 = s10 + b * e, s11 + b * f, s12 + b * g, s13 + b * h
        s20, s21, s22, s23 = s20 + c * e, s21 + c * f, s22 + c * g, s23 + c * h
        s30, s31, s32, s33 = s30 + d * e, s31 + d * f, s32 + d * g, s33 + d * h
    lines = (s00, s01, s02, s03), (s10, s11, s12, s13), (s20, s21, s22, s23), (s30, s31, s32, s33)
    for line in range(_FOUR):
        for other in range(_FOUR):
            result[place + line, column + other] += lines[line][other]


@kernel(inner=True, fastmath=_FAST)
def _squares_to_sizes(sizes, n, costs, places, first, exponent):  # type: ignore[no-untyped-def]
    """Turn sums of squares into `‖y‖^exponent`, or into 1 without an exponent."""
    if math.isnan(exponent):
        sizes[:n] = 1.0
        return
    n_tame = 0
    for row in range(n):
        sizes[row] = math.sqrt(sizes[row])
        n_tame += (sizes[row] > _LOW) & (sizes[row] < _HIGH)
    for row in range(n if n_tame < n else 0):
        if not _LOW < sizes[row] < _HIGH:
            largest, total = 0.0, 0.0
            for place in places:
                largest = max(largest, abs(costs[place + first + row]))
            for place in places:
                entry = costs[place + first + row] / (largest if largest > 0 else 1.0)
                total += entry * entry
            sizes[row] = largest * math.sqrt(total)
    if exponent != 1:
        for row in range(n):
            sizes[row] = sizes[row] ** exponent
