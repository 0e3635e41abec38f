"""Long tables: one line per sample and item."""

from __future__ import annotations

import numpy as np

from decidewise.app.tables.columns import TableColumns
from decidewise.app.tables.options import Names, Reading
from decidewise.app.tables.raw_values import Raw, as_numbers, as_texts
from decidewise.kit.checks import FloatArray, listed
from decidewise.kit.errors import InputError
from decidewise.problems import Problem
from decidewise.problems.time_order import check_items_in_time
from decidewise.rows.columns import NamedColumns
from decidewise.rows.keys import own_order
from decidewise.rows.long_tables import LongLayout


class LongTable(TableColumns):
    """One line per sample and item."""

    def __init__(self, table: NamedColumns, reading: Reading) -> None:
        super().__init__(table, reading)
        options = self.options
        if options.rows is None:
            raise InputError("--items makes the table long, which needs the column of the sample keys as well: --rows.")
        rows, items = self.one(options.rows, "rows"), self.one(str(options.items), "items")
        order = list(options.item_order if self.like is None else self.like) or None
        trained = self.like is not None
        self.layout = LongLayout.of(self.table, rows, items, order, reading.as_listed, trained=trained)
        self.order = np.argsort(self.layout.place)
        self.cost_names = self.layout.items
        self.wanted = options.costs[0] if options.costs else "cost"
        self.cost = None if trained else self.one(self.wanted, "costs")

    def features(self) -> tuple[dict[str, Raw], bool, Names]:
        """Return the columns of the features, whether they are those of items, and which of them are a forecast."""
        forecast = tuple(self.select(self.options.forecast, "forecast"))
        if len(forecast) > 1:
            raise InputError(f"--forecast must be one column of a long table; got {listed(forecast)}.")
        if self.reading.needed is None and any("=" in entry for entry in self.options.features):
            raise InputError("--features of a long table are columns; name=pattern is for wide tables.")
        names = self.of_features([self.cost] if self.cost else [])
        if self.cost in names:
            raise InputError(f"--features: {self.cost!r} is the cost, which is not known in advance. Leave it out.")
        names += [name for name in forecast if name not in names]
        return {name: self.feature(name)[self.order] for name in names}, True, forecast

    def read_costs(self) -> FloatArray:
        """Return the costs (n, d), with NaN for gaps."""
        return self.matrix((self.cost or self.wanted,), "costs")

    def has_costs(self) -> bool:
        """Whether the table has the columns of the costs."""
        return self.wanted in self.table.names

    def keys(self) -> tuple[Raw, str]:
        """Return the keys of the samples, and what a sample is called."""
        return self.layout.rows, self.layout.titles[0]

    def key_order(self, keys: Raw) -> Raw:
        """Return the order of the samples by their keys, so that it is not that of the lines."""
        order = own_order(keys)
        return np.argsort(keys.astype(str), kind="stable") if order is None else order

    def check_order(self, problem: Problem | None) -> None:
        """Note that the order of the costs is not known; raise if the problem needs it."""
        if self.layout.is_ordered:
            return
        title = self.layout.titles[1]
        if problem is not None:
            how = "Name them in the order of time: --item-order first,second,..."
            check_items_in_time(problem, title, self.cost_names, how)
        self.notes.append(
            f"The costs are in the order in which the table lists {title!r} first: {listed(self.cost_names)}. "
            "--item-order names another."
        )

    def by_row(self, name: str) -> Raw:
        """Return a column with one entry per sample."""
        values = self.raw(name)[self.order]
        texts = as_texts(values)[0] if values.dtype.kind == "O" else values
        same = np.unique(texts, return_inverse=True)[1].reshape(-1, len(self.cost_names))  # gaps are equal here
        differing = np.flatnonzero((same != same[:, :1]).any(axis=1))
        if len(differing):
            raise InputError(
                f"column {name!r} must have one value per {self.layout.titles[0]}; {self.layout.titles[0]} "
                f"{self.layout.rows[differing[0]]} has several."
            )
        return values[:: len(self.cost_names)]

    def matrix(self, names: Names, argument: str) -> FloatArray:
        """Return numbers (n, d) of each sample and item."""
        if len(names) > 1:
            raise InputError(f"--{argument} must be one column of a long table; got {listed(names)}.")
        name = self.one(names[0], argument)
        return as_numbers(self.raw(name), name)[self.order].reshape(-1, len(self.cost_names))
