"""Checks of arguments: return clean arrays and numbers, or raise an error that says what came and what to do.

Every public function uses these checks, so that messages read the same everywhere. No value is dropped, clipped or
filled here, and the caller's array is never written to.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dasum

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
IndexArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]


def as_array(values: Any, *, name: str) -> FloatArray:
    """Return `values` as an array of float64, in their own shape.

    Booleans, Fractions and Decimals count as numbers, also in frames and in tensors of other libraries. Strings of
    digits, dates, durations (their unit is unknown) and masked entries do not.

    >>> as_array([[1, True], [0.5, 2]], name="costs")
    array([[1. , 1. ],
           [0.5, 2. ]])
    """
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values  # a shortcut, because every training step calls this
    refuse_masked(values, name=name)
    try:
        array = np.asarray(values)
        if why := no_numbers(array, values):
            raise TypeError(why)
        if values is None:
            raise TypeError("nothing was passed")
        with np.errstate(over="ignore"):  # a long double beyond float64 becomes infinite, which later checks refuse
            return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError, RuntimeError) as reason:
        raise ValueError(
            f"{name} must be an array of real numbers; {type(values).__name__} is not ({str(reason).rstrip('.')})."
        ) from reason


def refuse_masked(values: Any, *, name: str) -> None:
    """Raise if entries are masked: NumPy would ignore the mask and use the values behind it."""
    parts = values if isinstance(values, list | tuple) else [values]
    if any(isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part) for part in parts):
        raise ValueError(f"{name} has masked entries, which have no value. Fill them, or drop their rows.")


def dtypes_of(values: Any) -> list[Any]:
    """Return the types of the columns of a frame, or that of an array or a series; None for what has no type."""
    return list(getattr(values, "dtypes", ())) if hasattr(values, "columns") else [getattr(values, "dtype", None)]


def no_numbers(array: npt.NDArray[Any], given: Any) -> str | None:
    """Return why an array, made of what was given, does not hold real numbers; None if it does."""
    if any(getattr(dtype, "name", "") == "category" for dtype in dtypes_of(given)):
        return "categories are not numbers, even if their names are; convert them first"
    if array.dtype.kind == "V":
        return "structures are not numbers; convert them first"
    if array.dtype.kind == "c":
        return "Complex data not supported"  # the words that scikit-learn's own checks expect
    if array.dtype.kind in "SUMm" or (array.dtype.kind == "O" and any(map(_is_no_number, array.flat))):
        return "strings, dates and durations are not numbers; convert them first"
    return None


def as_matrix(
    values: Any,
    *,
    name: str = "costs",
    n_columns: int | None = None,
    owner: str = "the problem",
    finite: bool = True,
    min_rows: int = 1,
) -> FloatArray:
    """Return `values` as a finite, C-contiguous float64 matrix with at least one row, or `min_rows`.

    Parameters
    ----------
    values : array-like of shape (n, d)
        Anything NumPy understands: arrays, lists, pandas and polars frames. float32 is widened.
    name : str
        The name of the argument, with which every message starts.
    n_columns : int, optional
        The number of columns that `owner`, named in messages, needs.
    finite : bool
        Whether to check that all entries are finite; False if the caller checks that itself.
    """
    matrix = as_array(values, name=name)
    if matrix.ndim != 2:
        raise ValueError(
            f"{name} must be two-dimensional, one row per sample and one column per cost; got {name}.shape="
            f"{matrix.shape}. Pass {name}.reshape(1, -1) for one sample or {name}.reshape(-1, 1) for one cost."
        )
    if matrix.shape[1] == 0 or len(matrix) < min_rows:
        raise ValueError(f"{name} is empty: {name}.shape={matrix.shape}. Pass at least one row and one column.")
    if n_columns is not None and matrix.shape[1] != n_columns:
        raise ValueError(
            f"{owner} needs {n_columns} columns of {name}, one for each decision variable; got {name}.shape="
            f"{matrix.shape}."
        )
    matrix = np.ascontiguousarray(matrix)
    if finite and not all_finite(matrix):
        check_finite(matrix, name=name)
    return matrix


def is_per_item(X: Any) -> bool:
    """Whether features have three dimensions, (n, d, q): a row of features for each item of each sample.

    >>> is_per_item(np.zeros((5, 3, 2))), is_per_item([[[1.0], [2.0]]]), is_per_item(np.zeros((5, 3)))
    (True, True, False)
    """
    if isinstance(X, list | tuple):
        return len(X) > 0 and not isinstance(X[0], str) and n_dimensions(X[0]) == 2
    return n_dimensions(X) == 3


def n_dimensions(values: Any) -> int:
    """Return the number of dimensions of an array, a frame or a nested list, judged by its first entries."""
    n_lists = 0
    while isinstance(values, list | tuple) and n_lists <= 64:  # as deep as NumPy goes; a list may hold itself
        n_lists, values = n_lists + 1, values[0] if values else None
    return n_lists + len(getattr(values, "shape", ()))


def as_features(X: Any, *, n_items: int | None = None, finite: bool = True) -> FloatArray:
    """Return features of shape (n, p), or (n, d, q) with a row for each item, as a C-contiguous float64 array.

    The number of costs, `n_items`, must be that of the items.
    """
    if not is_per_item(X):
        return as_matrix(X, name="X", finite=finite)
    features = np.ascontiguousarray(as_array(X, name="X"))
    if features.size == 0:
        raise ValueError(
            f"X is empty: X.shape={features.shape}. Pass at least one row, one item and one feature (n, d, q)."
        )
    if n_items is not None:
        check_items(features, n_items)
    if finite:
        check_finite(features, name="X")
    return features


def check_items(X: Any, n_costs: int) -> None:
    """Raise if features are per item, (n, d, q), and d is not the number of costs."""
    if is_per_item(X) and np.shape(X)[1] != n_costs:
        raise ValueError(
            f"X has features of {np.shape(X)[1]} items and there are {n_costs} costs: X.shape={np.shape(X)}. Features "
            "per item have the shape (n, d, q), with one item for each cost, in the same order."
        )


def as_vector(values: Any, *, name: str, length: int | None = None) -> FloatArray:
    """Return `values` as a finite float64 vector; raise unless it has the given length, if any."""
    vector = as_array(values, name=name)
    if vector.ndim != 1 or (length is not None and len(vector) != length):
        expected = "any length" if length is None else f"length {length}"
        raise ValueError(f"{name} must be a vector of {expected}; got {name}.shape={vector.shape}.")
    check_finite(vector, name=name)
    return np.ascontiguousarray(vector)


def as_sample_weight(sample_weight: Any, n_rows: int) -> FloatArray:
    """Return one finite, non-negative weight per row, not all zero; all are one if `sample_weight` is None."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = as_array(sample_weight, name="sample_weight")
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    weights = as_vector(weights, name="sample_weight", length=n_rows)
    negative = np.flatnonzero(weights < 0)
    if len(negative):
        raise ValueError(
            f"sample_weight must not be negative; row {negative[0]} has {weights[negative[0]]:g}. "
            "Drop the rows that should not count, or give them weight 0."
        )
    if not weights.any():
        raise ValueError(
            "sample_weight is zero in every row, so there is nothing to fit. Give at least one row a positive weight."
        )
    return weights


