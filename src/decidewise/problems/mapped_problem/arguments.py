"""What a user may pass to a linear or a conic program, turned into sparse rows, bounds and maps, or into a sentence.

Sides, bounds and known costs may differ by row of costs: they then have one more axis in front.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import LinearConstraint
from scipy.sparse import csr_array, eye_array, issparse, vstack

from decidewise.kit.checks import (
    BoolArray,
    FloatArray,
    IndexArray,
    IntArray,
    all_finite,
    as_array,
    as_matrix,
    as_vector,
    check_finite,
    check_same_rows,
    matching_names,
    nearest_names,
)
from decidewise.problems.mapped_problem.expressions import as_expressions

#: Asymmetries, and eigenvalues below zero, up to this fraction of the largest entry are rounding.
ROUNDING = 1e-10
#: Which variables carry predicted costs: indices, names, one pattern of names, factors by pattern, or a map.
Costs = Any


def as_names(names: Iterable[str], n: int) -> list[str]:
    """Return the names of `n` variables, all of them different."""
    names = list(names)
    if len(names) != n or not all(isinstance(name, str) for name in names):
        raise ValueError(f"names must be {n} strings, one for each variable; got {len(names)} names.")
    if len(set(names)) < n:
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"names must be different; {twice!r} is there more than once.")
    return names


def count_variables(A_ub: Any, A_eq: Any, lower: Any, upper: Any, known: Any, names: Any) -> int:
    """Return the number of variables, from the first argument that tells it."""
    for matrix in (A_ub, A_eq):
        if matrix is not None and len(np.shape(matrix)) == 2:
            return int(np.shape(matrix)[1])
    for vector in (lower, upper, known, names):
        if vector is not None and np.ndim(vector) in (1, 2):
            return int(np.shape(vector)[-1])
    raise ValueError(
        "a linear program needs to know how many variables it has: pass A_ub or A_eq with one column for each, or "
        "bounds with one entry for each."
    )


def as_rows(A: Any, b: Any, n: int, kind: str, *, by_row: bool = False) -> tuple[csr_array, FloatArray]:
    """Return constraints as sparse rows (m, n) and their sides, (m,) or by row (r, m)."""
    if A is None and b is None:
        return csr_array((0, n)), np.empty(0)
    if A is None or b is None:
        raise ValueError(f"A_{kind} and b_{kind} belong together; got only {'b' if A is None else 'A'}_{kind}.")
    A = as_sparse(A, name=f"A_{kind}")
    if A.shape[1] != n:
        raise ValueError(f"A_{kind} must have one column for each of the {n} variables; got A_{kind}.shape={A.shape}.")
    b = as_array(b, name=f"b_{kind}")
    if b.ndim not in (1, 1 + by_row) or b.shape[-1] != A.shape[0] or len(b) == 0 < A.shape[0]:
        raise ValueError(
            f"b_{kind} must have one entry for each of the {A.shape[0]} rows of A_{kind}"
            f"{', or one such row per sample' if by_row else ''}; got {b.shape}."
        )
    if b.ndim == 2:
        if kind == "ub":  # a row without a bound for this sample
            check_finite(np.where(np.isposinf(b), 0.0, b), name="b_ub")
        else:
            check_finite(b, name="b_eq")
        return A, np.ascontiguousarray(b)
    if kind == "ub" and np.isposinf(b).any():  # rows without a bound, as some tools write them
        A, b = csr_array(A[np.isfinite(b) | (b < 0)]), b[np.isfinite(b) | (b < 0)]
    return A, as_vector(b, name=f"b_{kind}")


def as_sparse(A: Any, *, name: str) -> csr_array:
    """Return a finite sparse matrix."""
    matrix = csr_array(A, dtype=float) if issparse(A) else csr_array(np.atleast_2d(as_array(A, name=name)))
    if not all_finite(matrix.data):
        entry = int(np.flatnonzero(~np.isfinite(matrix.data))[0])
        row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
        raise ValueError(f"{name} must be finite; row {row}, column {matrix.indices[entry]} has {matrix.data[entry]}.")
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def as_symmetric(Q: Any, *, name: str, form: str) -> csr_array:
    """Return a symmetric sparse matrix, of which `form` is the quadratic form, such as "wᵀQw"."""
    Q = as_sparse(Q, name=name)
    if Q.shape[0] != Q.shape[1]:
        raise ValueError(f"{name} must be square, with one row for each variable; got a shape of {Q.shape}.")
    asymmetry = abs(Q - Q.T)
    if asymmetry.max() > ROUNDING * abs(Q).max():
        i, j = (int(k) for k in np.unravel_index(asymmetry.toarray().argmax(), Q.shape))
        raise ValueError(
            f"{name} must be symmetric; entry ({i}, {j}) is {Q[i, j]:g} and entry ({j}, {i}) {Q[j, i]:g}. "
            f"Pass ({form[2]} + {form[2]}.T) / 2, which has the same {form}."
        )
    return csr_array(Q + Q.T) / 2


def as_bounds(
    lower: Any, upper: Any, n: int, names: list[str], *, by_row: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Return one lower and one upper bound for each variable, (n,) or by row (r, n)."""
    bounds = []
    for name, bound in (("lower", lower), ("upper", upper)):
        values = as_array(bound, name=name)
        if values.ndim > 1 + by_row or (values.ndim > 0 and (values.shape[-1] != n or len(values) == 0)):
            raise ValueError(
                f"{name} must be a number or a vector of length {n}"
                f"{', or have one such row per sample' if by_row else ''}; got {name}.shape={values.shape}."
            )
        if np.isnan(values).any():
            row = f" in row {np.argwhere(np.isnan(values))[0][0]}" if values.ndim == 2 else ""
            raise ValueError(f"{name} has NaN{row}. Write infinity, with its sign, where a variable has no bound.")
        bounds.append(np.ascontiguousarray(np.broadcast_to(values, values.shape if values.ndim else n)))
    count_rows(lower=bounds[0], upper=bounds[1])
    least, most = np.broadcast_arrays(*bounds)
    crossed = np.argwhere((least > most) | np.isposinf(least) | np.isneginf(most))
    if len(crossed):
        place = tuple(crossed[0])
        raise ValueError(
            f"the region {f'of row {place[0]} ' if len(place) == 2 else ''}is empty: variable {names[place[-1]]!r} has "
            f"lower={least[place]:g} and upper={most[place]:g}."
        )
    return bounds[0], bounds[1]


