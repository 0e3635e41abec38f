"""Choose an exact linear model by out-of-fold regret on rows that need not be in memory.

The sums of a linear fit are kept for each fold and exponent, in one pass. The sums of all folds but one are those of
the training rows for this fold, for any ridge. A second pass scores every candidate on rows it was not trained on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from decidewise.data.tables import check_columns_in_time, check_items_in_time
from decidewise.evaluate import Hindsight
from decidewise.kit.checks import FloatArray, as_integer, as_number
from decidewise.kit.interrupts import attempt, reason_of
from decidewise.kit.library_threads import one_library_thread
from decidewise.models.generalized_linear import GeneralizedLinear
from decidewise.models.linear.blocks import Blocks
from decidewise.models.linear.link import linear_predictor
from decidewise.models.linear.moments import Moments
from decidewise.models.linear.units import cost_unit
from decidewise.models.selection.choice_on_rows import added
from decidewise.models.selection.row_folds import RowFolds
from decidewise.models.selection.scores import none_scored
from decidewise.models.wise_regressor import WiseRegressor
from decidewise.operate.decide import StreamedRegret, problem_of, regret_sums
from decidewise.problems.contract import Problem, as_problem
from decidewise.rows.files import FileRows
from decidewise.rows.passes import Pass, Passes, run
from decidewise.rows.source import Rows, RowSource
from decidewise.rows.tree import Sums

#: The exponents and ridges to choose among by default.
EXPONENTS, ALPHAS = (0.0, 0.5, 1.0), (0.0, 0.01, 0.1, 1.0)


@dataclass(frozen=True)
class StreamedChoice:
    """The result of `choose_files`; `print` shows a table.

    Attributes
    ----------
    model : WiseRegressor
        The candidate with the least out-of-fold regret, fitted on all rows.
    regrets : dict of (exponent, alpha) to StreamedRegret
        Out of fold, of every candidate.
    best : (float, float)
        The exponent and the ridge of the model.
    failures : dict of (exponent, alpha) to str
        The candidates whose predictions could not be decided, with the reasons.
    """

    model: WiseRegressor
    regrets: dict[tuple[float, float], StreamedRegret]
    best: tuple[float, float]
    failures: dict[tuple[float, float], str] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{'exponent':>8}  {'alpha':>8}  regret %"]
        for (exponent, alpha), regret in self.regrets.items():
            chosen = "  chosen" if (exponent, alpha) == self.best else ""
            lines.append(f"{exponent:>8g}  {alpha:>8g}  {regret.percent}{chosen}")
        for (exponent, alpha), reason in self.failures.items():
            lines.append(f"{exponent:>8g}  {alpha:>8g}  failed: {reason}")
        n_rows = self.regrets[self.best].n_rows
        return "\n".join([*lines, f"Out of fold, with 95 % intervals over {n_rows:,} rows."])


def choose_files(
    problem: Problem,
    paths: Any,
    *,
    features: Any,
    costs: Any,
    exponents: Sequence[float] = EXPONENTS,
    alphas: Sequence[float] = ALPHAS,
    folds: int = 5,
    rows_together: int = 1,
    **files: Any,
) -> StreamedChoice:
    r"""Choose the exponent and the ridge of an exact linear fit by out-of-fold regret, in three passes over files.

    The candidates are `WiseRegressor(GeneralizedLinear(alpha=...), exponent=...)`. One pass adds up all folds for all
    candidates, one solves the problem of every row for every candidate and for the realised costs, and one fits the
    best candidate on all rows.

    Parameters
    ----------
    problem : Problem
        Without known costs, since the candidates predict directions.
    paths, features, costs
        As for `WiseRegressor.fit_files`.
    exponents, alphas : sequences of float
        Every pair is a candidate.
    folds : int
        The number of folds.
    rows_together : int
        So many consecutive rows are in the same fold. If rows are in order of time, neighbours are alike: choose a
        number that covers the time over which they are.
    **files
        As for `WiseRegressor.fit_files`: `sample_weight`, `rows`, `items`, `block_rows` and `text`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from decidewise.problems import TopK
    >>> lines = [f"{x},{x + 1},{4 - x}" for x in range(5)] * 2
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("x,c_1,c_2\n" + "\n".join(lines))
    ...     choice = choose_files(
    ...         TopK(2, 1), folder, features="x", costs="c_*", exponents=[1.0], alphas=[0.0, 100.0]
    ...     )
    >>> print(choice)
    exponent     alpha  regret %
           1         0  0.00 [0.00, 0.00]  chosen
           1       100  21.05 [1.74, 40.36]
    Out of fold, with 95 % intervals over 10 rows.
    """
    as_problem(problem)
    source = FileRows(paths, features=features, costs=costs, description="choose_files", **files)
    if source.columns.items is None:
        check_columns_in_time(problem, source.columns.costs, costs)
    else:
        how = "Number them in the order of time."
        check_items_in_time(problem, source.columns.items, source.columns.item_names, how)
    return choose_rows(problem, source, exponents, alphas, folds=folds, rows_together=rows_together)


def choose_rows(
    problem: Problem,
    source: RowSource,
    exponents: Sequence[float] = EXPONENTS,
    alphas: Sequence[float] = ALPHAS,
    **folds: int,
) -> StreamedChoice:
    """Choose from the rows of any source; see `choose_files`."""
    return run(choice_of(problem, source, exponents, alphas, **folds), source)


def choice_of(
    problem: Problem,
    source: RowSource,
    exponents: Sequence[float],
    alphas: Sequence[float],
    *,
    folds: int = 5,
    rows_together: int = 1,
) -> Passes[StreamedChoice]:
    """Return the choice as passes over the rows of a source, which is asked for its first rows and columns alone."""
    if as_problem(problem).has_known:
        raise ValueError(
            f"{type(problem).__name__} has known costs, and the candidates predict directions. Fit "
            "WiseRegressor(lifted=True) instead."
        )
    exponents = [as_number(exponent, name="exponents", at_least=0) for exponent in exponents]
    alphas = [as_number(alpha, name="alphas", at_least=0) for alpha in alphas]
    if not exponents or not alphas:
        raise ValueError("exponents and alphas must each have at least one number.")
    division = RowFolds(as_integer(folds, name="folds", minimum=2), as_integer(rows_together, name="rows_together"))
    first = source.first()
    if first.costs is None:
        raise ValueError(f"{first.origin} has no costs, and a choice needs them.")
    unit = cost_unit(first.costs, power=max(exponents))
    empty = Moments.for_rows_like(Blocks(source).first(), fit_intercept=True)
    gram, cross = yield Pass(FoldMoments(empty, division, tuple(exponents), unit))
    fits = [[_fits(empty, gram[e], cross[e], alpha, folds) for alpha in alphas] for e in range(len(exponents))]
    candidates = [(exponent, alpha) for exponent in exponents for alpha in alphas]
    sums, why = yield Pass(FoldRegrets(problem, division, tuple(fit for row in fits for fit in row)), added)
    failures = {pair: str(reason) for pair, reason in zip(candidates, why, strict=True) if reason}
    if len(failures) == len(candidates):
        raise none_scored(
            {f"exponent {exponent:g}, alpha {alpha:g}": why for (exponent, alpha), why in failures.items()}
        )
    regrets = {
        pair: StreamedRegret.of((own,), problem)
        for pair, own in zip(candidates, sums, strict=True)
        if pair not in failures
    }
    best = min(regrets, key=lambda pair: regrets[pair].percent.estimate)  # the first of equal ones
    exponent, alpha = best
    model = yield from WiseRegressor(GeneralizedLinear(alpha=alpha), exponent=exponent).passes(source)
    return StreamedChoice(model, regrets, best, failures)


@dataclass(frozen=True)
class FoldMoments:
    """The sums of a linear fit over the rows of a block, for each exponent and fold."""

    empty: Moments
    folds: RowFolds
    exponents: tuple[float, ...]
    unit: float

    def __call__(self, rows: Rows) -> Sums:
        """Return grams (e, k, p + 1, p + 1) and crosses (e, k, p + 1, d)."""
        shape = (len(self.exponents), self.folds.n_folds)
        gram, cross = np.zeros((*shape, *self.empty.gram.shape)), np.zeros((*shape, *self.empty.cross.shape))
        with one_library_thread():
            for fold, (_, part) in enumerate(self.folds.split(rows)):
                for place, exponent in enumerate(self.exponents if len(part) else ()):
                    blocks = Blocks(None, exponent, 1.0, unit=self.unit).of(part)
                    gram[place, fold], cross[place, fold] = self.empty.sums(blocks)
        if not (np.isfinite(gram).all() and np.isfinite(cross).all()):
            rows.check()
            raise ValueError("the products of features and targets overflow float64. Scale the features or the costs.")
        return gram, cross


@dataclass(frozen=True)
class FoldRegrets:
    """The sums of regrets over the rows of a block, each row decided by the models of its fold."""

    problem: Problem
    folds: RowFolds
    fits: tuple[list[tuple[FloatArray, FloatArray]], ...]

    def __call__(self, rows: Rows) -> Sums:
        """Return sums (c, 9), one line per candidate; see `decidewise.operate.decide.regret_sums`.

        The second entry says why candidates failed, (c,).
        """
        why = [""] * len(self.fits)
        truth = Hindsight.of(problem_of(self.problem, rows), rows.costs)
        regret = np.zeros((len(self.fits), len(rows)))
        for fold, (place, part) in enumerate(self.folds.split(rows)):
            own = truth.take(place)
            for candidate, fits in enumerate(self.fits if len(part) else ()):
                coefficients, intercepts = fits[fold]
                per_item = part.X.ndim == 3
                slopes, levels = (coefficients[:, 0], intercepts[0]) if per_item else (coefficients.T, intercepts)
                found = attempt(partial(own.regret, linear_predictor(part.X, slopes, levels)))
                if isinstance(found, Exception):
                    why[candidate] = why[candidate] or reason_of(found)
                else:
                    regret[candidate, place] = found
        return np.array([regret_sums(own, truth.best, rows.weights) for own in regret]), np.array(why)


def _fits(
    empty: Moments, gram: FloatArray, cross: FloatArray, alpha: float, n_folds: int
) -> list[tuple[FloatArray, FloatArray]]:
    """Return for each fold the coefficients and intercepts of a fit on all other folds."""
    fits = []
    for fold in range(n_folds):
        others = [other for other in range(n_folds) if other != fold]
        training = replace(empty, gram=gram[others].sum(axis=0), cross=cross[others].sum(axis=0))
        if training.total_weight <= 0:
            raise ValueError(
                f"there are no rows of positive weight outside fold {fold} of {n_folds}. Pass more rows, or fewer "
                "rows_together."
            )
        fits.append(training.solve(alpha, fit_intercept=True))
    return fits
