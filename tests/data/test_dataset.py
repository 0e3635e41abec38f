import numpy as np
import pytest

from decidewise.data import Dataset, make_shortest_path


@pytest.fixture(scope="module")
def data():
    return make_shortest_path(10, degree=2, seed=0)


def test_split_keeps_order_and_rows(data):
    train, test = data.split(7)
    assert (len(data), len(train), len(test)) == (10, 7, 3)
    for name in ("X", "costs", "mean_costs"):
        whole = np.concatenate([getattr(train, name), getattr(test, name)])
        np.testing.assert_array_equal(whole, getattr(data, name))
    assert train.problem is test.problem is data.problem


@pytest.mark.parametrize("n_train", [0, 10, -1, 11])
def test_split_needs_rows_on_both_sides(data, n_train):
    with pytest.raises(ValueError, match="n_train must"):
        data.split(n_train)


def test_rows_must_belong_together(data):
    with pytest.raises(ValueError, match="X has 9 rows, costs has 10 rows"):
        Dataset(data.X[:9], data.costs, data.problem, data.mean_costs)


def test_repr_says_what_it_is(data):
    assert "10 rows, 5 features, 40 costs" in repr(data)