def as_known(known: Any, n: int) -> FloatArray:
    """Return the known cost of each variable, (n,) or by row (r, n)."""
    if known is None:
        return np.zeros(n)
    known = as_array(known, name="known")
    return as_matrix(known, name="known", n_columns=n) if known.ndim == 2 else as_vector(known, name="known", length=n)


def count_rows(**arrays: FloatArray) -> int | None:
    """Return how many rows the arrays have that differ by row, which all have as many; None if there are none."""
    by_row = {name: values for name, values in arrays.items() if values.ndim == 2}
    check_same_rows(**by_row)
    return len(next(iter(by_row.values()))) if by_row else None


def as_columns(values: Any, base: FloatArray, names: list[str], *, name: str, owner: str = "variable") -> Any:
    """Return values by name as a whole table (r, n), filled up from `base`, (n,) or (r, n); anything else as it is.

    By name means a dictionary, or a frame, of one number per row, or one for all rows.
    """
    if values is None or not hasattr(values, "items"):
        return base if values is None else values
    columns = {key: as_array(column, name=f"{name}[{key!r}]") for key, column in values.items()}
    check_names(columns, names, owner)
    tall = {f"{name}[{key!r}]": column for key, column in columns.items() if column.ndim > 0}
    if base.ndim == 2:
        tall[name] = base
    for key, column in columns.items():
        if column.ndim > 1:
            raise ValueError(f"{name}[{key!r}] must have one number per row, or be one number; got {column.shape}.")
    check_same_rows(**tall)
    n_rows = [len(column) for column in tall.values()][:1]  # none if all are one number for all rows
    table = np.array(np.broadcast_to(base, (*n_rows, base.shape[-1])))
    place = {key: j for j, key in enumerate(names)}
    for key, column in columns.items():
        table[..., place[key]] = column
    return table


