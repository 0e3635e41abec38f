"""Views: problems that solve another one, the problem inside, with other costs or decisions, a counter or a cache.

`View` forwards every member of the contract that it does not write itself. It takes them from `Problem`, so that none
can be forgotten. The views here rewrite costs and decisions: `Lifted` (known costs as one more cost), `InVariables` (a
cost for each variable) and `InUnit` (costs in another unit). The functions ask a problem for what only some have.
"""

from __future__ import annotations

from copy import copy
from functools import wraps
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from decidewise.kit.checks import FloatArray, as_array
from decidewise.kit.gaps import noted_gaps
from decidewise.problems.contract import Problem, as_problem, sign_of
from decidewise.solvers import Polyhedron


class View(Problem):
    """A problem that solves the one inside; subclasses write `_call`, through which every batch goes, or its parts.

    `problem` is the one inside.
    """

    #: Whether the last cost is that of the known part.
    is_lifted: bool = False
    _checks_costs = False  # the problem inside does

    def __init__(self, problem: Problem) -> None:
        super().__init__(sense=as_problem(problem).sense)
        self.problem = problem
        for name in _DATA:
            setattr(self, name, getattr(problem, name))
        self.keeps_state = type(self).keeps_state or problem.keeps_state
        self.is_lifted = type(self).is_lifted or is_lifted(problem)

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return the decisions of the problem inside."""
        return self._call("minimize", costs)

    def minimize_relaxation(self, costs: FloatArray) -> FloatArray:
        """Return the optimal vertices of the relaxation of the problem inside."""
        return self._call("minimize_relaxation", costs)

    def minimize_lifted(self, costs: FloatArray) -> FloatArray:
        """Return the lifted decisions of the problem inside."""
        return self._call("minimize_lifted", costs)

    def _call(self, method: str, costs: FloatArray) -> FloatArray:
        """Return what a method of the problem inside, such as "minimize", returns for a batch of costs."""
        decisions: FloatArray = getattr(self.problem, method)(costs)
        return decisions

    @property
    def lifted(self) -> Problem:
        """The same view of the lifted problem inside."""
        return self._around(self.problem.lifted) if self.has_known else self

    @property
    def relaxation(self) -> Polyhedron | None:
        """The linear relaxation of the problem inside."""
        return relaxation(self.problem)

    def polyhedron_at(self, costs: FloatArray, decisions: FloatArray) -> Polyhedron | None:
        """Return the polyhedron of the problem inside with constraints that bind at decisions."""
        return polyhedron_at(self.problem, costs, decisions)

    @property
    def in_variables(self) -> Problem:
        """The problem inside in its variables, in this view; otherwise the lifted view."""
        inside = in_variables(self.problem)
        return self._seen_in_variables(inside) if isinstance(inside, InVariables) else self.lifted

    def _seen_in_variables(self, inside: InVariables) -> Problem:
        return InVariables(self._around(inside.problem), inside.matrix, inside.known)

    def in_unit(self, unit: float) -> Problem:
        """Return the same view of the problem inside in another unit."""
        return self._around(in_unit(self.problem, unit))

    def take(self, rows: Any) -> Problem:
        """Return the same view of some rows of the problem inside."""
        return self if self.n_rows is None else self._around(self.problem.take(rows))

    def _around(self, problem: Problem) -> Problem:
        twin = copy(self)
        View.__init__(twin, problem)
        twin.sense = self.sense
        return twin


def _forwarded(name: str, member: Any) -> Any:
    """Return a property or a method that asks the problem inside."""
    if isinstance(member, property):
        return property(lambda self: getattr(self.problem, name), doc=member.__doc__)

    @wraps(member)
    def method(self: View, *arguments: Any, **keywords: Any) -> Any:
        return getattr(self.problem, name)(*arguments, **keywords)

    return method


#: The data of the contract, which a view copies.
_DATA = [name for name in Problem.__annotations__ if not name.startswith("_")]
for _name, _member in vars(Problem).items():
    # `solve` checks costs, turns them into a minimisation and calls `minimize`, also of a view.
    if not _name.startswith("_") and _name not in {*_DATA, *vars(View), "solve", "solve_details", "explain"}:
        setattr(View, _name, _forwarded(_name, _member))


def is_lifted(problem: Problem) -> bool:
    """Whether this is the lifted view of a problem with known costs, whose last cost is that of the known part."""
    return isinstance(problem, View) and problem.is_lifted


def n_predicted(problem: Problem) -> int:
    """Return the number of predicted costs, of which `lift` makes `n_costs`."""
    return problem.matrix.shape[0] if isinstance(problem, InVariables) else problem.n_costs - is_lifted(problem)


def lift(problem: Problem, costs: FloatArray) -> FloatArray:
    """Return the costs of a problem or a view, of predicted costs (n, n_predicted) in its own sense.

    If it is lifted, the cost of the known part is 1, or -1 for a maximisation: it belongs to the minimisation.
    """
    if isinstance(problem, InVariables):
        return np.ascontiguousarray(costs @ problem.matrix + sign_of(problem) * problem.known)
    return np.column_stack([costs, np.full(len(costs), sign_of(problem))]) if is_lifted(problem) else costs


def unlift(problem: Problem, gradient: FloatArray) -> FloatArray:
    """Return the gradient in the predicted costs, of a gradient (n, n_costs) in what `lift` returns."""
    if isinstance(problem, InVariables):
        return np.ascontiguousarray(gradient @ problem.matrix.T)
    return gradient[:, :-1] if is_lifted(problem) else gradient


def in_variables(problem: Problem) -> Problem:
    """Return the problem as a loss that needs linear constraints sees it: the lifted view.

    A problem whose constraints are on more variables than it has costs returns these (see `InVariables`).
    """
    own: Problem | None = getattr(problem, "in_variables", None)
    return problem.lifted if own is None else own


def relaxation(problem: Problem) -> Polyhedron | None:
    """Return the linear relaxation: `polyhedron`, also where only some variables are in whole numbers."""
    own: Polyhedron | None = getattr(problem, "relaxation", None)
    return problem.polyhedron if own is None else own


def polyhedron_at(problem: Problem, costs: FloatArray, decisions: FloatArray) -> Polyhedron | None:
    """Return the polyhedron, with further valid constraints that bind at optimal decisions and help to prove them.

    Some relaxations, such as that of the travelling salesman, have too many constraints to list. Such a problem writes
    a method of this name, which adds those that matter for the given costs (to be minimised, whatever the sense) and
    their decisions, both (n, d).
    """
    own = getattr(problem, "polyhedron_at", None)
    found: Polyhedron | None = problem.polyhedron if own is None else own(costs, decisions)
    return found


def in_unit(problem: Problem, unit: float) -> Problem:
    """Return the problem whose costs, predicted and known, are divided by `unit`; itself without known costs."""
    if not problem.has_known or unit == 1:
        return problem
    return problem.in_unit(unit) if isinstance(problem, View) else InUnit(problem, unit)


class Lifted(View):
    """The problem of the costs `(c, 1)` and the decisions `(M w, b·w)`, of a problem with known costs.

    It has no known costs of its own: `costs·decisions` is the whole objective. The region of its decisions is that of
    `w`, mapped linearly; it has a polyhedron only if a subclass writes one.

    Examples
    --------
    >>> import numpy as np
    >>> from decidewise.problems import KnownCosts, TopK
    >>> from decidewise.problems.views import lift
    >>> problem = KnownCosts(TopK(2, 1, sense="min"), [0.0, 3.0])  # a toll of 3 on the second item
    >>> lifted = problem.lifted
    >>> lifted.solve(lift(lifted, np.array([[2.0, 1.0], [9.0, 1.0]])))
    array([[1., 0., 0.],
           [0., 1., 3.]])
    """

    is_lifted = True
    # Its decisions have one entry more than those of the problem inside, of which these would speak.
    polyhedron = Problem.polyhedron
    minimize_relaxation = Problem.minimize_relaxation  # type: ignore[assignment]
    solution = Problem.solution

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.n_costs, self.has_known = problem.n_costs + 1, False
        if self.faces == "curved" and not hasattr(problem, "derivative_lifted"):
            self.faces = "unknown"

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return `minimize_lifted` of the problem inside."""
        return self._call("minimize_lifted", costs)

    @property
    def relaxation(self) -> Polyhedron | None:
        """Its own polyhedron, if it has one."""
        return self.polyhedron

    def polyhedron_at(self, costs: FloatArray, decisions: FloatArray) -> Polyhedron | None:
        """Return its own polyhedron, if it has one."""
        return self.polyhedron

    def derivative(self, costs: FloatArray, decisions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return `derivative_lifted` of the problem inside, which has one if `faces` are curved."""
        inside: Any = self.problem
        derivatives: FloatArray = inside.derivative_lifted(costs, decisions, vectors)
        return derivatives

    @property
    def in_variables(self) -> Problem:
        """The lifted view itself."""
        return self

    def take(self, rows: Any) -> Problem:
        """Return the lifted view of the rows of the problem inside."""
        return self if self.n_rows is None else self.problem.take(rows).lifted


class InVariables(View):
    """The problem of the costs `c M + b` and the decisions `w`, of a problem of the objective `c·(M w) + b·w`.

    `M w` is optimal for `c` exactly if `w` is optimal for `c M + b`. So a loss that is zero exactly if a vertex is
    optimal is, at these costs, zero exactly if the decision is; and its gradient in `c` is `M` times that in the costs
    of the variables.

    Parameters
    ----------
    problem : Problem
        Of all variables, with a cost each.
    matrix : csr_array of shape (n_predicted, n_variables)
        The map `M`.
    known : ndarray of shape (n_variables,)
        The known costs `b`, to be minimised.
    """

    def __init__(self, problem: Problem, matrix: csr_array, known: FloatArray) -> None:
        super().__init__(problem)
        self.matrix, self.known = matrix, known


class InUnit(View):
    """A problem with known costs, and all costs, predicted and known, divided by a positive unit."""

    def __init__(self, problem: Problem, unit: float) -> None:
        super().__init__(problem)
        self.unit = unit
        self._units = np.append(np.full(self.n_costs, unit), 1.0)  # of lifted costs
        if self.faces == "curved" and not hasattr(problem, "derivative_lifted"):
            self.faces = "unknown"

    def _call(self, method: str, costs: FloatArray) -> FloatArray:
        with noted_gaps() as noted:
            decisions = super()._call(method, costs)
        noted.pass_on(len(costs), 1 / self.unit)
        return decisions

    def minimize(self, costs: FloatArray) -> FloatArray:
        """Return the decisions of the problem inside for costs in its own unit."""
        return self._call("minimize", costs * self.unit)

    def minimize_relaxation(self, costs: FloatArray) -> FloatArray:
        """Return the relaxed decisions of the problem inside for costs in its own unit."""
        return self.problem.minimize_relaxation(costs * self.unit)

    def minimize_lifted(self, costs: FloatArray) -> FloatArray:
        """Return the lifted decisions, with `b·w` in the unit."""
        return self._call("minimize_lifted", costs * self._units) / (self.unit / self._units)

    def derivative(self, costs: FloatArray, decisions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return `J v` for costs in the unit."""
        return self.unit * self.problem.derivative(costs * self.unit, decisions, vectors)

    def derivative_lifted(self, costs: FloatArray, decisions: FloatArray, vectors: FloatArray) -> FloatArray:
        """Return `J v` of the lifted decisions for costs in the unit."""
        inside: Any = self.problem  # which has one, if faces are curved
        units = self._units / self.unit
        moved: FloatArray = inside.derivative_lifted(costs * self._units, decisions / units, vectors * self._units)
        return moved * units

    def solution(self, costs: Any) -> dict[str, Any]:
        """Return the whole solution of the problem inside for costs in its own unit."""
        return self.problem.solution(as_array(costs, name="costs") * self.unit)

    def _seen_in_variables(self, inside: InVariables) -> Problem:
        return InVariables(inside.problem, inside.matrix, inside.known / self.unit)

    @property
    def lifted(self) -> Problem:
        """The lifted view in this unit."""
        return Lifted(self)