def as_integer(value: Any, *, name: str, minimum: int = 1, maximum: int | None = None) -> int:
    """Return `value` as an int within the bounds; booleans and floats, even whole ones, are refused."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise ValueError(f"{name} must be a Python or NumPy integer; got {shown(value)}.")
    integer = int(value)
    if integer < minimum:
        raise ValueError(f"{name} must be at least {minimum}; got {name}={integer}.")
    if maximum is not None and integer > maximum:
        raise ValueError(f"{name} must be at most {maximum}; got {name}={integer}.")
    return integer


def as_number(
    value: Any,
    *,
    name: str,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
) -> float:
    """Return `value` as a finite float within the given bounds.

    >>> as_number(0.95, name="level", above=0, below=1)
    0.95
    >>> as_number("95%", name="level", above=0, below=1)
    Traceback (most recent call last):
    ValueError: level must be a number above 0 and below 1; got '95%' of type str.
    """
    bounds = {"at least": at_least, "above": above, "at most": at_most, "below": below}
    wanted = " and ".join(f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None)
    expected = f"{name} must be a {'number ' + wanted if wanted else 'finite number'}"
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise ValueError(f"{expected}; got {shown(value)}.")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{expected}; got an integer beyond the range of float64.") from None
    inside = (
        (at_least is None or number >= at_least)
        and (above is None or number > above)
        and (at_most is None or number <= at_most)
        and (below is None or number < below)
    )
    if not (np.isfinite(number) and inside):
        raise ValueError(f"{expected}; got {name}={number!r}.")
    return number


def as_positive(value: Any, *, name: str) -> float:
    """Return `value` as a positive, finite float."""
    return as_number(value, name=name, above=0)


def as_flag(value: Any, *, name: str) -> bool:
    """Return `value` as a bool; other types are refused, because "no" and 2 would count as true."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {shown(value)}.")
    return bool(value)


def as_choice(value: Any, *, name: str, choices: Sequence[Any]) -> Any:
    """Return `value`; raise unless it is one of the choices.

    >>> as_choice("max", name="sense", choices=("min", "max"))
    'max'
    """
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {shown(value)}.")
    return value


def shown(value: Any) -> str:
    """Return the text that shows a refused value, shortened if long, with its type."""
    shown = repr(value)
    return f"{shown if len(shown) <= 80 else shown[:77] + '...'} of type {type(value).__name__}"


def nearest_names(name: str, names: Collection[str]) -> str:
    """Return the end of a message on a name that is not among those known, which says which come near to it.

    >>> "no column 'tol_1'" + nearest_names("tol_1", ["toll_1", "toll_2", "time"])
    "no column 'tol_1'; the nearest of 3 names are 'toll_1', 'toll_2'."
    """
    if not names:
        return "; there are no names at all."
    near = get_close_matches(name.strip("*?"), names, n=3, cutoff=0.5) or list(names)[:3]
    which = "is" if len(near) == 1 else "are"
    return f"; the nearest of {len(names)} names {which} {', '.join(map(repr, near))}."


