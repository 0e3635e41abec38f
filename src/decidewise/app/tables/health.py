"""The state of the data: gaps, zeros, outliers, tails, collinear features, drift, and costs among the features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from decidewise.app.tables.comparison import TableComparison
from decidewise.evaluate.intervals import number
from decidewise.kit.checks import FloatArray, listed
from decidewise.kit.scaling import unit_largest

#: Distances from the median, in robust standard deviations, from which a cost is an outlier.
_FAR = 8.0
#: A tail with an index below 2 has no finite variance.
_HEAVY = 2.0
#: Means of training and held-out rows that differ by more than so many standard deviations have drifted.
_DRIFT = 0.5
#: The range of training values, in quantiles; a season moves means, but hardly out of it.
_USUAL = (0.05, 0.95)
_COLLINEAR = 1e5
_FEW_ROWS = 5
_FEW_TESTED = 20


@dataclass(frozen=True)
class Finding:
    """One fact about the data: what was looked at, what was found, whether it deserves a look, and what it means.

    What is `loud` is printed in the terminal as well; a `doubt` is a part of the verdict.
    """

    topic: str
    found: str
    look: bool = False
    meaning: str = ""
    loud: bool = False
    doubt: str = ""


def doubts(findings: Sequence[Finding]) -> list[str]:
    """Return what makes the verdict doubtful, in a few words each."""
    return [found.doubt for found in findings if found.doubt]


def alarms(findings: Sequence[Finding]) -> list[str]:
    """Return the findings that belong beside the result, in sentences."""
    loud = [found for found in findings if found.loud]
    return [f"{found.topic[0].upper()}{found.topic[1:]}: {found.found}. {found.meaning}" for found in loud]


def health(result: TableComparison) -> list[Finding]:
    """Return what was found in the training rows, and how the held-out rows differ from them."""
    samples, prepared = result.samples, result.choice.prepared
    X, costs = samples.features(prepared), samples.observed
    assert costs is not None
    train, test = result.splits[0][0], result.rows
    flat = unit_largest(X.reshape(-1, X.shape[-1]).T).T  # so that no square is out of range
    in_unit = costs / (np.abs(costs).max() or 1.0)
    per_sample = X.shape[1] if samples.per_item else 1
    lines = (train[:, np.newaxis] * per_sample + np.arange(per_sample)).ravel()
    later = (test[:, np.newaxis] * per_sample + np.arange(per_sample)).ravel()
    names = prepared.feature_names_
    steady = np.flatnonzero(~np.array(prepared.is_calendar))  # a later part of the year is no drift
    return [
        *(Finding("how the table was read", note.rstrip("."), note in samples.doubts) for note in samples.notes),
        *_gaps(result),
        _zeros(costs[train]),
        _outliers(costs[train], samples.cost_names, samples.keys[train]),
        _tails(in_unit[train]),
        _rows(len(lines), len(names)),
        _test_rows(result),
        *_collinear(flat[lines], names),
        *_drift(flat[lines][:, steady], flat[later][:, steady], [names[i] for i in steady], "features"),
        *_drift(in_unit[train], in_unit[test], samples.cost_names, "costs"),
        *_leaks(result),
    ]


def _gaps(result: TableComparison) -> Iterator[Finding]:
    prepared = result.choice.prepared
    gaps = [prepared.noted_[name] for name in prepared.with_gaps_]
    yield Finding("gaps", " ".join(gaps).rstrip(".") if gaps else "none in the features, none in the costs", bool(gaps))
    others = [note for name, note in prepared.noted_.items() if name not in prepared.with_gaps_]
    if others:
        left_out = any(plan["kind"] == "left out" for plan in prepared.columns_)
        yield Finding("columns dropped or converted", " ".join(others).rstrip("."), left_out)


def _zeros(costs: FloatArray) -> Finding:
    zero, below = 100 * float((costs == 0).mean()), 100 * float((costs < 0).mean())
    found = f"{zero:.3g} % of the costs are zero, {below:.3g} % are negative"
    meaning = "A log link needs positive costs: models with one are left out, or costs are raised to a floor."
    return Finding("zeros and negative costs", found, zero + below > 5, meaning if zero + below > 0 else "")


def _outliers(costs: FloatArray, names: tuple[str, ...], keys: FloatArray) -> Finding:
    center = np.median(costs, axis=0)
    spread = 1.4826 * np.median(np.abs(costs - center), axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.abs(costs - center) / spread
    far[:, spread == 0] = 0.0
    n_far = int((far > _FAR).sum())
    if not n_far:
        return Finding("outliers", f"no cost is more than {_FAR:g} robust standard deviations from its median")
    row, item = np.unravel_index(int(far.argmax()), far.shape)
    found = f"{n_far:,} costs ({100 * n_far / costs.size:.2g} %); the furthest is {names[item]!r} of {keys[row]}, "
    found += f"{costs[row, item]:.4g}, where the median is {center[item]:.4g}"
    many = n_far > 0.001 * costs.size
    return Finding("outliers", found, many, "Check that they are real; models for outliers are tried.", many)


def _tails(costs: FloatArray) -> Finding:
    """Estimate the index of the tail of the sizes of the cost vectors, by the estimator of Hill (1975)."""
    sizes = np.sort(np.linalg.norm(costs, axis=1))[::-1]
    k = max(5, len(sizes) // 20)
    share = 100 * float(sizes[: max(1, len(sizes) // 100)].sum() / sizes.sum()) if sizes.sum() else 0.0
    if len(sizes) <= k + 1 or sizes[k] <= 0 or sizes[0] == sizes[k]:
        return Finding("heavy tails", "too few different sizes to tell")
    index = 1 / float(np.log(sizes[:k] / sizes[k]).mean())
    heavy = index < _HEAVY
    found = (
        f"the largest 1 % of the rows have {share:.2g} % of the total size; the index of the tail is about {index:.2g}"
    )
    return Finding(
        "heavy tails", found, heavy, "A few rows decide the fit, and intervals are too narrow." if heavy else ""
    )


def _rows(n_lines: int, n_features: int) -> Finding:
    each = n_lines / n_features
    found = f"{n_lines:,} lines to train on for {n_features} features, {number(each)} for each"
    few = each < _FEW_ROWS
    meaning, doubt = ("Few: expect ridges and simple models to be chosen.", "few rows to train on")
    return Finding("rows", found, True, meaning, doubt=doubt) if few else Finding("rows", found)


def _test_rows(result: TableComparison) -> Finding:
    table, noun = result.table, result.samples.noun
    n_blocks = table.n_samples // table.block_length
    found = f"{table.n_samples:,} {noun}s held out"
    if table.caution:
        found += f", in {n_blocks} blocks of {table.block_length}"
        return Finding("test rows", found, True, table.caution, doubt=f"only {n_blocks} blocks of test {noun}s")
    if table.n_samples < _FEW_TESTED:
        return Finding("test rows", found, True, "Few: another test may end otherwise.", doubt=f"only {found}")
    return Finding("test rows", found)


def _collinear(X: FloatArray, names: tuple[str, ...]) -> Iterator[Finding]:
    spread = X.std(axis=0)
    varying = np.flatnonzero(spread > 0)
    if len(varying) < 2 or len(varying) > 2000:
        return
    scaled = (X[:, varying] - X[:, varying].mean(axis=0)) / spread[varying]
    correlations = scaled.T @ scaled / len(scaled)
    values = np.linalg.eigvalsh(correlations)
    condition = float(np.sqrt(values[-1] / max(values[0], 1e-16)))
    found = "no feature is a combination of the others" if condition < _COLLINEAR else "some features repeat others"
    np.fill_diagonal(correlations, 0.0)
    i, j = np.unravel_index(int(np.abs(correlations).argmax()), correlations.shape)
    pair = f"{names[varying[i]]!r} and {names[varying[j]]!r}"
    found += f"; the closest pair are {pair}, with a correlation of {correlations[i, j]:.3f}"
    look = condition >= _COLLINEAR
    yield Finding(
        "collinearity", found, look, "Predictions are fine; coefficients cannot be read one by one." if look else ""
    )


def _drift(before: FloatArray, after: FloatArray, names: Sequence[str], what: str) -> Iterator[Finding]:
    if not len(names):
        return
    spread = before.std(axis=0)
    shift = np.abs(after.mean(axis=0) - before.mean(axis=0)) / np.where(spread > 0, spread, np.inf)
    most = int(shift.argmax())
    drifted = [names[i] for i in np.argsort(-shift) if shift[i] > _DRIFT]
    low, high = np.quantile(before, _USUAL, axis=0)
    unusual = bool(((shift > _DRIFT) & ((after.mean(axis=0) < low) | (after.mean(axis=0) > high))).any())
    found = f"the mean of {names[most]!r} moved by {shift[most]:.2g} standard deviations, the most of all"
    if drifted:
        found += f"; {len(drifted)} of {len(names)} moved by more than {_DRIFT:g}: {listed(drifted)}"
    meaning = "What was learned may no longer hold." if drifted else ""
    most_moved = unusual or 2 * len(drifted) > len(names)
    doubt = f"{len(drifted)} of {len(names)} {what} drifted" if most_moved else ""
    yield Finding(f"drift in the {what}", found, bool(drifted), meaning, unusual, doubt)


def _leaks(result: TableComparison) -> Iterator[Finding]:
    if result.leaks:  # the headline says it, so it is not loud
        found = f"almost identical to a cost: {listed(result.leaks)}"
        yield Finding(
            "costs among the features", found, True, "Do you know them when you decide?", doubt="a possible leak"
        )
