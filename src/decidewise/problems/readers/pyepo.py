"""A PyEPO model as a problem. PyEPO itself is not imported: only the methods of the model are called."""

from __future__ import annotations

from typing import Any

import numpy as np

from decidewise.checks import FloatArray, all_finite, as_array, as_integer
from decidewise.errors import SolverError
from decidewise.problems.base import Problem


def from_pyepo(optmodel: Any) -> Problem:
    """Return a PyEPO `optModel`, of any backend or your own, as a problem.

    The model is copied and solved row by row. Its solver breaks ties, and may start from the solution of the row
    before. Costs are rounded to float32 if the model's `setObj` rounds them, as PyEPO's models do. Pickling rebuilds
    the model from the arguments of its constructor and its added constraints, so Gurobi models can be pickled too.

    Parameters
    ----------
    optmodel : pyepo.model.opt.optModel
        A model with a linear objective in which every variable has a predicted cost.

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
    if getattr(optmodel, "c_pred_index", None) is not None and not _is_plain(optmodel.problem):
        raise ValueError(
            f"{type(optmodel).__name__} has known costs, a quadratic objective or costs in another order than its "
            "variables. Give each variable one predicted cost and nothing else, or write a Problem of your own."
        )
    return PyepoProblem(optmodel.copy())


class PyepoProblem(Problem):
    """A PyEPO model as a problem; see `from_pyepo`."""

    def __init__(self, optmodel: Any) -> None:
        if optmodel.modelSense not in (1, -1):
            raise ValueError(
                f"modelSense of {type(optmodel).__name__} must be 1, to minimise, or -1, to maximise; got "
                f"{optmodel.modelSense!r}."
            )
        self._sign = float(optmodel.modelSense)
        super().__init__(sense="min" if self._sign > 0 else "max")
        self.n_costs = as_integer(optmodel.num_cost, name="num_cost")
        self._model = optmodel

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Solve the model with each row as its objective; if the model fails, raise a `SolverError`."""
        decisions = np.empty_like(costs)
        for row, objective in enumerate(self._sign * costs):
            try:
                self._model.setObj(objective)
                decision, _ = self._model.solve()
                decision = as_array(decision, name="its decision")
                if decision.shape != objective.shape:  # a single number would be broadcast
                    raise ValueError(f"its decision has the shape {decision.shape} for {self.n_costs} costs.")
                decisions[row] = decision
            except Exception as reason:
                raise SolverError(f"{type(self._model).__name__} failed: {reason}", row=row) from reason
            if not all_finite(decisions[row]):
                raise SolverError(f"{type(self._model).__name__} returned {decisions[row]}.", row=row)
        return decisions

    def __getstate__(self) -> dict[str, Any]:
        if not hasattr(self._model, "to_spec"):
            raise TypeError(
                f"{type(self._model).__name__} cannot be pickled: it has no method to_spec, as PyEPO's models have. "
                "Derive the model from PyEPO's optModel, or write a Problem of your own."
            )
        recipe = self._model.to_spec(), getattr(self._model, "_extra_constrs", [])
        return {**self.__dict__, "_model": recipe}

    def __setstate__(self, state: dict[str, Any]) -> None:
        spec, constraints = state["_model"]
        model = spec.build()
        for coefficients, bound in constraints:
            model = model.addConstr(coefficients, bound)
        self.__dict__.update(state, _model=model)


def _is_plain(compiled: Any) -> bool:
    """Whether the objective of a problem of PyEPO's modelling language is one predicted cost per variable."""
    in_order = np.array_equal(compiled.c_pred_index, np.arange(compiled.num_vars))
    return in_order and compiled.obj_Q is None and not np.any(compiled.fixed_cost)
