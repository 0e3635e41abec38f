"""The checks that other tests meet only on the way."""

import numpy as np
import pytest

from decidewise.kit.checks import all_finite, as_integer, as_matrix, n_dimensions


@pytest.mark.parametrize("size", [1, 2, 7, 33, 1280, 8192, 8193, 20_000])
def test_one_entry_that_is_not_finite_shows_wherever_it_is(size):
    values = np.random.default_rng(0).normal(size=size)
    assert all_finite(values)
    assert all_finite(1e308 * np.sign(values))  # though their sum is not
    for bad in (np.nan, np.inf, -np.inf):
        for place in {0, size // 2, size - 1}:
            spoilt = values.copy()
            spoilt[place] = bad
            assert not all_finite(spoilt)
            assert not all_finite(np.asfortranarray(np.stack([values, spoilt])))
    assert all_finite(np.empty((0, 3)))


def test_integers_have_bounds():
    assert as_integer(np.int8(3), name="n", maximum=3) == 3
    with pytest.raises(ValueError, match="n must be at most 3; got n=4"):
        as_integer(4, name="n", maximum=3)


def test_a_list_that_holds_itself_is_refused():
    endless: list = []
    endless.append(endless)
    assert n_dimensions(endless) > 3
    with pytest.raises(ValueError, match="y must be an array of real numbers"):
        as_matrix(endless, name="y")
