"""Programs written to files, read again by HiGHS itself and by our own reader."""

import highspy
import numpy as np
import pytest

from decidewise import InputError
from decidewise.problems import LinearProgram, QuadraticProgram, read_problem

RNG = np.random.default_rng(0)
A, NAMES = RNG.uniform(0.2, 2.0, size=(3, 5)), ["north 1", "b", "c", "d[0]", "e"]
PROGRAMS = {
    "program": LinearProgram(A, A.sum(axis=1), upper=2, sense="max", names=NAMES, offset=3.0),
    "known costs and an equation": LinearProgram(
        A[:1], [3.0], A[1:2], [2.0], upper=2, costs=np.eye(2, 5) - np.eye(2, 5, k=2), known=RNG.normal(size=5)
    ),
    "whole numbers": LinearProgram(A, A.sum(axis=1), lower=-1, upper=3, integrality=[1, 0, 1, 1, 0], sense="max"),
    "squares": QuadraticProgram(np.eye(5) + 0.3, A_eq=[np.ones(5)], b_eq=[2.0], offset=-1.0),
    "squares, max": QuadraticProgram(-np.eye(5), A, A.sum(axis=1), upper=2, sense="max"),
    "one row": LinearProgram(A, A.sum(axis=1), upper=2).by_row(b_ub=[A.sum(axis=1), A[:, 0]]).take([1]),
}


@pytest.mark.parametrize("suffix", ["mps", "lp"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_file_has_the_value_of_the_row(name, suffix, tmp_path):
    if (name, suffix) == ("program", "lp"):
        pytest.skip("names with brackets are not for .lp files")
    problem, path = PROGRAMS[name], tmp_path / f"row.{suffix}"
    costs = RNG.normal(size=problem.n_costs)
    value = problem.solve_details(costs[np.newaxis]).objective[0]
    problem.write(path, costs)

    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.readModel(str(path))
    solver.run()
    assert solver.getInfo().objective_function_value == pytest.approx(value, abs=1e-6)
    again = read_problem(path)
    own = np.array(solver.getLp().col_cost_)
    assert again.solve_details(own[np.newaxis]).objective[0] == pytest.approx(value, abs=1e-6)
    assert (again.sense, again.n_variables) == (problem.sense, problem.n_variables)


def test_names_and_both_sides(tmp_path):
    (tmp_path / "in.lp").write_text(
        "max\n value: x + y\nst\n most: x + y <= 3\n need: x - y >= -1\n fair: x + 2 y = 4\nbounds\n x <= 2\nend\n"
    )
    problem = read_problem(tmp_path / "in.lp")
    problem.write(tmp_path / "out.mps", [2.0, 1.0])
    again = read_problem(tmp_path / "out.mps")
    assert (again.names, again.constraint_names) == (["x", "y"], ["most", "need", "fair"])
    np.testing.assert_array_equal(again._region.A_ub.toarray(), problem._region.A_ub.toarray())
    np.testing.assert_array_equal(again._region.b_ub, problem._region.b_ub)


def test_what_cannot_be_written(tmp_path):
    problem = LinearProgram(A, A.sum(axis=1), upper=2)
    with pytest.raises(InputError, match=r"'row.txt' must end in .mps or .lp"):
        problem.write(tmp_path / "row.txt", np.ones(5))
    with pytest.raises(ValueError, match="costs"):
        problem.write(tmp_path / "row.mps", np.ones(4))
    with pytest.raises(InputError, match="HiGHS cannot write"):
        problem.write(tmp_path / "none" / "row.mps", np.ones(5))
    with pytest.raises(ValueError, match="differs by row and has 2 rows"):
        problem.by_row(b_ub=[A.sum(axis=1), A[:, 0]]).write(tmp_path / "row.mps", np.ones(5))
