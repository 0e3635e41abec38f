"""Intervals against plain loops and Student's, what they promise by simulation, and rows in an order."""

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import ttest_1samp

from decidewise.evaluate import Hindsight, compare, compare_regrets, intervals, regret_interval
from decidewise.evaluate.intervals import block_length
from decidewise.problems import Ball, TopK


def found(best, *regrets, **options):
    """Compare models by their regrets (n,)."""
    truth = Hindsight(Ball(1), np.ones((len(best), 1)), np.asarray(best))
    return compare_regrets(truth, {str(i): np.asarray(regret) for i, regret in enumerate(regrets)}, **options)


def heavy(rng, n):
    """Lognormal sizes, and regrets that are zero in half of the rows: the true ratio is 0.2 · exp(1/2) · Φ(1)."""
    best, z = np.exp(rng.normal(size=n)), rng.normal(size=n)
    return best, 0.2 * best * np.exp(z) * (z > 0)


def ordered(rng, n, coefficient):
    noise = rng.normal(size=n)
    noise[1:] *= np.sqrt(1 - coefficient**2)
    return lfilter([1.0], [1.0, -coefficient], noise)


def quantile_of_deviations(a, b, resamples, level):
    """The quantile of |r* - r| / s* over resamples of units whose sums are a and b, one resample at a time."""
    deviations = []
    for drawn in resamples:
        again = a[drawn].sum() / b[drawn].sum()
        error = np.sqrt(((a[drawn] - again * b[drawn]) ** 2).sum()) / b[drawn].sum()
        deviations.append(abs(again - a.sum() / b.sum()) / error)
    return np.quantile(deviations, level)