@dataclass(frozen=True)
class SideNames:
    """The names of constraints: `A_ub` has those bounded from above, then minus those from below, and `A_eq` the rest.

    A constraint with two sides is both above and below.
    """

    above: list[str] = field(default_factory=list)
    below: list[str] = field(default_factory=list)
    equal: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self.above, *self.below, *self.equal]))

    def apply(self, sides: Any, b_ub: FloatArray, b_eq: FloatArray) -> tuple[Any, Any]:
        """Return `b_ub` and `b_eq` with some sides by name, as `as_columns` takes them."""
        if sides is None:
            return b_ub, b_eq
        sides = {name: as_array(values, name=f"sides[{name!r}]") for name, values in sides.items()}
        check_names(sides, list(self), "constraint")
        for name in sides:
            if name in self.above and name in self.below:
                raise ValueError(f"the constraint {name!r} has two sides, so its name does not say which. Pass b_ub.")
        unequal = {
            name: -side if name in self.below else side for name, side in sides.items() if name not in self.equal
        }
        equal = {name: side for name, side in sides.items() if name in self.equal}
        return (
            as_columns(unequal or None, b_ub, [*self.above, *self.below], name="sides", owner="constraint"),
            as_columns(equal or None, b_eq, self.equal, name="sides", owner="constraint"),
        )


@dataclass(frozen=True)
class PlaceNames:
    """The name of a variable or, counted from their number, of a constraint of a program, by its place.

    `several` are the places in `A_ub` of the constraints of several variables: one of one variable is a bound. The
    solver that warns by these names is copied to other processes, so they do not hold on to the problem.
    """

    variables: list[str]
    several: IndexArray
    sides: SideNames

    def __call__(self, place: int) -> str:
        """Return the name, and what it is the name of."""
        if place < len(self.variables):
            return f"variable {self.variables[place]!r}"
        names, kind, place = self._found(place - len(self.variables))
        return f"constraint {names[place]!r}" if names else f"constraint {place} of {kind}"

    def constraint(self, row: int) -> tuple[str, float]:
        """Return the name of a constraint by its row, and its sign: one from below is kept as minus itself."""
        names, kind, place = self._found(row)
        is_below = bool(names) and kind == "A_ub" and place >= len(self.sides.above)
        return names[place] if names else f"{kind}[{place}]", -1.0 if is_below else 1.0

    def _found(self, row: int) -> tuple[list[str], str, int]:
        if row < len(self.several):
            return [*self.sides.above, *self.sides.below], "A_ub", int(self.several[row])
        return self.sides.equal, "A_eq", row - len(self.several)


def as_integrality(integrality: Any, n: int) -> BoolArray | None:
    """Return which variables are in whole numbers, or None if none is."""
    if integrality is None:
        return None
    kinds = as_array(integrality, name="integrality")
    if kinds.ndim == 0:
        kinds = np.full(n, float(kinds))
    if kinds.shape != (n,):
        raise ValueError(f"integrality must have one entry for each of the {n} variables; got shape {kinds.shape}.")
    if not np.isin(kinds, (0, 1)).all():
        raise ValueError(
            "integrality must be 0 or 1 for each variable; SciPy's 2 and 3, for semi-continuous ones, are not "
            "supported. Write such a variable with a binary one that switches it on."
        )
    return kinds == 1 if kinds.any() else None


