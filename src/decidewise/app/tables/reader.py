"""What reading wide and long tables has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from decidewise.app.tables.date_parts import in_words, with_date_parts
from decidewise.app.tables.oddities import oddities
from decidewise.app.tables.options import Names, TableOptions
from decidewise.app.tables.raw_values import InRowError, are_dates, as_dates, as_numbers, check_column
from decidewise.app.tables.samples import Raw, TableSamples
from decidewise.kit.checks import FloatArray, listed, nearest_names
from decidewise.kit.errors import InputError
from decidewise.problems import KnownCosts, Problem, ProblemFile
from decidewise.rows.columns import NamedColumns

ONE_LINE_PER_ITEM = "If the table has one line per item, name the keys of both: --rows and --items."
NO_COSTS = "no row of the table has costs; models learn from realised costs."


class TableReader(ABC):
    """What wide and long tables share."""

    def __init__(
        self,
        table: NamedColumns,
        options: TableOptions,
        file: ProblemFile | None,
        like: Sequence[str] | None,
        needed: Mapping[str, str] | None,
        as_listed: Sequence[str] | None = None,
    ) -> None:
        self.table = with_date_parts(table, [options.rows, options.items, options.time, options.groups])
        self.options, self.file, self.needed = options, file, needed
        self.given = table.names
        self.like = None if like is None else list(like)
        self.as_listed = as_listed
        self.notes: list[str] = []
        self.doubts: list[str] = []

    def read(self, with_costs: bool | None, in_order: bool, whole: bool = True) -> TableSamples:
        """Read all parts; if `in_order`, leave out samples without costs, and sort the rest by time.

        If it is not `whole`, the table is only a part, of which no sample need have costs.
        """
        lines, per_item, forecast = self.features()
        unknown = [name for name in self.options.categories if name not in lines] if self.needed is None else []
        if unknown:
            hint = nearest_names(unknown[0], list(lines))
            raise InputError(f"--categories: there is no feature {unknown[0]!r}{hint}")
        costs = self.read_costs() if with_costs or (with_costs is None and self.has_costs()) else None
        keys, title = self.keys()
        samples = TableSamples(lines, per_item, self.cost_names, keys, in_words(title), costs=costs, forecast=forecast)
        samples = replace(samples, problem=self.problem())
        if in_order:
            samples = replace(samples, times=self.times(), groups=self.groups())
        if costs is not None and in_order:
            samples = self.with_costs(samples, whole)
        if in_order:
            order = self.key_order(samples.keys)
            if samples.times is not None:
                order = order[np.argsort(samples.times[order], kind="stable")]
            samples = samples.take(order)
            self.doubts += oddities(samples) if self.needed is None else ()
        notes, doubts = (*self.notes, *self.doubts), tuple(self.doubts)
        return replace(samples, unit=self.options.unit, notes=notes, doubts=doubts)

    cost_names: Names

    @abstractmethod
    def features(self) -> tuple[dict[str, Raw], bool, Names]:
        """Return the columns of the features, whether they are those of items, and which of them are a forecast."""

    @abstractmethod
    def read_costs(self) -> FloatArray:
        """Return the costs (n, d), with NaN for gaps."""

    @abstractmethod
    def has_costs(self) -> bool:
        """Whether the table has the columns of the costs."""

    @abstractmethod
    def keys(self) -> tuple[Raw, str]:
        """Return the keys of the samples, and what a sample is called."""

    def key_order(self, keys: Raw) -> Raw:
        """Return the order of the samples before they are sorted by time: that of the table."""
        return np.arange(len(keys))

    @abstractmethod
    def by_row(self, name: str) -> Raw:
        """Return a column with one entry per sample."""

    @abstractmethod
    def matrix(self, names: Names, argument: str) -> FloatArray:
        """Return numbers (n, d) of each sample and item."""

    def raw(self, name: str) -> Raw:
        """Return a column as it is."""
        return np.asarray(self.table.read(name))

    def feature(self, name: str, feature: str | None = None) -> Raw:
        """Return a column of a feature as it is; raise if it is a mixture, while rows still have their numbers."""
        values = self.raw(name)
        if self.needed is None and (feature or name) not in self.options.categories:
            check_column(name, values)
        elif self.needed is not None and self.needed.get(feature or name) == "numbers":
            as_numbers(values, name)
        return values

    def select(self, wanted: Any, argument: str) -> list[str]:
        """Return the columns that names and patterns select; raise with the nearest names if there are none."""
        selected: list[str] = []
        for pattern in [wanted] if isinstance(wanted, str) else wanted:
            try:
                found = self.table.matching(pattern, argument=argument)
            except ValueError:
                raise InputError(
                    f"--{argument}: the table has no column {pattern!r}{nearest_names(pattern, self.table.names)}"
                ) from None
            selected += [name for name in found if name not in selected]
        return selected

    def one(self, name: str, argument: str) -> str:
        """Return the single column that a name or a pattern selects."""
        found = self.select(name, argument)
        if len(found) > 1:
            raise InputError(f"--{argument} must be one column; {name!r} selects {listed(found)}.")
        return found[0]

    def needed_columns(self, needed: Iterable[str]) -> list[str]:
        """Return the columns that a model needs; raise if one is missing."""
        for name in needed:
            if name not in self.table.names:
                raise InputError(
                    f"the table has no column {name!r}, which the model needs{nearest_names(name, self.table.names)}"
                )
        return list(needed)

    def others(self, used: Sequence[str]) -> list[str]:
        """Return the columns that are nothing else: the features by default."""
        options = self.options
        named = {argument: getattr(options, argument) for argument in ("rows", "items", "groups", "time")}
        found = {argument: self.one(name, argument) for argument, name in named.items() if name}
        taken = {*used, *found.values(), *self.select(options.known, "known")}
        taken |= {name for pattern in self._problem_columns() for name in self.select(pattern, "problem")}
        keys = {found[argument] for argument in ("rows", "time") if argument in found}
        dates = [name for name in keys if name in self.given and are_dates(self.raw(name))]
        unnamed = [name for name in self.table.names if not name.strip()]
        if unnamed:
            self.notes.append("A column without a name is left out of the features.")
        return [name for name in self.given if name in dates or (name not in taken and name not in unnamed)]

    def times(self) -> Raw | None:
        """Return the times of the samples, as numbers or dates, or None."""
        title = self.options.time or self._keys_in_time()
        if title is None:
            return None
        name = self.one(title, "time")
        values = self.by_row(name)
        if are_dates(values) or (values.dtype.kind == "O" and not has_text(values)):
            times: Raw = as_dates(values, name)
            gaps = np.isnat(times)
        else:
            if has_text(values):
                texts = [value for value in values.tolist() if isinstance(value, str)]
                shown = next((text for text in texts if not are_dates(np.array([text]))), texts[0])
                raise InputError(
                    f"--time: column {name!r} has text, such as {shown[:40]!r}; it must be numbers, or dates like "
                    "2026-01-31 or 2026-01-31 13:00:00."
                )
            times = as_numbers(values, name)
            gaps = np.isnan(times)
        if gaps.any():
            raise InRowError(f"--time: column {name!r} has no value in row \0. Drop the row.", int(gaps.argmax()) + 1)
        return times

    def _keys_in_time(self) -> str | None:
        """Return the column of the keys of training rows if they are dates, unless they are shuffled, or in groups."""
        options = self.options
        if options.shuffle or options.groups or self.needed is not None:
            return None
        if options.rows in self.table.names and are_dates(self.raw(options.rows)):
            self.notes.append(
                f"Rows are in the order of {options.rows!r}, which has dates: models are tested on what came later. "
                "--shuffle tests on random rows."
            )
            return options.rows
        dated = [name for name in self.given if are_dates(self.raw(name))]
        if dated:
            self.doubts.append(
                f"Rows are shuffled, although {dated[0]!r} has dates: --time {dated[0]!r} tests on what came later."
            )
        return None

    def groups(self) -> Raw | None:
        """Return the groups of the samples, or None."""
        if self.options.groups is None:
            return None
        values = self.by_row(self.one(self.options.groups, "groups"))
        return np.array([str(value) for value in values.tolist()])

    def problem(self) -> Problem | None:
        """Return the problem of the samples, with known costs if there are columns of them, or None."""
        if self.file is None:
            return None
        names = [name for pattern in self._problem_columns() for name in self.select(pattern, "problem")]
        problem = self.file.build({name: self.by_row(name) for name in names} if names else None)
        if problem.n_costs != len(self.cost_names):
            raise InputError(
                f"the table has {len(self.cost_names)} costs, {listed(self.cost_names)}, and the problem of "
                f"{self.file.path} has {problem.n_costs}. --costs must select one column for each. "
                f"{'' if self.options.items else ONE_LINE_PER_ITEM}".rstrip()
            )
        if not self.options.known:
            return problem
        if problem.has_known:
            raise InputError(f"--known: the problem of {self.file.path} has known costs already; name them once.")
        return KnownCosts(problem, self.finite(self.matrix(self.options.known, "known"), "known"))

    def _problem_columns(self) -> Names:
        return () if self.file is None else self.file.columns

    def with_costs(self, samples: TableSamples, whole: bool) -> TableSamples:
        """Leave out samples that have no costs at all; raise if some of a sample's costs are missing."""
        assert samples.costs is not None  # only samples with costs come here
        none = np.asarray(np.isnan(samples.costs).all(axis=1))
        costs = samples.costs[~none]
        if none.all() and whole:
            raise InputError(NO_COSTS)
        if none.any() and whole:
            self.notes.append(f"{int(none.sum()):,} of {len(none):,} rows have no costs yet, and are left out.")
        if none.any():
            samples = samples.take(~none)
        self.finite(costs, "costs", samples)
        return samples

    def finite(self, values: FloatArray, argument: str, samples: TableSamples | None = None) -> FloatArray:
        """Return the values (n, d); raise if one is missing."""
        bad = np.argwhere(np.isnan(values))
        if len(bad):
            row, item = bad[0]
            where = "row \0" if samples is None else f"{samples.title} {samples.keys[row]}"
            raise InRowError(
                f"--{argument}: {where} has no value for {self.cost_names[item]!r} ({len(bad):,} such gaps). Fill "
                "them, or clear all costs of these rows, which leaves them out.",
                *([int(row) + 1] if samples is None else []),
            )
        return values


def has_text(values: Raw) -> bool:
    """Whether a column has text in it."""
    return values.dtype.kind in "US" or (
        values.dtype.kind == "O" and any(isinstance(value, str) for value in values.tolist())
    )
