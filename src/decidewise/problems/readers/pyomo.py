"""Use a model written with Pyomo as a problem: it is written out as matrices once."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from decidewise.problems.linear_program import LinearProgram
from decidewise.problems.readers.switches import OrderedSet
from decidewise.problems.readers.translation import read_program, refused, sides


def from_pyomo(model: Any, variables: Any = None, **options: Any) -> LinearProgram:
    """Take the linear program, also with variables in whole numbers, or the quadratic one, of a Pyomo model.

    The model has one active objective. Where a variable has a predicted cost, that of the model is left out; its other
    costs are known costs, and so are a quadratic term and the constant. Parameters and fixed variables keep the values
    that they have now.

    Parameters
    ----------
    model : pyomo.environ.ConcreteModel
    variables : optional
        Which variables have predicted costs: a `Var`, indexed or not, a list of them, or their names, or a pattern of
        names such as `"buy*"`; see `LinearProgram`. By default all that the model uses.
    options
        Others of `LinearProgram`: `time_limit`, `gap`, `on_error`.

    Examples
    --------
    >>> import pyomo.environ as pyo
    >>> model = pyo.ConcreteModel()
    >>> model.hours = pyo.Var(range(3), bounds=(0, 1))
    >>> model.need = pyo.Constraint(expr=sum(model.hours.values()) == 2)
    >>> model.cost = pyo.Objective(expr=sum(model.hours.values()))
    >>> from_pyomo(model, model.hours).solve([[3.0, 1.0, 2.0], [1.0, 2.0, 3.0]])
    array([[0., 1., 1.],
           [1., 1., 0.]])
    """
    if not hasattr(model, "component_data_objects"):
        raise TypeError(f"from_pyomo needs a Pyomo model; got {type(model).__name__}.")
    model, products = _linear(model)
    model, ordered = _without_sets(model)
    form = _written(model)
    lower = np.array([-np.inf if column.lb is None else column.lb for column in form.columns])
    upper = np.array([np.inf if column.ub is None else column.ub for column in form.columns])
    names = [column.name for column in form.columns]
    below, above = sides(
        np.array(list("<=>"))[1 - np.array([row.bound_type for row in form.rows], dtype=int)], form.rhs
    )
    # A constraint with two sides comes as two rows, one after the other.
    constraints = [row.constraint for row in form.rows]
    is_first = [one is not other for one, other in zip(constraints, [None, *constraints], strict=False)]
    first = np.flatnonzero(is_first)
    c, quadratic = form.c.toarray()[0], None
    if products:
        place = {name: j for j, name in enumerate(names)}
        factors, left, right = zip(
            *((factor, place[one], place[other]) for factor, one, other in products), strict=True
        )
        half = csr_array((factors, (left, right)), shape=(len(names), len(names)))
        quadratic = half + half.T
        c[np.unique([left, right])] -= 1.0  # see `_linear`
    return read_program(
        c,
        csr_array(form.A)[first],
        (np.maximum.reduceat(below, first), np.minimum.reduceat(above, first)),
        (lower, upper),
        np.where([column.is_integer() for column in form.columns], "I", "C"),
        quadratic=quadratic,
        costs=_names(variables, names),
        names=names,
        constraint_names=[constraints[k].name for k in first],
        sets=[
            OrderedSet(kind, np.array([names.index(name) for name in some if name in names], dtype=np.int64))
            for kind, some in ordered
        ],
        offset=float(form.c_offset[0]),
        sense="min" if int(form.objectives[0].sense) > 0 else "max",
        **options,
    )


def _linear(model: Any) -> tuple[Any, list[tuple[float, str, str]]]:
    """Return the model with a linear objective, and the products of variables that it lacks: factors and names.

    Of a quadratic model it is a copy, in which each variable of a product has a cost that is 1 too large, since Pyomo
    leaves out variables without any.
    """
    from pyomo.core import Objective  # noqa: PLC0415  (an extra)
    from pyomo.core.base.block import BlockData  # noqa: PLC0415
    from pyomo.repn import generate_standard_repn  # noqa: PLC0415

    if not isinstance(model, BlockData):
        raise TypeError(f"from_pyomo needs a model of pyomo.environ, not of pyomo.kernel; got {type(model).__name__}.")
    if not model.is_constructed():
        raise ValueError("the Pyomo model is abstract. Pass what its create_instance returns.")
    n_objectives = len(list(model.component_data_objects(Objective, active=True)))
    if n_objectives != 1:
        raise ValueError(f"the Pyomo model must have one active objective; it has {n_objectives}.")
    objective = next(model.component_data_objects(Objective, active=True))
    terms = generate_standard_repn(objective.expr, quadratic=True)
    if not terms.quadratic_vars or terms.nonlinear_expr is not None:
        return model, []
    products = [
        (float(factor), one.name, other.name)
        for factor, (one, other) in zip(terms.quadratic_coefs, terms.quadratic_vars, strict=True)
    ]
    model = model.clone()
    objective = next(model.component_data_objects(Objective, active=True))
    terms = generate_standard_repn(objective.expr, quadratic=True)
    squared = {id(variable): variable for pair in terms.quadratic_vars for variable in pair}
    costs = zip(terms.linear_coefs, terms.linear_vars, strict=True)
    objective.set_value(terms.constant + sum(c * v for c, v in costs) + sum(squared.values()))
    return model, products


def _without_sets(model: Any) -> tuple[Any, list[tuple[int, list[str]]]]:
    """Return the model without special ordered sets, a copy if it has some; and their kinds and variables in order."""
    from pyomo.core import SOSConstraint  # noqa: PLC0415  (an extra)

    if not any(model.component_data_objects(SOSConstraint, active=True)):
        return model, []
    model, found = model.clone(), []
    for part in list(model.component_data_objects(SOSConstraint, active=True)):
        members = sorted(part.get_items(), key=lambda item: item[1])
        for variable, _ in members:
            if variable.fixed and variable.value:
                raise ValueError(f"{variable.name!r} is fixed, and in a special ordered set. Leave it out of the set.")
        found.append((int(part.level), [variable.name for variable, _ in members]))
        part.deactivate()
    return model, found


def _written(model: Any) -> Any:
    """Return Pyomo's standard form, with the rows and the sense of the model.

    Pyomo itself refuses constraints that are not in this form, and takes variables as they are.
    """
    from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler  # noqa: PLC0415  (an extra)

    try:
        form = LinearStandardFormCompiler().write(model, mixed_form=True, set_sense=None)
    except Exception as reason:  # Pyomo has no one type for what it cannot write linearly
        raise ValueError(
            f"the Pyomo model cannot be written as a linear program: {' '.join(str(reason).split())} Write it "
            "linearly, let one of Pyomo's transformations do so, or solve it by a function of your own: from_function."
        ) from reason
    for part in model.component_objects():
        if hasattr(part, "get_discretization_info") and not part.get_discretization_info():
            raise ValueError(
                f"the Pyomo model has a ContinuousSet, {part.name}, without a discretization. Apply one, such as "
                "TransformationFactory('dae.finite_difference')."
            )
    for column in form.columns:
        if not (column.is_continuous() or column.is_integer()):
            raise ValueError(refused("the Pyomo model", f"a variable {column.name!r} of the domain {column.domain}"))
    return form


def _names(variables: Any, known: list[str]) -> Any:
    """Return names where Pyomo's own variables were given, and anything else as it is."""
    if variables is None or isinstance(variables, str):
        return variables
    given = [variables] if hasattr(variables, "is_indexed") else list(variables)
    if not all(hasattr(variable, "is_indexed") for variable in given):
        return given
    names = [part.name for variable in given for part in (variable.values() if variable.is_indexed() else [variable])]
    unused = [name for name in names if name not in set(known)]
    if unused:
        raise ValueError(
            f"the variable {unused[0]!r} is in no constraint and no objective of the model, or it is fixed, so that "
            "nothing says what it may be. Use it, or leave it out of variables."
        )
    return names