def matching_names(pattern: str, names: Sequence[str]) -> list[int]:
    """Return the places of the names that match a pattern: `*` stands for anything, `?` for one character.

    >>> matching_names("x[*]", ["x[0]", "y", "x[1]"])  # brackets, which many tools write, stand for themselves
    [0, 2]
    """
    pattern = pattern.replace("[", "[[]")
    return [place for place, name in enumerate(names) if fnmatchcase(name, pattern)]


def as_rng(rng: Any) -> np.random.Generator:
    """Return `rng`; raise unless it is a generator, because a seed would give the same numbers in every call."""
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator, such as numpy.random.default_rng(0); got {shown(rng)}.")
    return rng


def column_names(values: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a frame or an Arrow table; None if there are none, or not all are text."""
    names = getattr(values, "column_names", getattr(values, "columns", None))
    if names is None or callable(names) or not all(isinstance(name, str) for name in names):
        return None
    return tuple(names)


def check_same_names(names: Sequence[str] | None, others: Sequence[str] | None, *, of: str, expected: str) -> None:
    """Raise if both have names, and these differ; say which are missing or new, or where the order differs.

    For the message, `of` is what has the other names, and `expected` what has those expected.
    """
    if names is None or others is None or tuple(names) == tuple(others):
        return
    missing, new = without(names, others), without(others, names)
    if missing or new:
        found = "; ".join(
            f"{what} {listed(some)}" for what, some in (("missing:", missing), ("not known:", new)) if some
        )
    elif len(names) != len(others):
        found = "some occur twice"
    else:
        place = next(j for j, (name, other) in enumerate(zip(names, others, strict=True)) if name != other)
        found = f"column {place} is {others[place]!r}, and should be {names[place]!r}"
    raise ValueError(
        f"{of} must have the same columns in the same order as {expected}; {found}. Select the columns by name, in "
        "that order."
    )


def without(names: Iterable[str], others: Iterable[str]) -> list[str]:
    """Return the names that are not among others, in their order; quick also for a hundred thousand."""
    among = set(others)
    return [name for name in names if name not in among]


def listed(names: Sequence[Any], most: int = 4) -> str:
    """Return names for a message: `'a', 'b' and 3 others`."""
    shown = ", ".join(map(repr, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} others"


def check_same_rows(**arrays: Any) -> None:
    """Raise unless all named arrays have the same number of rows."""
    lengths = {name: n_rows(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} has {length} rows" for name, length in lengths.items())
        raise ValueError(f"{found}; row i of each must belong to the same sample.")


def all_finite(values: FloatArray) -> bool:
    """Whether no entry is NaN or infinite."""
    # The sum is finite only if all entries are, and takes a fraction of the time of checking each. BLAS takes a quarter
    # of a microsecond for the costs of a training step; for many more entries it would start threads.
    if 0 < values.size <= 8192:
        total = dasum(values.ravel())
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            total = values.sum()
    return math.isfinite(total) or bool(np.isfinite(values).all())  # a sum of finite entries may overflow


def check_finite(values: FloatArray, *, name: str, first_row: int = 0) -> None:
    """Raise if there is a NaN or infinity; name the row (counted from `first_row`) and column of the first."""
    if all_finite(values):
        return
    bad = np.argwhere(~np.isfinite(values))
    row, *others = bad[0]
    places = {2: ("column",), 3: ("item", "feature")}.get(values.ndim, ())
    where = ", ".join([f"row {first_row + row}", *map("{} {}".format, places, others)])
    found = values[tuple(bad[0])]
    what = "NaN" if np.isnan(found) else f"{found:+}"
    raise ValueError(
        f"{name} must be finite; {where} has {what} ({len(bad)} such entries in all). Fill or drop those rows first."
    )


def check_range(numbers: FloatArray, what: str, too_large: str) -> None:
    """Raise if numbers (..., n, d) that were computed from finite ones are not finite; name the first such row."""
    if not all_finite(numbers):
        row = np.argwhere(~np.isfinite(numbers))[0][-2]
        raise ValueError(
            f"row {row}: {what} left the range of float64, because {too_large} are too large. Divide both by the same "
            "number; no decision changes."
        )


def n_rows(array: Any) -> int:
    """Return the number of rows of an array, a frame or a list."""
    if isinstance(array, list | tuple):
        return len(array)
    if not hasattr(array, "shape"):
        array = np.asarray(array)
    return int(array.shape[0]) if array.shape else 0


def is_number(text: str) -> bool:
    """Return whether a text is a number, as Python reads one."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_no_number(entry: Any) -> bool:
    # float() would convert these; it refuses a datetime or a dictionary itself.
    return isinstance(entry, str | bytes | np.datetime64 | np.timedelta64)
