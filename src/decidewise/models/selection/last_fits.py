"""Fit what was chosen on all rows: several models, of which some may fail, or be late."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter, time
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from decidewise.kit.batches import check_time, time_limit
from decidewise.kit.checks import FloatArray
from decidewise.kit.errors import TimeLimitReached
from decidewise.kit.interrupts import attempt, reason_of
from decidewise.models.linear.blocks import one_library_thread


def fit_all(
    models: Mapping[str, Any],
    X: Any,
    costs: FloatArray,
    *,
    seconds: Mapping[str, float],
    n_jobs: int | None = None,
    deadline: float = np.inf,
) -> list[Any]:
    """Return models fitted on all rows; for one that fails the reason as text, and None for one that is late.

    Parameters
    ----------
    models : mapping of str to estimator
    seconds : mapping of str to float
        The time that each took before: the quickest goes first, and has no limit.
    n_jobs : int, optional
        As in scikit-learn.
    deadline : float
        A time of `time.time`.
    """
    if len(models) <= 1:
        return [_fit(model, X, costs) for model in models.values()]
    quick_first = sorted(models, key=lambda name: seconds[name])
    limits = [np.inf, *[deadline] * (len(models) - 1)]
    tasks = [delayed(_fit)(models[name], X, costs, limit) for name, limit in zip(quick_first, limits, strict=True)]
    with one_library_thread():
        found = dict(zip(quick_first, Parallel(n_jobs=n_jobs)(tasks), strict=True))
    return [found[name] for name in models]


def _fit(model: Any, X: Any, costs: FloatArray, deadline: float = np.inf) -> Any:
    try:
        with time_limit(perf_counter() + deadline - time()):
            check_time()
            found = attempt(lambda: model.fit(X, costs))
    except TimeLimitReached:
        check_time()  # the limit may be one that the caller set
        return None
    return reason_of(found) if isinstance(found, Exception) else found  # not every exception can leave a process
