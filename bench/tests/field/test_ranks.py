"""Ranks against the published tables of the test, and against SciPy."""

import math

import numpy as np
import pytest
from scipy.stats import rankdata

from decidewise_bench.field.ranks import Ranks, critical_difference


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_critical_differences_are_those_of_demsar(k, q):
    assert critical_difference(k, 14) == pytest.approx(q * math.sqrt(k * (k + 1) / (6 * 14)), rel=5e-4)


def test_a_method_that_is_always_first_is_told_from_the_last():
    rng = np.random.default_rng(0)
    regrets = rng.uniform(1, 2, (30, 4)) + np.array([0, 1, 1, 5])
    ranks = Ranks.of(["a", "b", "c", "d"], regrets)
    assert next(iter(ranks.mean)) == "a"
    assert list(ranks.mean)[-1] == "d"
    assert ranks.is_significant
    assert "d" not in ranks.equals_of("a")
    assert ranks.equals_of("b") == ["c"]
    assert sum(ranks.mean.values()) == pytest.approx(10)


def test_methods_that_are_alike_are_not_told_apart():
    regrets = np.random.default_rng(1).uniform(size=(6, 5))
    ranks = Ranks.of(list("abcde"), regrets)
    assert not ranks.is_significant
    assert len(ranks.equals_of("a")) == 4
    expected = rankdata(regrets, axis=1).mean(axis=0)
    assert [ranks.mean[name] for name in "abcde"] == pytest.approx(list(expected))


@pytest.mark.parametrize("n_blocks", [0, 2])
def test_too_few_blocks_for_a_test(n_blocks):
    ranks = Ranks.of(["a", "b", "c"], np.ones((n_blocks, 3)))
    assert math.isnan(ranks.critical)
    assert not ranks.is_significant
