"""Regrets in the order of time keep the sums that a bootstrap of blocks needs, whatever the blocks they come in."""

from itertools import pairwise

import numpy as np
import pytest

from decidewise.app.tables.new_rows import OrderedRegrets


def added(times, best, regrets, sizes, **settings):
    kept = OrderedRegrets(**settings)
    edges = np.cumsum([0, *sizes])
    for first, last in pairwise(edges):
        part = slice(first, last)
        kept.add(times[part], best[part], {name: regret[part] for name, regret in regrets.items()})
    return kept


@pytest.mark.parametrize("most", [10, 64, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_units_are_sums_over_consecutive_rows(most, seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 40, 20)
    n = int(sizes.sum())
    best, regrets = rng.normal(size=n), {"forecast": rng.exponential(size=n), "model": rng.exponential(size=n)}
    times = np.datetime64("2026-01-01T00", "us") + np.arange(n) * np.timedelta64(1, "h")
    kept = added(times, best, regrets, sizes, most=most)
    assert kept.each == 2 ** max(0, int(np.ceil(np.log2(n / most))))
    found = kept.compared()
    assert found.n_samples == n
    [sums] = kept._sums
    assert len(sums) == -(-n // kept.each) <= most
    whole = n // kept.each
    for column, values in ((2, np.abs(best)), (3, regrets["forecast"]), (4, regrets["model"])):
        expected = values[: whole * kept.each].reshape(whole, -1).sum(axis=1)
        np.testing.assert_allclose(sums[:whole, column], expected, rtol=1e-12)
        assert sums[:, column].sum() == pytest.approx(values.sum())
    assert found[1].regret.estimate == pytest.approx(100 * regrets["model"].sum() / np.abs(best).sum())
    assert found[1].mean_difference.estimate == pytest.approx((regrets["model"] - regrets["forecast"]).mean())


def test_rows_that_come_late_are_sorted_and_too_many_of_them_refused():
    rng = np.random.default_rng(0)
    times, best = rng.permutation(60).astype(float), np.ones(60)
    regrets = {"model": times.copy()}
    kept = added(times, best, regrets, [20, 20, 20], most=60)
    assert not kept.in_order
    assert kept.compared().block_length > 1  # sorted, the regrets are a line
    assert added(times, best, regrets, [20, 20, 20], most=59).compared() is None


def test_a_forecast_with_a_gap_in_some_block_is_left_out():
    kept = OrderedRegrets()
    kept.add(np.arange(3), np.ones(3), {"forecast": np.ones(3), "model": np.zeros(3)})
    kept.add(np.arange(3, 6), np.ones(3), {"model": np.ones(3)})
    kept.add(np.arange(6, 9), np.ones(3), {"forecast": np.ones(3), "model": np.ones(3)})
    assert [row.name for row in kept.compared()] == ["model"]
    assert kept.compared()[0].regret.estimate == pytest.approx(200 / 3)