def is_map(costs: Costs) -> bool:
    """Whether costs are linear expressions of variables, not variables."""
    if costs is None or isinstance(costs, str | Mapping):
        return False
    return issparse(costs) or len(np.shape(costs)) == 2


def as_map(costs: Costs, names: list[str]) -> csr_array:
    """Return the map (n_costs, n) from variables to what predicted costs act on."""
    n = len(names)
    if is_map(costs):
        matrix = as_sparse(costs, name="costs, as a map,")
        if matrix.shape[1] != n or matrix.shape[0] == 0:
            raise ValueError(
                f"a map of costs must have one row for each predicted cost and one column for each of the {n} "
                f"variables; got shape {matrix.shape}."
            )
        return matrix
    if isinstance(costs, Mapping):
        return as_expressions(costs, names)
    return csr_array(eye_array(n, format="csr")[as_indices(costs, names)])


def as_indices(costs: Costs, names: list[str]) -> IntArray:
    """Return the variables that indices, names, a pattern or factors by pattern name, each of them once."""
    if costs is None:
        return np.arange(len(names))
    if isinstance(costs, Mapping):
        return np.unique(as_expressions(costs, names).indices)
    if isinstance(costs, str):
        chosen = matching_names(costs, names)
        if not chosen:
            raise ValueError(f"no variable matches costs={costs!r}{nearest_names(costs, names)}")
        return np.array(chosen)
    given = list(costs)
    check_names([item for item in given if isinstance(item, str)], names, "variable")
    for item in given:
        if not isinstance(item, str | int | np.integer) or isinstance(item, bool):
            raise ValueError(
                "costs must be indices or names of variables, a pattern of names, or a map with one row for each "
                f"cost; got an entry {item!r}."
            )
        if not isinstance(item, str) and not 0 <= item < len(names):
            raise ValueError(f"costs has the index {item}, and there are {len(names)} variables, from 0 on.")
    place = {name: j for j, name in enumerate(names)}
    chosen = [place[item] if isinstance(item, str) else int(item) for item in given]
    if not chosen:
        raise ValueError("costs is empty: at least one variable must have a predicted cost.")
    if len(set(chosen)) < len(chosen):
        twice = next(names[j] for k, j in enumerate(chosen) if j in chosen[:k])
        raise ValueError(f"costs names the variable {twice!r} more than once.")
    return np.array(chosen)


def check_names(wanted: Iterable[Any], names: list[str], owner: str) -> None:
    """Raise unless all names are among those of the variables, or of the constraints."""
    missing = set(wanted).difference(names)
    if missing:
        name = next(name for name in wanted if name in missing)
        near = nearest_names(str(name), names) if names else f"; no {owner} has a name."
        raise ValueError(f"there is no {owner} {name!r}{near}")


def as_constraint(constraints: Any, n: int) -> LinearConstraint:
    """Return SciPy's constraints, one or several, or tuples `(A, lb, ub)`, as one on `n` variables."""
    is_one = hasattr(constraints, "lb") or (isinstance(constraints, tuple) and len(np.shape(constraints[0])) == 2)
    parts = [constraints] if is_one else constraints or ()
    parts = [part if hasattr(part, "lb") else LinearConstraint(*part) for part in parts]
    matrices = [as_sparse(part.A, name="A of a constraint") for part in parts]
    for A, part in zip(matrices, parts, strict=True):
        if A.shape[1] != n:
            raise ValueError(f"a constraint must have one column for each of the {n} variables; got A.shape={A.shape}.")
        if np.isnan([part.lb, part.ub]).any():
            raise ValueError("a side of a constraint is NaN. Write infinity, with its sign, where there is no bound.")
    lb, ub = (np.concatenate([np.empty(0), *(getattr(part, side) for part in parts)]) for side in ("lb", "ub"))
    return LinearConstraint(vstack([csr_array((0, n)), *matrices], format="csr"), lb, ub)
