"""What a user may pass to a linear or a conic program, turned into sparse rows, bounds and maps, or into a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, eye_array, issparse

from decidewise.checks import FloatArray, all_finite, as_array, as_vector, matching_names, nearest_names
from decidewise.problems.mapped_problem.expressions import as_expressions

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
        if vector is not None and np.ndim(vector) == 1:
            return len(vector)
    raise ValueError(
        "a linear program needs to know how many variables it has: pass A_ub or A_eq with one column for each, or "
        "bounds with one entry for each."
    )


def as_rows(A: Any, b: Any, n: int, kind: str) -> tuple[csr_array, FloatArray]:
    """Return constraints as sparse rows (m, n) and their sides (m,)."""
    if A is None and b is None:
        return csr_array((0, n)), np.empty(0)
    if A is None or b is None:
        raise ValueError(f"A_{kind} and b_{kind} belong together; got only {'b' if A is None else 'A'}_{kind}.")
    A = as_sparse(A, name=f"A_{kind}")
    if A.shape[1] != n:
        raise ValueError(f"A_{kind} must have one column for each of the {n} variables; got A_{kind}.shape={A.shape}.")
    b = as_array(b, name=f"b_{kind}")
    if b.shape != (A.shape[0],):
        raise ValueError(f"b_{kind} must have one entry for each of the {A.shape[0]} rows of A_{kind}; got {b.shape}.")
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


def as_bounds(lower: Any, upper: Any, n: int, names: list[str]) -> tuple[FloatArray, FloatArray]:
    """Return one lower and one upper bound for each variable (n,)."""
    bounds = []
    for name, bound in (("lower", lower), ("upper", upper)):
        values = as_array(bound, name=name)
        if values.ndim > 1 or (values.ndim == 1 and len(values) != n):
            raise ValueError(f"{name} must be a number or a vector of length {n}; got {name}.shape={values.shape}.")
        if np.isnan(values).any():
            raise ValueError(f"{name} has NaN. Write infinity, with its sign, where a variable has no bound.")
        bounds.append(np.ascontiguousarray(np.broadcast_to(values, n)))
    crossed = np.flatnonzero((bounds[0] > bounds[1]) | np.isposinf(bounds[0]) | np.isneginf(bounds[1]))
    if len(crossed):
        j = crossed[0]
        raise ValueError(
            f"the region is empty: variable {names[j]!r} has lower={bounds[0][j]:g} and upper={bounds[1][j]:g}."
        )
    return bounds[0], bounds[1]


def as_integrality(integrality: Any, n: int) -> npt.NDArray[np.bool_] | None:
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


def as_indices(costs: Costs, names: list[str]) -> npt.NDArray[np.int64]:
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
    place = {name: j for j, name in enumerate(names)}
    for item in given:
        if isinstance(item, str) and item not in place:
            raise ValueError(f"there is no variable {item!r}{nearest_names(item, names)}")
        if not isinstance(item, str | int | np.integer) or isinstance(item, bool):
            raise ValueError(
                "costs must be indices or names of variables, a pattern of names, or a map with one row for each "
                f"cost; got an entry {item!r}."
            )
        if not isinstance(item, str) and not 0 <= item < len(names):
            raise ValueError(f"costs has the index {item}, and there are {len(names)} variables, from 0 on.")
    chosen = [place[item] if isinstance(item, str) else int(item) for item in given]
    if not chosen:
        raise ValueError("costs is empty: at least one variable must have a predicted cost.")
    if len(set(chosen)) < len(chosen):
        twice = next(names[j] for k, j in enumerate(chosen) if j in chosen[:k])
        raise ValueError(f"costs names the variable {twice!r} more than once.")
    return np.array(chosen)


def as_constraints(constraints: Any) -> list[tuple[Any, Any, Any]]:
    """Return SciPy's constraints, one or several, as tuples `(A, lb, ub)`."""
    if constraints is None:
        return []
    if hasattr(constraints, "A") or (
        isinstance(constraints, tuple) and len(np.shape(constraints[0])) == 2 and not hasattr(constraints[0], "A")
    ):
        constraints = [constraints]
    filled = (-np.inf, np.inf)
    return [
        (part.A, part.lb, part.ub) if hasattr(part, "lb") else (*part, *filled[len(part) - 1 :])[:3]
        for part in constraints
    ]


def as_two_sided(A: Any, lb: Any, ub: Any, n: int) -> tuple[csr_array, FloatArray, FloatArray]:
    """Return the rows `lb <= A w <= ub` of one constraint: (m, n), (m,), (m,)."""
    A = as_sparse(A, name="A of a constraint")
    if A.shape[1] != n:
        raise ValueError(f"a constraint must have one column for each of the {n} variables; got A.shape={A.shape}.")
    sides = []
    for name, side in (("lb", lb), ("ub", ub)):
        values = as_array(side, name=f"{name} of a constraint")
        if values.ndim > 1 or (values.ndim == 1 and len(values) != A.shape[0]) or np.isnan(values).any():
            raise ValueError(
                f"{name} of a constraint must have one entry for each of its {A.shape[0]} rows, infinite where there "
                f"is no bound; got {name}.shape={values.shape}."
            )
        sides.append(np.broadcast_to(values, A.shape[0]))
    return A, sides[0], sides[1]


def as_bound(bounds: Any, which: int, n: int) -> FloatArray:
    """Return the lower or the upper bounds of a `scipy.optimize.Bounds`, or of a pair of them."""
    bound = (bounds.lb, bounds.ub)[which] if hasattr(bounds, "lb") else tuple(bounds)[which]
    return np.broadcast_to(as_array(bound, name="bounds"), n)
