"""A PyEPO model as a problem. PyEPO itself is not imported: only the methods of the model are called."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from decidewise.kit.checks import FloatArray, as_integer
from decidewise.problems.contract import Problem, Sense
from decidewise.problems.mapped_problem import MappedProblem
from decidewise.problems.readers.function import from_function


def from_pyepo(optmodel: Any, *, on_error: Literal["raise", "nan"] = "raise") -> Problem:
    """Return a PyEPO `optModel`, of any backend or your own, as a problem.

    The model is copied and solved row by row. Its solver breaks ties; it forgets the row before, if it is Gurobi, COPT
    or a linear solver of OR-Tools, so that ties do not depend on it. Costs are rounded to float32 if the model's
    `setObj` rounds them, as PyEPO's models do. Pickling rebuilds the model from the arguments of its constructor and
    its added constraints, so Gurobi models can be pickled too. Threads solve one after another, since they share the
    model; processes have one each.

    A model of PyEPO's modelling language (`pyepo.dsl`) may have costs that are not predicted. They become known costs
    of the problem, its constant included, and a decision is what the predicted costs pay for.

    Parameters
    ----------
    optmodel : pyepo.model.opt.optModel
        A model with a linear objective.
    on_error : {"raise", "nan"}
        Whether a row that fails is a `SolverError`, or a decision of NaN beside the decisions of all others.

    Returns
    -------
    problem : Problem
        It has the sense of the model, and no polyhedron.

    Examples
    --------
    >>> from copy import copy
    >>> from decidewise.problems import from_pyepo
    >>> class Cheapest:  # all that from_pyepo needs from a model
    ...     modelSense, num_cost, copy = 1, 3, copy
    ...
    ...     def setObj(self, costs):
    ...         self.costs = costs
    ...
    ...     def solve(self):
    ...         return np.eye(3)[self.costs.argmin()], self.costs.min()
    >>> from_pyepo(Cheapest()).solve([[3.0, 1.0, 2.0], [1.0, 3.0, 2.0]])
    array([[0., 1., 0.],
           [1., 0., 0.]])
    """
    needed = ("modelSense", "num_cost", "setObj", "solve", "copy")
    if isinstance(optmodel, type) or not all(hasattr(optmodel, name) for name in needed):
        raise TypeError(f"from_pyepo needs a PyEPO optModel object; got {type(optmodel).__name__}.")
    if getattr(optmodel, "c_pred_index", None) is None:
        n_costs = as_integer(optmodel.num_cost, name="num_cost")
        return _solved_by(_Model(optmodel.copy(), "setObj"), n_costs, on_error)
    if optmodel.problem.obj_Q is not None:
        raise ValueError(
            f"{type(optmodel).__name__} has a quadratic objective, and it must be linear: its costs are predicted. "
            "Bound the quadratic part by a constraint, or write a Problem of your own."
        )
    return PyepoMappedProblem(_Model(optmodel.copy(), "_setFullObj"), on_error)  # as PyEPO's own losses call it


def _solved_by(model: _Model, n_costs: int, on_error: Literal["raise", "nan"]) -> Problem:
    return from_function(model, n_costs, sense=model.sense, on_error=on_error)


class PyepoMappedProblem(MappedProblem):
    """A model of PyEPO's modelling language, in which some variables may have known costs only; see `from_pyepo`."""

    def __init__(self, model: _Model, on_error: Literal["raise", "nan"]) -> None:
        compiled = model.model.problem
        places = np.asarray(compiled.c_pred_index)
        super().__init__(
            compiled.num_vars,
            costs=csr_array((np.ones(len(places)), (np.arange(len(places)), places)), (len(places), compiled.num_vars)),
            known=compiled.fixed_cost,
            offset=float(compiled.obj_offset),
            sense=model.sense,
            on_error=on_error,
        )
        self._solver = _solved_by(model, compiled.num_vars, on_error)

    def _minimize_variables(self, objective: FloatArray) -> FloatArray:
        return self._solver.minimize(objective)


class _Model:
    """A PyEPO model as a function from its objective to its decision, by the method that sets the objective."""

    def __init__(self, model: Any, set_objective: str) -> None:
        if model.modelSense not in (1, -1):
            raise ValueError(
                f"modelSense of {type(model).__name__} must be 1, to minimise, or -1, to maximise; got "
                f"{model.modelSense!r}."
            )
        self.model, self.set_objective, self.__name__ = model, set_objective, type(model).__name__
        self.sense: Sense = "min" if model.modelSense > 0 else "max"

    def __call__(self, objective: FloatArray) -> Any:
        """Return what the model decides."""
        self.forget()
        getattr(self.model, self.set_objective)(objective)
        decision, _ = self.model.solve()
        return decision

    def forget(self) -> None:
        """Let the solver start from the beginning, where it can; PyEPO lets it go on from the solution before."""
        solver = getattr(self.model, "_model", None)
        if callable(reset := getattr(solver, "reset", None)):  # Gurobi and COPT
            reset()
        elif type(solver).__module__.startswith("ortools.linear_solver"):
            self.model = self.model.copy()

    def __getstate__(self) -> tuple[Any, ...]:
        if not hasattr(self.model, "to_spec"):
            raise TypeError(
                f"{type(self.model).__name__} cannot be pickled: it has no method to_spec, as PyEPO's models have. "
                "Derive the model from PyEPO's optModel, or write a Problem of your own."
            )
        return self.model.to_spec(), getattr(self.model, "_extra_constrs", []), self.set_objective

    def __setstate__(self, recipe: tuple[Any, ...]) -> None:
        spec, constraints, set_objective = recipe
        model = spec.build()
        for coefficients, bound in constraints:
            model = model.addConstr(coefficients, bound)
        self.__init__(model, set_objective)  # type: ignore[misc]
