"""The same problems by other solvers, row by row, as a user would call them: set up once, then new costs for each row.

Each function takes a problem and returns one from costs (n, d) to decisions (n, d). Solvers that take whole numbers
alone get costs in millionths of the largest.
"""

import clarabel
import gurobipy
import highspy
import numpy as np
from ortools.graph.python import linear_sum_assignment as ortools_assignment
from ortools.graph.python import min_cost_flow as ortools_flow
from ortools.sat.python import cp_model
from scipy.optimize import Bounds, LinearConstraint, linear_sum_assignment, linprog, milp
from scipy.sparse import csc_array, csc_matrix, csr_array, eye, eye_array, hstack, vstack
from scipy.sparse.csgraph import dijkstra

from decidewise.problems import Polyhedron, Storage

WHOLE = 1e6
#: Seconds after which a solver stops without an answer to a row.
MOST_SECONDS = 5.0


class StopsError(Exception):
    """A solver stopped without an optimal answer."""

    def __init__(self):
        super().__init__(f"no proof of the optimum within {MOST_SECONDS:g} s")


def by_row(problem, solve_row):
    """Return the loop over rows of a function that minimises one of them."""
    sign = 1.0 if problem.sense == "min" else -1.0

    def solve(costs):
        return np.array([solve_row(sign * row) for row in costs])

    return solve


def region_of(problem):
    """Return the polyhedron of a problem, and the matrix from its variables to decisions."""
    if not isinstance(problem, Storage):
        return problem.polyhedron, eye_array(problem.n_costs, format="csr")
    n, unit = problem.n_costs, eye_array(problem.n_costs)
    levels = hstack([-problem.efficiency * unit, unit, unit - eye_array(n, k=-1)], format="csr")
    upper = np.repeat([problem.power, problem.power, problem.energy], n)
    region = Polyhedron(levels, np.zeros(n), csr_array((0, 3 * n)), np.zeros(0), np.zeros(3 * n), upper)
    return region, hstack([-unit, unit, csr_array((n, n))], format="csr")


def highs(problem):
    """HiGHS; each row starts from the basis of the one before."""
    region, to_decisions = region_of(problem)
    matrix = csc_array(vstack([region.A_ub, region.A_eq]))
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = matrix.shape
    program.col_cost_, program.col_lower_ = np.zeros(matrix.shape[1]), region.lower
    program.col_upper_ = region.upper
    program.row_lower_ = np.concatenate([np.full(len(region.b_ub), -np.inf), region.b_eq])
    program.row_upper_ = np.concatenate([region.b_ub, region.b_eq])
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_, program.a_matrix_.index_ = matrix.indptr, matrix.indices
    program.a_matrix_.value_ = matrix.data
    if problem.is_integer:
        program.integrality_ = [highspy.HighsVarType.kInteger] * matrix.shape[1]
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.passModel(program)
    columns = np.arange(matrix.shape[1], dtype=np.int32)

    def solve_row(row):
        solver.changeColsCost(len(columns), columns, row @ to_decisions)
        solver.setOptionValue("time_limit", solver.getRunTime() + MOST_SECONDS)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise StopsError
        return to_decisions @ np.array(solver.getSolution().col_value)

    return by_row(problem, solve_row)


def gurobi(problem):
    """Gurobi through gurobipy, with the licence of its wheel, which ends at 2,000 variables or constraints."""
    region, to_decisions = region_of(problem)
    model = gurobipy.Model(env=_quiet())
    kind = gurobipy.GRB.BINARY if problem.is_integer else gurobipy.GRB.CONTINUOUS
    variables = model.addMVar(len(region.lower), lb=region.lower, ub=region.upper, vtype=kind)
    if len(region.b_ub):
        model.addMConstr(region.A_ub, variables, "<", region.b_ub)
    if len(region.b_eq):
        model.addMConstr(region.A_eq, variables, "=", region.b_eq)
    model.Params.MIPGap = 0.0
    return by_row(problem, _gurobi_row(model, variables, to_decisions))


def gurobi_portfolio(problem):
    """Gurobi through gurobipy, with the risk as a quadratic constraint."""
    model = gurobipy.Model(env=_quiet())
    variables = model.addMVar(problem.n_costs)
    model.addConstr(variables.sum() <= problem.budget)
    model.addConstr(variables @ problem.covariance @ variables <= problem.risk)
    return by_row(problem, _gurobi_row(model, variables, eye_array(problem.n_costs, format="csr")))


