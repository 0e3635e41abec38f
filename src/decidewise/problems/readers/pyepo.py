"""A PyEPO model as a problem. PyEPO itself is not imported: only the methods of the model are called."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from decidewise.kit.batches import check_time
from decidewise.kit.checks import FloatArray, all_finite, as_array, as_choice, as_integer
from decidewise.kit.errors import SolverError
from decidewise.problems.contract import Problem, Sense
from decidewise.problems.mapped_problem import MappedProblem
from decidewise.problems.readers.function import Turns


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
        return PyepoProblem(_RowByRow(optmodel.copy()), on_error)
    if optmodel.problem.obj_Q is not None:
        raise ValueError(
            f"{type(optmodel).__name__} has a quadratic objective, and it must be linear: its costs are predicted. "
            "Bound the quadratic part by a constraint, or write a Problem of your own."
        )
    return PyepoMappedProblem(_RowByRow(optmodel.copy()), on_error)


class PyepoProblem(Problem):
    """A PyEPO model in which every variable has a predicted cost; see `from_pyepo`."""

    def __init__(self, solver: _RowByRow, on_error: Literal["raise", "nan"]) -> None:
        super().__init__(sense=solver.sense)
        self.on_error = as_choice(on_error, name="on_error", choices=("raise", "nan"))
        self.n_costs = as_integer(solver.model.num_cost, name="num_cost")
        self._solver = solver

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Solve the model with each row as its objective; if the model fails, raise a `SolverError`."""
        return self._solver.minimize(costs, "setObj", self.on_error)


class PyepoMappedProblem(MappedProblem):
    """A model of PyEPO's modelling language, in which some variables may have known costs only; see `from_pyepo`."""

    def __init__(self, solver: _RowByRow, on_error: Literal["raise", "nan"]) -> None:
        compiled = solver.model.problem
        places = np.asarray(compiled.c_pred_index)
        super().__init__(
            compiled.num_vars,
            costs=csr_array((np.ones(len(places)), (np.arange(len(places)), places)), (len(places), compiled.num_vars)),
            known=compiled.fixed_cost,
            offset=float(compiled.obj_offset),
            sense=solver.sense,
            names=None,
            on_error=on_error,
        )
        self._solver = solver

    def _minimize_variables(self, objective: FloatArray) -> FloatArray:
        # PyEPO's own losses and metrics call it, too.
        return self._solver.minimize(objective, "_setFullObj", self.on_error)


class _RowByRow:
    """A PyEPO model that minimises one row of costs after another."""

    def __init__(self, model: Any) -> None:
        if model.modelSense not in (1, -1):
            raise ValueError(
                f"modelSense of {type(model).__name__} must be 1, to minimise, or -1, to maximise; got "
                f"{model.modelSense!r}."
            )
        self.model, self.turns = model, Turns()
        self.sense: Sense = "min" if model.modelSense > 0 else "max"

    def minimize(self, costs: FloatArray, set_objective: str, on_error: str) -> FloatArray:
        """Return what the model decides for each row of costs: (n, d) -> (n, d)."""
        decisions = np.empty_like(costs)
        for row, objective in enumerate(costs if self.sense == "min" else -costs):
            check_time()
            try:
                decisions[row] = self.decide(objective, set_objective, row)
            except SolverError:
                if on_error == "raise":
                    raise
                decisions[row] = np.nan
        return decisions

    def decide(self, objective: FloatArray, set_objective: str, row: int) -> FloatArray:
        name = type(self.model).__name__
        try:
            with self.turns:
                self.forget()
                getattr(self.model, set_objective)(objective)
                decision, _ = self.model.solve()
            decision = as_array(decision, name="its decision")
            if decision.shape != objective.shape:  # a single number would be broadcast
                raise ValueError(f"its decision has the shape {decision.shape} for {len(objective)} costs.")
        except Exception as reason:
            raise SolverError(f"{name} failed: {reason}", row=row) from reason
        if not all_finite(decision):
            raise SolverError(f"{name} returned {decision}.", row=row)
        return decision

    def forget(self) -> None:
        """Let the solver start from the beginning, where it can; PyEPO lets it go on from the solution before."""
        solver = getattr(self.model, "_model", None)
        if callable(reset := getattr(solver, "reset", None)):  # Gurobi and COPT
            reset()
        elif type(solver).__module__.startswith("ortools.linear_solver"):
            self.model = self.model.copy()

    def __getstate__(self) -> tuple[Any, Any]:
        if not hasattr(self.model, "to_spec"):
            raise TypeError(
                f"{type(self.model).__name__} cannot be pickled: it has no method to_spec, as PyEPO's models have. "
                "Derive the model from PyEPO's optModel, or write a Problem of your own."
            )
        return self.model.to_spec(), getattr(self.model, "_extra_constrs", [])

    def __setstate__(self, recipe: tuple[Any, Any]) -> None:
        spec, constraints = recipe
        model = spec.build()
        for coefficients, bound in constraints:
            model = model.addConstr(coefficients, bound)
        self.__init__(model)  # type: ignore[misc]
