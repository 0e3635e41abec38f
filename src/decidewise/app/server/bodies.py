"""Bodies of requests: rows of features, and what else a problem needs of each row, as JSON or Arrow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from decidewise.app.server.arrow import read_stream
from decidewise.app.server.limits import RefusedError, too_many_rows

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"

_Entry = float | int | str | bool | None


class _RowsOfFeatures(msgspec.Struct, forbid_unknown_fields=True):
    X: list[list[float]] | None = None
    rows: list[dict[str, _Entry]] | None = None


class _ItemsOfFeatures(msgspec.Struct, forbid_unknown_fields=True):
    X: list[list[list[float]]] | None = None
    rows: list[dict[str, _Entry]] | None = None


@dataclass(frozen=True)
class Body:
    """What a request holds.

    Attributes
    ----------
    n_rows : int
    X : ndarray of shape (n, p) or (n, d, q), or None
        Features without names.
    columns : dict of str to arrays of n entries
        Everything with a name.
    """

    n_rows: int
    X: np.ndarray | None
    columns: dict[str, Any]


def read_body(content: bytes, kind: str, *, per_item: bool, max_rows: int) -> Body:
    """Return what a body holds; raise a `RefusedError` if it is not valid."""
    if kind == ARROW:
        try:
            table = read_stream(content, max_rows)
        except ValueError as reason:
            raise RefusedError(400, f"the body is not a valid Arrow stream: {reason}.") from reason
        columns = {name: table[name].combine_chunks() for name in table.column_names}
        body = Body(
            table.num_rows, None, {name: column.to_numpy(zero_copy_only=False) for name, column in columns.items()}
        )
    elif kind == JSON:
        body = _read_json(content, _ItemsOfFeatures if per_item else _RowsOfFeatures)
    else:
        raise RefusedError(415, f"the body must be {JSON} or {ARROW}; its content type is {kind[:80] or 'missing'!r}.")
    if body.n_rows == 0:
        raise RefusedError(422, "the body has no rows.")
    if body.n_rows > max_rows:
        raise too_many_rows(max_rows)
    return body


def _read_json(content: bytes, form: type) -> Body:
    try:
        given: Any = msgspec.json.decode(content, type=form)
    except msgspec.ValidationError as reason:
        raise RefusedError(422, f"the body does not fit its schema: {str(reason)[:300]}.") from reason
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as reason:
        raise RefusedError(400, f"the body is not valid JSON: {str(reason)[:300]}.") from reason
    if given.X is None and given.rows is None:
        raise RefusedError(422, 'the body needs "X", a list of rows of numbers, or "rows", a list of objects by name.')
    X, rows = given.X, given.rows
    if X is not None and rows is not None and len(X) != len(rows):
        raise RefusedError(422, f'"X" has {len(X)} rows, and "rows" has {len(rows)}; both are about the same rows.')
    n_rows = len(X if X is not None else rows)
    return Body(n_rows, None if X is None else _as_array(X), {} if rows is None else _as_columns(rows))


def _as_array(X: list[Any]) -> np.ndarray:
    try:
        return np.array(X, dtype=np.float64)
    except ValueError:
        raise RefusedError(422, 'the rows of "X" must all have the same shape.') from None


def _as_columns(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the columns that all rows have; whoever needs another one says that it is not there."""
    if not rows:
        return {}
    shared = set(rows[0]).intersection(*rows[1:])
    return {name: _column([row[name] for row in rows]) for name in rows[0] if name in shared}


def _column(values: list[Any]) -> np.ndarray:
    """Return a column as numbers if all entries are, otherwise as they are."""
    types = {type(value) for value in values}
    if types <= {float, int, bool}:
        try:
            return np.array(values, dtype=np.int64 if types == {int} else np.float64)
        except OverflowError:
            raise RefusedError(422, "an integer is too large.") from None
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
