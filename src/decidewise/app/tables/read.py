"""Read samples from a table, wide or long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from decidewise.app.tables.columns import Reading, in_words
from decidewise.app.tables.layouts import ONE_LINE_PER_ITEM, LongTable, WideTable
from decidewise.app.tables.oddities import oddities
from decidewise.app.tables.raw_values import InRowError, Raw, are_dates, as_dates, as_numbers
from decidewise.app.tables.samples import TableSamples
from decidewise.kit.checks import FloatArray, listed, nearest_names
from decidewise.kit.errors import InputError
from decidewise.problems import KnownCosts, Problem
from decidewise.rows.columns import NamedColumns

NO_COSTS = "no row of the table has costs; models learn from realised costs."


def read_samples(table: NamedColumns, reading: Reading) -> TableSamples:
    """Read samples from a table."""
    options = reading.options
    found = LongTable(table, reading) if options.items else WideTable(table, reading)
    lines, per_item, forecast = found.features()
    unknown = [name for name in options.categories if name not in lines] if reading.needed is None else []
    if unknown:
        raise InputError(f"--categories: there is no feature {unknown[0]!r}{nearest_names(unknown[0], list(lines))}")
    costs = found.read_costs() if reading.costs or (reading.costs is None and found.has_costs()) else None
    keys, title = found.keys()
    samples = TableSamples(
        lines, per_item, found.cost_names, keys, in_words(title), costs, forecast=forecast, unit=options.unit
    )
    samples = replace(samples, problem=_problem(found))
    found.check_order(samples.problem)
    if reading.in_order:
        samples = replace(samples, times=_times(found), groups=_groups(found))
        if costs is not None:
            samples = _with_costs(found, samples)
        order = found.key_order(samples.keys)
        if samples.times is not None:
            order = order[np.argsort(samples.times[order], kind="stable")]
        samples = samples.take(order)
        if reading.needed is None:
            found.doubts += oddities(samples)
    return replace(samples, notes=(*found.notes, *found.doubts), doubts=tuple(found.doubts))


def columns_of(source: Any, text: Mapping[str, Any]) -> NamedColumns:
    """Return the columns of a source, a path, frame or mapping; `text` says how text files are written."""
    from decidewise.rows.file_blocks import read_files  # noqa: PLC0415

    try:
        return NamedColumns.of(read_files(source, **text) if isinstance(source, str | Path) else source)
    except (ValueError, TypeError) as reason:
        raise InputError(str(reason)) from reason


def _times(found: WideTable | LongTable) -> Raw | None:
    """Return the times of the samples, as numbers or dates, or None."""
    title = found.options.time or _keys_in_time(found)
    if title is None:
        return None
    name = found.one(title, "time")
    values = found.by_row(name)
    texts = [value for value in values.tolist() if isinstance(value, str)] if values.dtype.kind in "OU" else []
    times: Raw
    if are_dates(values) or (values.dtype.kind == "O" and not texts):
        times = as_dates(values, name)
    elif texts:
        text = next((text for text in texts if not are_dates(np.array([text]))), texts[0])
        raise InputError(
            f"--time: column {name!r} has text, such as {text[:40]!r}; it must be numbers, or dates like "
            "2026-01-31 or 2026-01-31 13:00:00."
        )
    else:
        times = as_numbers(values, name)
    gaps = np.isnat(times) if times.dtype.kind == "M" else np.isnan(times)
    if gaps.any():
        raise InRowError(f"--time: column {name!r} has no value in row \0. Drop the row.", int(gaps.argmax()) + 1)
    return times


def _keys_in_time(found: WideTable | LongTable) -> str | None:
    """Return the column of the keys of training rows if they are dates, unless they are shuffled, or in groups."""
    options = found.options
    if options.shuffle or options.groups or found.reading.needed is not None:
        return None
    if options.rows in found.table.names and are_dates(found.raw(options.rows)):
        found.notes.append(
            f"Rows are in the order of {options.rows!r}, which has dates: models are tested on what came later. "
            "--shuffle tests on random rows."
        )
        return options.rows
    dated = [name for name in found.given if are_dates(found.raw(name))]
    if dated:
        found.doubts.append(
            f"Rows are shuffled, although {dated[0]!r} has dates: --time {dated[0]!r} tests on what came later."
        )
    return None


def _groups(found: WideTable | LongTable) -> Raw | None:
    """Return the groups of the samples, or None."""
    if found.options.groups is None:
        return None
    values = found.by_row(found.one(found.options.groups, "groups"))
    return np.array([str(value) for value in values.tolist()])


def _problem(found: WideTable | LongTable) -> Problem | None:
    """Return the problem of the samples, with known costs if there are columns of them, or None."""
    file, known = found.reading.file, found.options.known
    if file is None:
        return None
    names = found.of_problem()
    problem = file.build({name: found.by_row(name) for name in names} if names else None)
    if problem.n_costs != len(found.cost_names):
        raise InputError(
            f"the table has {len(found.cost_names)} costs, {listed(found.cost_names)}, and the problem of "
            f"{file.path} has {problem.n_costs}. --costs must select one column for each. "
            f"{'' if found.options.items else ONE_LINE_PER_ITEM}".rstrip()
        )
    if known and problem.has_known:
        raise InputError(f"--known: the problem of {file.path} has known costs already; name them once.")
    if known:
        problem = KnownCosts(problem, _finite(found.matrix(known, "known"), "known", found.cost_names))
    return problem


def _with_costs(found: WideTable | LongTable, samples: TableSamples) -> TableSamples:
    """Leave out samples that have no costs at all; raise if some of a sample's costs are missing."""
    assert samples.costs is not None  # only samples with costs come here
    none = np.asarray(np.isnan(samples.costs).all(axis=1))
    if none.all() and found.reading.whole:
        raise InputError(NO_COSTS)
    if none.any() and found.reading.whole:
        found.notes.append(f"{int(none.sum()):,} of {len(none):,} rows have no costs yet, and are left out.")
    costs = samples.costs[~none]
    if none.any():
        samples = samples.take(~none)
    _finite(costs, "costs", samples.cost_names, samples)
    return samples


def _finite(
    values: FloatArray, argument: str, cost_names: tuple[str, ...], samples: TableSamples | None = None
) -> FloatArray:
    """Return the values (n, d); raise if one is missing."""
    bad = np.argwhere(np.isnan(values))
    if len(bad):
        row, item = bad[0]
        where = "row \0" if samples is None else f"{samples.title} {samples.keys[row]}"
        raise InRowError(
            f"--{argument}: {where} has no value for {cost_names[item]!r} ({len(bad):,} such gaps). Fill "
            "them, or clear all costs of these rows, which leaves them out.",
            *([int(row) + 1] if samples is None else []),
        )
    return values
