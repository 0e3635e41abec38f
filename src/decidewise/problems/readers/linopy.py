"""Use a model written with linopy as a problem: its matrices are read once."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from decidewise.problems.linear_program import LinearProgram
from decidewise.problems.readers.switches import Indicator, OrderedSet
from decidewise.problems.readers.translation import read_program, refused, sides

#: What linopy keeps of a constraint, as far as it is translated.
_OF_CONSTRAINTS = {"labels", "coeffs", "vars", "sign", "rhs", "dual", "scaling", "binary_var", "binary_val"}


def from_linopy(model: Any, variables: Any = None, **options: Any) -> LinearProgram:
    """Take the linear program, also with variables in whole numbers, of a linopy model, or the quadratic one.

    Where a variable has a predicted cost, that of the model is left out; its other costs are known costs,
    and so is a quadratic term.

    Parameters
    ----------
    model : linopy.Model
    variables : optional
        Which variables have predicted costs: a `linopy.Variable`, an array of them like any other, or a list of such,
        or names such as `"buy[0]"`, or a pattern of names; see `LinearProgram`. By default all of them.
    options
        Others of `LinearProgram`: `time_limit`, `gap`, `on_error`.

    Examples
    --------
    >>> import linopy
    >>> import pandas as pd
    >>> model = linopy.Model()
    >>> hours = model.add_variables(lower=0, upper=1, coords=[pd.RangeIndex(3, name="hour")], name="hours")
    >>> _ = model.add_constraints(hours.sum() == 2)
    >>> model.add_objective(hours.sum())
    >>> from_linopy(model, hours).solve([[3.0, 1.0, 2.0], [1.0, 2.0, 3.0]])
    array([[0., 1., 1.],
           [1., 1., 0.]])
    """
    if not hasattr(model, "matrices") or not hasattr(model, "objective"):
        raise TypeError(f"from_linopy needs a linopy.Model; got {type(model).__name__}.")
    matrices = model.matrices
    _check(model, matrices)
    return read_program(
        np.asarray(matrices.c, dtype=float),
        csr_array((0, len(matrices.vlabels))) if matrices.A is None else matrices.A,
        sides(matrices.sense, matrices.b),
        (matrices.lb, matrices.ub),
        matrices.vtypes,
        quadratic=None if model.objective.is_linear else matrices.Q,
        costs=_places(variables, np.asarray(matrices.vlabels)),
        names=_names(model.variables, np.asarray(matrices.vlabels)),
        constraint_names=_names(model.constraints, np.asarray(matrices.clabels)),
        indicators=_indicators(model, np.asarray(matrices.vlabels)),
        sets=_sets(model, np.asarray(matrices.vlabels)),
        sense=model.objective.sense,
        **options,
    )


def _check(model: Any, matrices: Any) -> None:
    """Refuse whatever a part of the model has that is not translated."""
    for name, part in model.constraints.items():
        if found := {*part.data} - _OF_CONSTRAINTS:
            raise ValueError(refused(f"the constraint {name!r} of the linopy model", ", ".join(sorted(found))))
    parts = (*model.variables.data.values(), *model.constraints.data.values(), model.objective)
    if any(np.any(part.scaling != 1) for part in parts):
        raise ValueError("the linopy model has scaling factors, by which its matrices are multiplied. Leave them out.")


def _indicators(model: Any, labels: Any) -> list[Indicator]:
    """Return the constraints that hold where a binary variable has a value, which the matrices leave out."""
    columns = {int(label): j for j, label in enumerate(labels)}
    found = []
    for part in model.constraints.data.values():
        if "binary_var" not in part.data:
            continue
        dims = part.labels.dims
        names = ("labels", "binary_var", "binary_val", "sign", "rhs")
        each = (np.ravel(part.data[name].broadcast_like(part.labels).transpose(*dims)) for name in names)
        terms = [part.data[name].transpose(*dims, "_term").values for name in ("coeffs", "vars")]
        terms = [values.reshape(-1, values.shape[-1]) for values in terms]
        for label, switch, value, sign, right, coefficients, variables in zip(*each, *terms, strict=True):
            if label < 0:
                continue
            factors = np.zeros(len(columns))
            for coefficient, variable in zip(coefficients, variables, strict=True):
                if variable >= 0:
                    factors[columns[int(variable)]] += coefficient
            lower, upper = sides(str(sign)[:1], right)
            found.append(Indicator(columns[int(switch)], int(value), factors, float(lower), float(upper)))
    return found


def _sets(model: Any, labels: Any) -> list[OrderedSet]:
    columns = {int(label): j for j, label in enumerate(labels)}
    found = []
    for part in model.variables.data.values():
        if kind := part.attrs.get("sos_type"):
            along = part.labels.transpose(..., part.attrs["sos_dim"]).sortby(part.attrs["sos_dim"]).values
            groups = along.reshape(-1, along.shape[-1]).tolist()
            found += [OrderedSet(int(kind), np.array([columns[x] for x in some if x in columns])) for some in groups]
    return found


def _places(variables: Any, labels: Any) -> Any:
    """Return indices where linopy's own variables were given, and anything else as it is."""
    if variables is None or isinstance(variables, str):
        return variables
    given = [variables] if hasattr(variables, "labels") else list(variables)
    if not all(hasattr(variable, "labels") for variable in given):
        return given
    place = {int(label): j for j, label in enumerate(labels)}
    wanted = [int(label) for variable in given for label in np.ravel(variable.labels.values) if label >= 0]
    if any(label not in place for label in wanted):
        raise ValueError("variables has one that is not part of the model. Pass those of this model, or names.")
    return [place[label] for label in wanted]


def _names(parts: Any, labels: Any) -> list[str]:
    """Return `x` for a number, and `x[0, 3]` by position for the entries of an array."""
    names = {}
    for name in parts:
        values = parts[name].labels.values
        for index in np.ndindex(values.shape):
            place = ", ".join(map(str, index))
            names[int(values[index])] = f"{name}[{place}]" if place else name
    return [names[int(label)] for label in labels]
