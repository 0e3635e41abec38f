"""The sums straight from columns are those of the formula, to rounding; the rest is left to the general way."""

import numpy as np
import pytest

from decidewise.measure import transform
from decidewise.models.linear.blocks import Blocks
from decidewise.models.linear.column_sums import column_sums
from decidewise.models.linear.moments import Moments
from decidewise.rows.source import ColumnMatrix, Rows

N, SHIFT = 600, 5.0  # two tiles of 256 rows and a part of a third


def rows(n_features, n_costs, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(SHIFT, 1, (N, n_features)), rng.normal(size=(N, n_costs)), rng.uniform(0, 2, N)


def blocks(X, costs, weights=None, **options):
    return Blocks(None, **options).of(Rows(ColumnMatrix(list(X.T)), ColumnMatrix(list(costs.T)), weights))


def formula(X, targets, weights):
    design = np.column_stack([np.ones(len(X)), X - SHIFT])
    return (design.T * weights) @ design, (design.T * weights) @ targets


def close(found, expected):
    return all(np.abs(a - b).max() <= 1e-13 * np.abs(b).max() for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize(("n_features", "n_costs"), [(1, 1), (3, 4), (6, 7), (8, 5)])
@pytest.mark.parametrize(("exponent", "scale"), [(None, None), (0.0, 1.0), (0.5, 3.0), (1.0, None), (1.0, 2.5)])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_sums_are_those_of_the_formula(n_features, n_costs, exponent, scale, is_weighted):
    X, costs, weights = rows(n_features, n_costs)
    costs[17] = 0.0
    own, targets = (np.ones(N), costs) if exponent is None else transform(costs, exponent, scale=scale)
    found = column_sums(
        blocks(X, costs, weights if is_weighted else None, exponent=exponent, scale=scale), np.full(n_features, SHIFT)
    )
    assert close(found, formula(X, targets, own * weights if is_weighted else own))


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_norms_whose_squares_leave_the_range(size):
    X, costs, _ = rows(2, 3)
    costs[3] *= size
    costs[4] = 0.0
    weights, targets = transform(costs)
    assert close(column_sums(blocks(X, costs, exponent=1.0), np.full(2, SHIFT)), formula(X, targets, weights))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_left_to_the_general_way(bad):
    for where in (0, 1):
        given = rows(2, 3)
        given[where][500, 1] = bad
        for weights in (None, np.zeros(N)):
            assert column_sums(blocks(*given[:2], weights, exponent=1.0), np.full(2, SHIFT)) is None


@pytest.mark.parametrize("options", [{"scale": rows(2, 3)[2]}, {"smallest_size": 0.1}, {"unit": 2.0}], ids=str)
def test_what_only_the_general_way_can_do(options):
    X, costs, _ = rows(2, 3)
    options = {"exponent": 1.0, **options}
    in_columns, in_rows = blocks(X, costs, **options), Blocks(None, **options).of(Rows(X, costs))
    assert column_sums(in_columns, np.full(2, SHIFT)) is None
    empty = Moments.zeros(np.full(2, SHIFT), np.ones(2), in_rows[0].targets.shape[1])
    assert close(empty.sums(in_columns), empty.sums(in_rows))


def test_columns_are_copied_only_when_an_array_is_asked_for():
    columns = [np.arange(4.0), np.arange(4, dtype=np.int32)]
    matrix = ColumnMatrix(columns)
    assert matrix.columns[0] is columns[0]
    memory, places = matrix.in_one_memory()
    for column, place in zip(columns, places, strict=True):
        assert (memory[place : place + 4] == column).all()
    assert (matrix[1:3] == np.column_stack(columns)[1:3]).all()
    assert (matrix.array == np.column_stack(columns)).all()
    assert matrix.array is matrix.array
    assert np.shares_memory(matrix.columns[0], matrix.array)
