"""Folds never train on what was not known, and bad ones are named."""

import numpy as np
import pytest
from sklearn.base import clone

from decidewise import WiseRegressor, WiseRegressorCV
from decidewise.models import BlockFolds, TimeFolds
from decidewise.models.selection.folds import folds
from decidewise.models.selection.lags import lagged
from decidewise.problems import TopK

RNG = np.random.default_rng(0)
DAYS = np.repeat(np.arange("2026-01-01", "2026-01-31", dtype="datetime64[D]"), 4)  # 30 days of 4 rows
X, COSTS = RNG.normal(size=(120, 2)), RNG.uniform(1, 2, size=(120, 6))


class TestBlockFolds:
    @pytest.mark.parametrize("gap", [0, 2])
    def test_every_row_is_held_out_once_and_its_neighbours_are_not_trained_on(self, gap):
        splits = list(BlockFolds(4, gap=np.timedelta64(gap, "D")).split(X, None, DAYS))
        np.testing.assert_array_equal(np.concatenate([test for _, test in splits]), np.arange(120))
        for train, test in splits:
            away = np.abs(DAYS[train][:, None] - DAYS[test]).min(axis=1).astype(int)
            assert away.min() == gap + 1
            near = np.isin(DAYS, DAYS[test].min() + np.arange(-gap, np.ptp(DAYS[test]).astype(int) + gap + 1))
            np.testing.assert_array_equal(train, np.flatnonzero(~near))  # all others are

    def test_times_make_blocks_out_of_a_number(self):
        splits = folds(3, X, COSTS, None, np.random.default_rng(0), times=DAYS)
        for (train, test), (expected_train, expected) in zip(splits, BlockFolds(3).split(X, None, DAYS), strict=True):
            np.testing.assert_array_equal(train, expected_train)
            np.testing.assert_array_equal(test, expected)

    def test_too_few_times_or_too_wide_a_gap(self):
        with pytest.raises(ValueError, match="4 blocks need at least 4 different times; there are 3"):
            list(BlockFolds(4).split(X[:3]))
        with pytest.raises(ValueError, match=r"fold 1, from 40 to 79, has no training rows with gap=40"):
            list(BlockFolds(3, gap=40).split(X))


class TestTimeFolds:
    @pytest.mark.parametrize(("gap", "window"), [(0, None), (2, None), (2, 6)])
    def test_training_ends_before_the_gap_and_no_day_is_split(self, gap, window):
        splits = list(
            TimeFolds(4, gap=np.timedelta64(gap, "D"), window=window and np.timedelta64(window, "D")).split(
                X, None, DAYS
            )
        )
        assert len(splits) == 4
        for train, test in splits:
            first, last = DAYS[test].min(), DAYS[train].max()
            assert (first - last).astype(int) == gap + 1
            assert not set(DAYS[train]) & set(DAYS[test])
            if window:
                assert len(np.unique(DAYS[train])) == min(window, (first - DAYS[0]).astype(int) - gap)
            else:
                assert DAYS[train].min() == DAYS[0]
        held_out = np.concatenate([test for _, test in splits])
        np.testing.assert_array_equal(held_out, np.arange(24, 120))

    def test_the_choice_respects_time(self):
        model = WiseRegressorCV(TopK(6, 2, sense="min"), [WiseRegressor()], cv=TimeFolds(4)).fit(X, COSTS, times=DAYS)
        assert model.n_solves_ == 2 * 96

    @pytest.mark.parametrize(
        ("times", "sentence"),
        [
            (DAYS[::-1], r"row 4 \(2026-01-29\) comes after row 3 \(2026-01-30\) but is earlier"),
            (DAYS[:7], r"one entry for each of the 120 rows; got the shape \(7,\)"),
            (["Monday"] * 120, "times must be numbers or dates"),
            (np.where(np.arange(120) == 3, np.nan, np.arange(120)), "row 3 has none"),
            (np.zeros(120), "5 blocks need at least 5 different times; there are 1"),
        ],
    )
    def test_bad_times(self, times, sentence):
        with pytest.raises(ValueError, match=sentence):
            WiseRegressorCV(TopK(6, 2, sense="min")).fit(X, COSTS, times=times)

    def test_no_training_rows(self):
        with pytest.raises(ValueError, match=r"fold 0, which begins at 20, has no training rows with gap=25"):
            list(TimeFolds(5, gap=25).split(X))
        with pytest.raises(ValueError, match="either groups or times"):
            WiseRegressorCV(TopK(6, 2, sense="min")).fit(X, COSTS, groups=DAYS, times=DAYS)


def test_folds_without_rows_are_named():
    everything = np.arange(120)
    for split, name in (((everything[:0], everything), "training"), ((everything, everything[:0]), "held-out")):
        with pytest.raises(ValueError, match=f"fold 1 of cv has no {name} rows"):
            folds([(everything, everything), split], X, COSTS, None, np.random.default_rng(0))
    with pytest.raises(ValueError, match="fold 0 of cv must be between 0 and 119"):
        folds([(everything, everything + 1)], X, COSTS, None, np.random.default_rng(0))


class TestLags:
    def test_they_are_baselines_that_are_never_chosen(self):
        walk = RNG.normal(size=(120, 6))
        for row in range(1, 120):
            walk[row] += 0.8 * walk[row - 1]
        model = WiseRegressorCV(
            TopK(6, 2, sense="min"), [WiseRegressor(), WiseRegressor(exponent=0)], lags=(1, 7), cv=TimeFolds(3)
        )
        with pytest.raises(ValueError, match="none of the 1 candidates"):
            clone(model).set_params(candidates={"bad": WiseRegressor(exponent=-1)}).fit(X, walk)
        results = model.fit(X, walk).cv_results_
        assert results["candidate"].tolist()[2:] == ["costs 1 row before", "costs 7 rows before"]
        assert results["status"].tolist() == ["scored", "scored", "baseline", "baseline"]
        assert results["regret"][2] < results["regret"][3]  # what is near is alike
        assert not {"costs 1 row before", "costs 7 rows before"} & set(model.members_)
        regret = TopK(6, 2, sense="min").solve(walk[29:-1]) - TopK(6, 2, sense="min").solve(walk[30:])
        best = np.abs(np.einsum("ij,ij->i", walk[30:], TopK(6, 2, sense="min").solve(walk[30:]))).sum()
        assert results["regret"][2] == pytest.approx(100 * np.einsum("ij,ij->", walk[30:], regret) / best)

    def test_costs_that_were_not_known_yet_are_refused(self):
        splits = list(TimeFolds(3, gap=6).split(X))
        assert list(lagged(COSTS, [7], splits)) == ["costs 7 rows before"]
        with pytest.raises(ValueError, match=r"costs of 6 rows before are not known when fold 0 .* at least 7"):
            lagged(COSTS, [6], splits)
        with pytest.raises(ValueError, match="a lag must be"):
            lagged(COSTS, [120], splits)