def _quiet():
    environment = gurobipy.Env(empty=True)
    environment.setParam("OutputFlag", 0)
    environment.setParam("TimeLimit", MOST_SECONDS)
    environment.start()
    return environment


def _gurobi_row(model, variables, to_decisions):
    def solve_row(row):
        variables.Obj = row @ to_decisions
        model.optimize()
        if model.Status != gurobipy.GRB.OPTIMAL:
            raise StopsError
        return to_decisions @ variables.X

    return solve_row


def pyepo(model):
    """PyEPO's model of a problem, which solves by Gurobi; its sense is its own."""
    model._model.Params.OutputFlag = 0
    model._model.Params.TimeLimit = MOST_SECONDS

    def solve(costs):
        decisions = []
        for row in costs:
            model.setObj(row)
            decisions.append(np.asarray(model.solve()[0]))
            if model._model.Status != gurobipy.GRB.OPTIMAL:
                raise StopsError
        return np.array(decisions)

    return solve


def scipy_program(problem):
    """SciPy's `linprog`, or `milp` if numbers are whole."""
    region, to_decisions = region_of(problem)

    def solve_row(row):
        costs = row @ to_decisions
        if problem.is_integer:
            limits = [LinearConstraint(region.A_ub, ub=region.b_ub)]
            bounds = Bounds(region.lower, region.upper)
            whole, options = np.ones_like(costs), {"time_limit": MOST_SECONDS}
            found = milp(costs, integrality=whole, bounds=bounds, constraints=limits, options=options)
            if found.status != 0:
                raise StopsError
            return to_decisions @ found.x
        equalities = (region.A_eq, region.b_eq) if len(region.b_eq) else (None, None)
        inequalities = (region.A_ub, region.b_ub) if len(region.b_ub) else (None, None)
        bounds = np.column_stack([region.lower, region.upper])
        return to_decisions @ linprog(costs, *inequalities, *equalities, bounds).x

    return by_row(problem, solve_row)


def scipy_dijkstra(problem):
    """SciPy's Dijkstra, on a matrix whose entries alone change from row to row."""
    n = int(max(problem.tails.max(), problem.heads.max())) + 1
    order = np.lexsort((problem.heads, problem.tails))
    graph = csr_array((np.zeros(problem.n_costs), (problem.tails[order], problem.heads[order])), shape=(n, n))
    graph.sum_duplicates()
    edge_between = csr_array(
        (np.arange(1, problem.n_costs + 1), (problem.tails, problem.heads)), shape=(n, n)
    ).toarray()

    def solve_row(row):
        graph.data = row[order]
        _, before = dijkstra(graph, indices=problem.source, return_predecessors=True)
        decision, node = np.zeros_like(row), problem.target
        while node != problem.source:
            decision[edge_between[before[node], node] - 1] = 1.0
            node = before[node]
        return decision

    return by_row(problem, solve_row)


def scipy_assignment(problem):
    """SciPy's `linear_sum_assignment`."""

    def solve_row(row):
        decision = np.zeros((problem.n, problem.n))
        decision[linear_sum_assignment(row.reshape(problem.n, problem.n))] = 1.0
        return decision.ravel()

    return by_row(problem, solve_row)


def ortools_assign(problem):
    """OR-Tools' linear assignment."""
    left, right = (places.ravel() for places in np.indices((problem.n, problem.n)))

    def solve_row(row):
        solver = ortools_assignment.SimpleLinearSumAssignment()
        solver.add_arcs_with_cost(left, right, _whole(row))
        solver.solve()
        decision = np.zeros((problem.n, problem.n))
        decision[np.arange(problem.n), [solver.right_mate(node) for node in range(problem.n)]] = 1.0
        return decision.ravel()

    return by_row(problem, solve_row)


def ortools_flows(tails, heads, supply, capacity, problem):
    """OR-Tools' min cost flow."""
    capacity = np.broadcast_to(np.asarray(capacity, dtype=np.int64), len(tails))

    def solve_row(row):
        solver = ortools_flow.SimpleMinCostFlow()
        arcs = solver.add_arcs_with_capacity_and_unit_cost(tails, heads, capacity, _whole(row))
        solver.set_nodes_supplies(np.arange(len(supply)), supply)
        solver.solve()
        return solver.flows(arcs).astype(np.float64)

    return by_row(problem, solve_row)


