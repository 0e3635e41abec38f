"""Which rows are trained on, which are held out, and which of those are scored."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, check_cv

from decidewise.kit.checks import FloatArray, as_integer
from decidewise.models.selection.row_folds import RowFolds
from decidewise.models.selection.time_folds import BlockFolds, Rows, TimeFolds, as_times

Splits = list[tuple[Rows, Rows]]


def folds(cv: Any, X: Any, costs: FloatArray, groups: Any, rng: np.random.Generator, *, times: Any = None) -> Splits:
    """Return pairs of training rows and held-out rows.

    Parameters
    ----------
    cv : int, splitter, iterable of splits or None
        As in scikit-learn, except that a number (None is 5) makes folds of shuffled rows, of whole groups if `groups`
        are given, or of consecutive blocks if `times` are given.
    times : array-like of shape (n,), optional
        The times of the rows, for `BlockFolds` and `TimeFolds`; the rows must be in this order.
    """
    if times is not None:
        times = as_times(times, len(costs))
        if groups is not None:
            raise ValueError("pass either groups or times, not both: blocks keep rows of one time together.")
    if cv is None or isinstance(cv, int | np.integer):
        n_splits = 5 if cv is None else as_integer(cv, name="cv", minimum=2)
        seed = int(rng.integers(2**31))
        if times is not None:
            cv = BlockFolds(n_splits)
        elif groups is not None:
            cv = GroupKFold(n_splits)
        else:
            cv = KFold(n_splits, shuffle=True, random_state=seed)
    if isinstance(cv, RowFolds):
        cv = PredefinedSplit(cv.of(np.arange(len(costs))))
    if isinstance(cv, BlockFolds | TimeFolds):
        splits = list(cv.split(X, costs, times))
    elif isinstance(cv, str) or not (hasattr(cv, "split") or isinstance(cv, Iterable)):
        raise ValueError(f"cv must be a number of folds, a splitter or pairs of rows; got {cv!r}.")
    else:
        splits = [(np.asarray(train), np.asarray(test)) for train, test in check_cv(cv).split(X, costs, groups)]
    _check(splits, len(costs))
    return splits


def _check(splits: Splits, n_rows: int) -> None:
    if not splits:
        raise ValueError("cv has no splits; pass pairs of training rows and held-out rows, a splitter or a number.")
    for fold, (train, test) in enumerate(splits):
        for name, rows in (("training rows", train), ("held-out rows", test)):
            if not len(rows):
                raise ValueError(f"fold {fold} of cv has no {name}; each fold needs at least one. Use fewer folds.")
        rows = np.concatenate([train, test])
        if rows.min() < 0 or rows.max() >= n_rows:
            raise ValueError(f"all rows of fold {fold} of cv must be between 0 and {n_rows - 1}.")


def affordable(splits: Splits, n_models: float, max_solves: int | None, rng: np.random.Generator) -> Rows:
    """Return the held-out rows, or a random subset that can be scored with at most `max_solves` solver calls.

    A row takes one call for its best decision, and one for each model and each fold that holds it out.
    """
    rows, counts = np.unique(np.concatenate([test for _, test in splits]), return_counts=True)
    if max_solves is not None:
        order = rng.permutation(len(rows))
        spent = np.cumsum(1 + n_models * counts[order])
        rows = np.sort(rows[order[spent <= max_solves]])
    if len(rows) < 2:
        raise ValueError(
            f"{len(rows)} rows can be scored, but a comparison needs at least two. Hold out more rows, or allow more "
            f"solver calls: {n_models:g} models take {2 * (1 + n_models):g} for two rows, and max_solves={max_solves}."
        )
    return rows
