"""Predicted costs on expressions of variables, named by patterns."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.sparse import csr_array

from decidewise.kit.checks import as_number, nearest_names


def as_expressions(factors: Mapping[str, float], names: list[str]) -> csr_array:
    """Return the map (n_costs, n) from variables to expressions: one row for each text that the stars stand for.

    Parameters
    ----------
    factors : mapping
        The factor of all variables that match a pattern with one star.
    names : list of str
        Those of the `n` variables. The first pattern gives the order of the costs.

    Examples
    --------
    >>> as_expressions({"sell_*": 1, "buy_*": -1}, ["buy_2", "buy_1", "sell_1", "sell_2"]).toarray()
    array([[ 0., -1.,  1.,  0.],
           [-1.,  0.,  0.,  1.]])
    """
    places = [_matches(pattern, names) for pattern in factors]
    if not places:
        raise ValueError("costs is empty: at least one variable must have a predicted cost.")
    rows = {text: row for row, text in enumerate(places[0])}
    for columns in places[1:]:
        if lonely := sorted(columns.keys() ^ rows.keys()):
            raise ValueError(
                f"the stars of all keys of costs must stand for the same texts; {lonely[0]!r} is not there for each of "
                f"{', '.join(map(repr, factors))}."
            )
    numbers = [as_number(factor, name=f"the factor of {pattern!r} in costs") for pattern, factor in factors.items()]
    entries = [(f, rows[text], j) for f, columns in zip(numbers, places, strict=True) for text, j in columns.items()]
    values, at_rows, at_columns = map(np.array, zip(*entries, strict=True))
    return csr_array((values, (at_rows, at_columns)), shape=(len(rows), len(names)))


def _matches(pattern: str, names: list[str]) -> dict[str, int]:
    """Return the places of the names that match, by the text that the star stands for."""
    before, star, after = str(pattern).partition("*")
    if not star or "*" in after:
        raise ValueError(f"a key of costs must have one star, such as 'sell_*'; got {pattern!r}.")
    ends = len(before), len(after)
    found = {
        name[ends[0] : len(name) - ends[1]]: place
        for place, name in enumerate(names)
        if len(name) >= sum(ends) and name.startswith(before) and name.endswith(after)
    }
    if not found:
        raise ValueError(f"no variable matches {pattern!r} of costs{nearest_names(pattern, names)}")
    return found