@pytest.mark.parametrize("block", [intervals.BLOCK_SIZE, 200, 1])
@pytest.mark.parametrize("length", [None, 1, 4])
def test_interval_equals_a_plain_loop(monkeypatch, block, length):
    monkeypatch.setattr(intervals, "BLOCK_SIZE", block)
    rng = np.random.default_rng(7)
    best, regret = rng.lognormal(size=60), rng.exponential(size=60)
    other = rng.exponential(size=60)
    rng = np.random.default_rng(3)
    size = length or 1
    starts = [rng.integers(60, size=60 // size) for _ in range(50)]
    result = found(best, regret, other, level=0.9, n_resamples=50, rng=np.random.default_rng(3), blocks=length)
    for interval, values, sizes, factor in (
        (result[0].regret, regret, best, 100),
        (result[1].difference, other - regret, best, 100),
        (result[0].mean_regret, regret, np.ones(60), 1),
        (result[1].mean_difference, other - regret, np.ones(60), 1),
    ):
        blocks = (np.arange(60)[:, None] + np.arange(size)) % 60
        a, b = values[blocks].sum(axis=1), sizes[blocks].sum(axis=1)
        ratio, quantile = values.sum() / sizes.sum(), quantile_of_deviations(a, b, starts, 0.9)
        error = np.sqrt(60 / size * ((a - ratio * b) ** 2).mean()) / sizes.sum()
        expected = factor * np.array([ratio, ratio - quantile * error, ratio + quantile * error])
        np.testing.assert_allclose(interval, expected, rtol=1e-9)


def test_the_mean_of_normal_rows_has_the_interval_of_student():
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(20):
        sample = 10 + rng.normal(size=12)
        interval = found(np.ones(12), sample, n_resamples=4_000).rows[0].mean_regret
        student = ttest_1samp(sample, 0).confidence_interval(0.95)
        assert interval.estimate == pytest.approx(sample.mean())
        assert interval.high - interval.estimate == pytest.approx(interval.estimate - interval.low)
        ratios.append((interval.high - interval.low) / (student.high - student.low))
    # The normal quantile in place of Student's would give 0.89, and the percentile interval 0.85.
    assert np.mean(ratios) == pytest.approx(1, abs=0.06)


def test_rare_regrets_are_covered_better_than_by_percentiles():
    rng = np.random.default_rng(1)
    rounds, hits, percentile_hits = 200, 0, 0
    for _ in range(rounds):
        best = rng.lognormal(0, 0.5, size=50)
        regret = best * rng.exponential(size=50) * (rng.random(50) < 0.15)  # 15 % of the optimal value
        low, high = found(best, regret, n_resamples=300, rng=rng)[0].regret[1:]
        hits += low <= 15 <= high
        counts = rng.multinomial(50, np.full(50, 0.02), size=300)
        low, high = np.quantile((counts @ regret) / (counts @ best), [0.025, 0.975])
        percentile_hits += low <= 0.15 <= high
    assert percentile_hits < 0.88 * rounds
    assert hits > 0.91 * rounds


def test_ordered_rows_are_covered_with_blocks_only():
    rng = np.random.default_rng(2)
    rounds, hits, without = 100, 0, 0
    for _ in range(rounds):
        regret = 1 + ordered(rng, 200, 0.8)
        for blocks in ("auto", None):
            _, low, high = found(np.ones(200), regret, n_resamples=300, rng=rng, blocks=blocks)[0].mean_regret
            if blocks:
                hits += low <= 1 <= high
            else:
                without += low <= 1 <= high
    assert without < 0.65 * rounds
    assert hits > 0.86 * rounds


def test_intervals_follow_the_units():
    best, regret = heavy(np.random.default_rng(3), 80)
    plain, scaled = (found(factor * best, factor * regret, 0 * best, blocks="auto") for factor in (1, 4.0))
    for one, other in zip(plain, scaled, strict=True):
        assert one.regret == other.regret
        assert one.difference == other.difference
        assert one.mean_regret.scaled(4.0) == other.mean_regret
    huge, tiny = (found(factor * best, factor * regret)[0].regret for factor in (1e200, 1e-200))
    np.testing.assert_allclose([huge, tiny], [found(best, regret)[0].regret] * 2, rtol=1e-9)


def test_the_order_of_independent_rows_makes_no_difference():
    best, regret = heavy(np.random.default_rng(4), 300)
    order = np.argsort(regret)
    one, other = (found(best[rows], regret[rows], n_resamples=5_000)[0].regret for rows in (slice(None), order))
    standard_error = (one.high - one.low) / (2 * 1.96)
    np.testing.assert_allclose(one, other, atol=0.2 * standard_error)
    # In that order the rows look dependent, which blocks see.
    wide = found(best[order], regret[order], blocks="auto")[0].regret
    assert wide.high - wide.low > 2 * (one.high - one.low)


def test_no_end_has_a_sign_that_no_row_has():
    regret = np.r_[np.zeros(18), 0.1, 0.5]
    result = found(np.ones(20), regret, np.zeros(20))
    assert result[0].regret.low == 0
    assert result[0].regret.high == pytest.approx(5 * result[0].regret.estimate)  # a resample may have no regret
    assert result[1].regret == (0, 0, 0)
    assert result[1].difference.high == 0
    mixed = found(np.ones(20), regret - np.arange(20) % 2 / 20)
    assert mixed[0].regret.low < 0 < mixed[0].regret.high


def test_blocks_of_many_rows_give_the_interval_of_fewer(monkeypatch):
    regret = 5 + ordered(np.random.default_rng(5), 2_000, 0.5)
    plain = found(np.ones(2_000), regret, blocks=10, n_resamples=1_000)[0].regret
    for n_groups in (1_500, 150):  # consecutive blocks, and groups of them
        monkeypatch.setattr(intervals, "N_GROUPS", n_groups)
        grouped = found(np.ones(2_000), regret, blocks=10, n_resamples=1_000)[0].regret
        assert grouped.estimate == pytest.approx(plain.estimate)
        # 200 blocks estimate the standard error to 5 %, and 150 groups to 6 %.
        assert (grouped.high - grouped.low) / (plain.high - plain.low) == pytest.approx(1, abs=0.15)


def test_comparison_says_its_blocks_and_comes_in_units():
    regret = 1_000 * np.exp(ordered(np.random.default_rng(6), 100, 0.5))
    result = found(np.full(100, 1e4), regret, 2 * regret, blocks=8)
    assert result.block_length == 8
    assert str(result).endswith("95 % bootstrap intervals over 100 rows in blocks of 8.")
    few = found(np.full(100, 1e4), regret, blocks=15)
    assert "in blocks of 15. With only 6 blocks" in str(few)
    assert few.caution.endswith("if rows are correlated over a long time.")
    head, first, second, _ = result.in_units("EUR a day").splitlines()
    assert "EUR a day" in head
    assert f"{regret.mean():,.0f} [" in first
    assert second.count(f"{2 * regret.mean():,.0f} [") == 1
    assert result[1].mean_difference.estimate == pytest.approx(regret.mean())
    longest = max(found(np.full(100, 1e4), r, blocks="auto").block_length for r in (regret, 2 * regret))
    assert found(np.full(100, 1e4), regret, 2 * regret, blocks="auto").block_length == longest


@pytest.mark.parametrize("blocks", [0, -1, 1.5, True, "weekly", [3]])
def test_bad_blocks(blocks):
    costs = np.ones((10, 2))
    with pytest.raises(ValueError, match="blocks must be"):
        regret_interval(TopK(2, 1), costs, costs, blocks=blocks)
    with pytest.raises(ValueError, match="blocks must be"):
        compare(TopK(2, 1), {"a": costs}, costs, blocks=blocks)


def test_too_long_blocks():
    costs = np.ones((10, 2))
    with pytest.raises(ValueError, match=r'blocks=6 is too long for 10 rows.*Pass at most 5, or "auto"'):
        regret_interval(TopK(2, 1), costs, costs, blocks=6)
    assert regret_interval(TopK(2, 1), costs, costs, blocks=5) == (0, 0, 0)


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_few_rows_have_an_interval(n):
    best, regret = heavy(np.random.default_rng(7), n)
    for blocks in (None, "auto", 1):
        interval = found(best, regret, blocks=blocks)[0].regret
        assert np.isfinite(interval).all()
        assert interval.low <= interval.estimate <= interval.high


class TestBlockLength:
    def test_it_grows_with_the_dependence(self):
        rng = np.random.default_rng(0)
        lengths = [
            np.mean([block_length(ordered(rng, 1_000, coefficient)) for _ in range(20)])
            for coefficient in (0, 0.5, 0.9)
        ]
        assert lengths[0] < 27  # nearly always the least, 25
        # Twice the optimum for autoregressions, (6 φ² n / (1 - φ²)²)^(1/3): 13.9 and 51.2.
        np.testing.assert_allclose(lengths[1:], [2 * 13.9, 2 * 51.2], rtol=0.35)

    def test_units_and_direction_make_no_difference(self):
        series = ordered(np.random.default_rng(1), 300, 0.7)
        assert block_length(series) == block_length(1e200 * series + 1e200) == block_length(series[::-1])

    def test_it_is_at_most_a_quarter_of_the_rows(self):
        assert block_length(np.arange(40.0)) == 10
        assert block_length(np.zeros(1_000)) == 25
        assert block_length(np.zeros(10**6)) == 100
        assert block_length(np.zeros(2)) == 1