def ortools_knapsack(problem):
    """CP-SAT of OR-Tools, on weights in hundredths, which are whole."""
    weights = np.rint(100 * problem.weights).astype(int)
    capacities = np.floor(100 * problem.capacities + 1e-6).astype(int)  # rounded up, it would take more than fits

    def solve_row(row):
        model = cp_model.CpModel()
        taken = [model.new_bool_var("") for _ in row]
        for weight, capacity in zip(weights, capacities, strict=True):
            model.add(cp_model.LinearExpr.weighted_sum(taken, weight.tolist()) <= int(capacity))
        model.minimize(cp_model.LinearExpr.weighted_sum(taken, _whole(row).tolist()))
        return _cp_solve(model, taken)

    return by_row(problem, solve_row)


def ortools_tour(problem):
    """CP-SAT of OR-Tools, with a circuit through all nodes."""
    ends = np.column_stack(np.triu_indices(problem.n_nodes, 1))

    def solve_row(row):
        model, costs = cp_model.CpModel(), _whole(row).tolist()
        both = [[model.new_bool_var("") for _ in range(2)] for _ in costs]
        arcs = []
        for (i, j), (there, back) in zip(ends.tolist(), both, strict=True):
            arcs += [(i, j, there), (j, i, back)]
        model.add_circuit(arcs)
        model.minimize(sum(cost * (there + back) for cost, (there, back) in zip(costs, both, strict=True)))
        found = _cp_solve(model, [literal for pair in both for literal in pair])
        return found.reshape(-1, 2).sum(axis=1)

    return by_row(problem, solve_row)


def _cp_solve(model, variables):
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = MOST_SECONDS
    if solver.solve(model) != cp_model.OPTIMAL:
        raise StopsError
    return np.array([solver.value(variable) for variable in variables], dtype=np.float64)


def _whole(row):
    """Return costs as whole numbers, in millionths of the largest."""
    return np.rint(row * (WHOLE / np.abs(row).max())).astype(np.int64)


def clarabel_cone(problem, rows, bounds, cones):
    """Clarabel at its default tolerances, set up once; only the linear term changes from row to row."""
    d = problem.n_costs
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.presolve_enable = False  # required for updates of the data
    solver = clarabel.DefaultSolver(csc_matrix((d, d)), np.zeros(d), csc_matrix(rows), bounds, cones, settings)

    def solve_row(row):
        solver.update(q=row)
        return np.array(solver.solve().x)

    return by_row(problem, solve_row)


def clarabel_portfolio(problem):
    """Clarabel, with the risk as a second-order cone."""
    d = problem.n_costs
    root = np.linalg.cholesky(problem.covariance / problem.risk).T
    rows = vstack([-eye(d), np.ones((1, d)), csc_matrix((1, d)), csc_matrix(-root)], format="csc")
    bounds = np.concatenate([np.zeros(d), [problem.budget, 1.0], np.zeros(d)])
    return clarabel_cone(problem, rows, bounds, [clarabel.NonnegativeConeT(d + 1), clarabel.SecondOrderConeT(d + 1)])


def clarabel_ellipsoid(problem, matrix, radius):
    """Clarabel, with `w·Mw <= radius²` as a second-order cone."""
    d = problem.n_costs
    root = np.linalg.cholesky(matrix).T
    rows = vstack([csc_matrix((1, d)), csc_matrix(-root)], format="csc")
    return clarabel_cone(problem, rows, np.concatenate([[radius], np.zeros(d)]), [clarabel.SecondOrderConeT(d + 1)])


def numpy_top(problem):
    """`np.argpartition`, row by row."""

    def solve_row(row):
        decision = np.zeros_like(row)
        decision[np.argpartition(row, problem.k)[: problem.k]] = 1.0
        return decision

    return by_row(problem, solve_row)


def numpy_ranking(problem):
    """`np.argsort`, row by row."""

    def solve_row(row):
        decision = np.empty_like(row)
        decision[np.argsort(-row)] = np.arange(1.0, len(row) + 1)
        return decision

    return by_row(problem, solve_row)
