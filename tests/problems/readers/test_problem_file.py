"""Files that describe a problem: every kind, every way to give an array, and what goes wrong."""

import inspect
import os
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz

import decidewise.problems
from decidewise.kit.errors import InputError
from decidewise.problems import (
    Knapsack,
    KnownCosts,
    LinearProgram,
    Problem,
    ProblemFile,
    ShortestPath,
    TopK,
    read_problem,
)
from decidewise.problems.readers.kinds import as_toml, built_in
from decidewise.problems.readers.problem_file import kinds
from decidewise.problems.views import View
from decidewise.testing.requirements import pickled

BATTERY = """max
 obj: 7 sell_1 + 7 sell_2 - 7 buy_1 - 7 buy_2 - 0.1 wear + 3
subject to
 level_1: 0.9 buy_1 - sell_1 - stored_1 = 0
 level_2: 0.9 buy_2 - sell_2 + stored_1 >= 0
 use: sell_1 + sell_2 - wear <= 0
bounds
 buy_1 <= 1
 buy_2 <= 1
 sell_1 <= 1
 sell_2 <= 1
 stored_1 <= 2
 wear <= 9
end
"""
MODULE = """
import numpy as np
from decidewise.problems import Problem, TopK

ready = TopK(3, 1)
number = 5


def build(n, weights=()):
    return TopK(n, max(1, len(weights)))


def fails():
    raise RuntimeError("no battery")


def wrong():
    return 7
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])

    def write(text, name="problem.toml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    yield write
    sys.modules.pop("pf_module", None)


def costs_of(problem, n=5, seed=0):
    return np.random.default_rng(seed).uniform(1, 2, size=(n, problem.n_costs))


def test_every_public_problem_is_a_kind():
    classes = [getattr(decidewise.problems, name) for name in decidewise.problems.__all__]
    public = {cls for cls in classes if inspect.isclass(cls) and issubclass(cls, Problem)}
    assert {kind.owner for kind in built_in().values()} == {c for c in public if not issubclass(c, View)} - {Problem}
    assert {kind.name for kind in kinds().values() if "." in kind.name} >= {
        "shortest_path.from_edges",
        "min_cost_flow.transportation",
    }


def test_a_cone_with_a_matrix_from_a_file(tmp_path, write):
    np.savetxt(tmp_path / "risk.csv", np.diag([1.0, 4.0]), delimiter=",")
    text = (
        'kind = "conic_program"\ncones = [{ kind = "quadratic", Q = { file = "risk.csv" }, r = 1.0 }]\nsense = "max"\n'
    )
    decisions = read_problem(write(text)).solve([[1.0, 0.0], [0.0, 1.0], [1.0, 2.0]])
    np.testing.assert_allclose(decisions, [[1.0, 0.0], [0.0, 0.5], [0.5**0.5, 0.5**0.5 / 2]], atol=1e-4)


@pytest.mark.parametrize("name", built_in())
def test_the_example_of_a_kind_is_the_problem_of_its_docstring(name, write):
    """A problem from its file solves as the one from its constructor, and all its keys are explained."""
    kind = kinds()[name]
    problem = read_problem(write(as_toml(name, kind.example)))
    twin = kind.build(**kind.example)
    assert (type(problem), problem.sense) == (kind.owner, twin.sense)
    np.testing.assert_array_equal(problem.solve(costs_of(problem)), twin.solve(costs_of(problem)))
    for argument in kind.arguments.values():
        assert argument.type, argument.name
    assert kind.summary
    assert kind.size
    assert kind.ties


def test_what_is_said_about_kinds_is_about_their_arguments():
    said = tomllib.loads(Path(inspect.getfile(as_toml)).with_name("kinds.toml").read_text(encoding="utf-8"))
    assert {name: set(entry["arguments"]) for name, entry in said.items()} == {
        name: set(kind.arguments) for name, kind in kinds().items()
    }


@pytest.mark.parametrize(
    ("name", "store"),
    [
        ("w.npy", np.save),
        ("w.csv", lambda path, array: np.savetxt(path, array, delimiter=",")),
        ("w.csv", lambda path, array: np.savetxt(path, array, delimiter=",", header="a,b,c", comments="")),
    ],
)
def test_arrays_from_files(tmp_path, write, name, store):
    weights = np.array([[3.0, 4.5, 5.0], [2.0, 2.0, 2.0]])
    store(tmp_path / name, weights)
    problem = read_problem(write(f'kind = "knapsack"\nweights = {{ file = "{name}" }}\ncapacities = [7, 4]\n'))
    np.testing.assert_array_equal(problem.weights, weights)
    assert isinstance(problem, Knapsack)


def test_a_sparse_matrix_and_whole_numbers_from_files(tmp_path, write):
    save_npz(tmp_path / "A.npz", csr_array([[1.0, 0.0, 2.0]]))
    text = 'kind = "linear_program"\nA_ub = { file = "A.npz" }\nb_ub = [3]\nupper = [1, 2, inf]\nsense = "max"\n'
    np.testing.assert_allclose(read_problem(write(text)).solve([1.0, 1.0, 5.0]), [0, 2, 1.5])
    (tmp_path / "edges.csv").write_text("from\n0\n0\n1\n")
    (tmp_path / "heads.csv").write_text("1,2,2\n")  # a row is a vector, too
    text = 'kind = "shortest_path.from_edges"\ntails = { file = "edges.csv" }\nheads = { file = "heads.csv" }\n'
    path = read_problem(write(text + "source = 0\ntarget = 2\n"))
    np.testing.assert_array_equal(path.solve([1.0, 3.0, 1.0]), [1, 0, 1])


def test_a_model_and_the_mapping(write):
    write(BATTERY, "battery.lp")
    text = 'kind = "file"\npath = "battery.lp"\ncosts = { "sell_*" = 1, "buy_*" = -1 }\ntime_limit = 10\n'
    problem = read_problem(write(text))
    assert isinstance(problem, LinearProgram)
    assert (problem.n_costs, problem.sense, problem.has_known) == (2, "max", True)
    # Buy 1 at 10 for 0.9 sold at 50; wear costs 0.1 for each unit sold. The prices of the file are left out.
    np.testing.assert_allclose(problem.solve([[10.0, 50.0], [50.0, 10.0]]), [[-1, 0.9], [0, 0]], atol=1e-9)
    np.testing.assert_allclose(problem.solve([1.0, 1.2]), [0, 0], atol=1e-9)  # 0.9 · 1.2 - 1 is less than the wear
    lifted = problem.minimize_lifted(np.array([[-10.0, -50.0, 1.0]]))
    assert lifted[0, -1] == pytest.approx(0.09 - 3.0)
    by_list = read_problem(write('kind = "file"\npath = "battery.lp"\ncosts = ["sell_2", "buy_1"]\nsense = "min"\n'))
    assert (by_list.n_costs, by_list.sense) == (2, "min")


def test_the_stars_of_a_mapping_stand_for_the_same():
    region = {"A_ub": np.ones((1, 4)), "b_ub": [2.0], "upper": 1.0, "names": ["buy_2", "buy_1", "sell_1", "sell_2"]}
    problem = LinearProgram(**region, costs={"sell_*": 1, "buy_*": -1}, sense="max")
    np.testing.assert_array_equal(problem.solve([5.0, -3.0]), [1, -1])
    brackets = LinearProgram(np.ones((1, 3)), [1.0], upper=1.0, names=["x[0]", "y", "x[1]"], costs="x[*]", sense="max")
    np.testing.assert_array_equal(brackets.solve([1.0, 2.0]), [0, 1])
    for costs, message in (
        ({"sell_*": 1, "by_*": -1}, r"no variable matches 'by_\*' of costs; the nearest .*'buy_"),
        ({"sell_*": 1, "buy*": -1}, r"must stand for the same texts; '1' is not there"),
        ({"sell_1": 1}, r"must have one star, such as 'sell_\*'; got 'sell_1'"),
        ({"sell_*": "much"}, r"the factor of 'sell_\*' in costs must be a finite number"),
        ({}, "costs is empty"),
    ):
        with pytest.raises(ValueError, match=message):
            LinearProgram(**region, costs=costs)


def test_python_objects_beside_the_file(tmp_path, write):
    write(MODULE, "pf_module.py")
    np.save(tmp_path / "w.npy", np.ones(2))
    assert read_problem(write('kind = "python"\nobject = "pf_module:ready"\n')).n_costs == 3
    text = 'kind = "python"\nobject = "pf_module:build"\narguments = { n = 4, weights = { file = "w.npy" } }\n'
    problem = read_problem(write(text))
    assert problem.solve([1.0, 2.0, 3.0, 4.0]).sum() == 2
    (tmp_path / "sub").mkdir()
    below = tmp_path / "sub" / "problem.toml"
    below.write_text('kind = "python"\nobject = "pf_module:ready"\nfolder = ".."\n')
    assert read_problem(below).n_costs == 3
    (tmp_path / "sub" / "pf_module.py").write_text(MODULE)
    below.write_text('kind = "python"\nobject = "pf_module:ready"\n')
    with pytest.raises(InputError, match=r"'pf_module' is another module, .* Rename that one"):
        read_problem(below)


def test_no_other_kind_executes_anything(write):
    write("raise RuntimeError('executed')", "pf_module.py")
    write("kind = 'python'", "pf_module.toml")
    for text in ('kind = "top_k"\nn = "pf_module:build"\nk = 1', 'kind = "file"\npath = "pf_module.py"'):
        with pytest.raises(InputError) as told:
            read_problem(write(text))
        assert "executed" not in str(told.value)
    assert "pf_module" not in sys.modules


def test_known_costs_fixed_and_by_row(tmp_path, write):
    kind = 'kind = "top_k"\nn = 3\nk = 1\nsense = "min"\n'
    tolls = np.array([[0.0, 3.0, 0.0], [0.0, 9.0, 0.0]])
    costs = np.array([[2.0, 1.0, 4.0], [9.0, 1.0, 5.0]])
    np.savetxt(tmp_path / "tolls.csv", tolls[0])
    for known in ("known = [0.0, 3.0, 0.0]", '[known]\nfile = "tolls.csv"'):
        problem = read_problem(write(f"{kind}{known}\n"))
        np.testing.assert_array_equal(problem.solve(costs), KnownCosts(TopK(3, 1, sense="min"), tolls[0]).solve(costs))
    table = {"toll_a": tolls[:, 0], "toll_b": tolls[:, 1], "x": [0, 0], "toll_c": tolls[:, 2]}
    twin = KnownCosts(TopK(3, 1, sense="min"), tolls)
    for known in ('{ columns = "toll_*" }', '{ columns = ["toll_a", "toll_b", "toll_c"] }'):
        file = ProblemFile.read(write(f"{kind}known = {known}\n"))
        assert file.columns
        np.testing.assert_array_equal(pickled(file).build(table).solve(costs), twin.solve(costs))
    with pytest.raises(InputError, match=r"takes the columns 'toll_a', .* from a table.*build\(table\)"):
        read_problem(tmp_path / "problem.toml")
    with pytest.raises(InputError, match=r"problem.toml: the table has no column 'toll_b'; the nearest .*'toll_c'"):
        file.build({name: table[name] for name in ("toll_a", "toll_c")})


def test_numbers_of_a_model_by_row_go_by_its_names(write):
    """The same as by_row in Python: right-hand sides of constraints, bounds and known costs of variables."""
    write(BATTERY, "battery.lp")
    described = 'kind = "file"\npath = "battery.lp"\ncosts = { "sell_*" = 1, "buy_*" = -1 }\n'
    text = """[by_row]
sides.level_1 = { column = "used" }
upper.sell_2 = { column = "grid" }
known.wear = { column = "wear_today" }
lower.buy_1 = 0.25
"""
    table = {"used": [0.0, -0.1], "grid": [1.0, 0.5], "wear_today": [-0.1, -5.0], "x": ["a", "b"]}
    file = ProblemFile.read(write(described + text))
    assert file.columns == ("used", "grid", "wear_today")
    problem, costs = pickled(file).build(table), np.array([[1.0, 3.0], [2.0, 3.0]])
    plain = read_problem(write(described))
    twin = plain.by_row(
        sides={"level_1": [0.0, -0.1]}, upper={"sell_2": [1.0, 0.5]}, known={"wear": [-0.1, -5.0]},
        lower={"buy_1": 0.25},
    )  # fmt: skip
    assert problem.n_rows == 2
    np.testing.assert_array_equal(problem.solve(costs), twin.solve(costs))
    assert not np.array_equal(problem.solve(costs)[1], plain.solve(costs)[1])


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_arguments_by_row_from_any_table(write, library):
    table = pytest.importorskip(library)
    rows = {"from": [0, 1], "to": [2, 2]}
    frame = table.table(rows) if library == "pyarrow" else table.DataFrame(rows)
    text = 'kind = "shortest_path.from_edges"\ntails = [0, 0, 1]\nheads = [1, 2, 2]\n'
    file = ProblemFile.read(write(text + 'source = { column = "from" }\ntarget = { column = "to" }\n'))
    problem = file.build(frame)
    assert isinstance(problem, ShortestPath)
    np.testing.assert_array_equal(problem.solve([[1.0, 3.0, 1.0], [1.0, 3.0, 1.0]]), [[1, 0, 1], [0, 0, 1]])


#: A file, and what is said about it after its name.
BAD = [
    ("", "kind is missing"),
    ("n = 3", "kind is missing"),
    ("kind = 3", "there is no kind 3"),
    ('kind = "knapsak"', "there is no kind 'knapsak'; the nearest of .* names is 'knapsack'"),
    ('kind = "top_k"\nn = 4\nkk = 2', "kind 'top_k' has no key 'kk'; the nearest of 4 names is 'k'"),
    ('kind = "top_k"\nn = 4', "k is missing: kind 'top_k' needs n, k"),
    ('kind = "top_k"\nn = 4\nk = 5', "cannot choose k=5 of n=4 items"),
    ('kind = "top_k"\nn = 4.0\nk = 2', "n must be a Python or NumPy integer; got 4.0"),
    ('kind = "top_k"\nn = true\nk = 2', "n must be a Python or NumPy integer; got True"),
    ('kind = "top_k"\nn = 1979-05-27\nk = 2', "n must be a Python or NumPy integer; got datetime.date"),
    (
        'kind = "top_k"\nn = 4\nk = 2\nsense = "up"',
        "sense must be one of 'm",
    ),
    ('kind = "top_k"\nn = 4\nk = 2\nknown = [1, 2]', "known must be a vector of length 4"),
    ('kind = "top_k"\nn = 4\nk = 2\nknown = [1, 2, nan, 3]', "known must be finite; row 2 has NaN"),
    ('kind = "top_k"\nn = 4\nk = 2\nknown = { fil = "x.csv" }', "known must be a value, { file = "),
    ('kind = "top_k"\nn = { columns = [] }\nk = 2', "n must be a value, { file = "),
    ('kind = "shortest_path"\ntails = [0]', "has no key 'tails'; kind = 'shortest_path.from_edges' has it"),
    ('kind = "knapsack"\nweights = "heavy"\ncapacities = [1]', "weights must be an array of real numbers"),
    ('kind = "knapsack"\nweights = [[1, 2], [3]]\ncapacities = [1]', "weights must be an array of real numbers"),
    ('kind = "knapsack"\nweights = [1, nan]\ncapacities = [1]', "weights must be finite"),
    ('kind = "knapsack"\nweights = { file = "no.csv" }\ncapacities = 1', "weights: cannot read .*no.csv: No such file"),
    ('kind = "knapsack"\nweights = { file = "w.xlsx" }\ncapacities = 1', "weights: the name of the file must end in"),
    (
        'kind = "knapsack"\nweights = { file = "text.csv" }\ncapacities = 1',
        "weights: text.csv cannot be read",
    ),
    ('kind = "knapsack"\nweights = { file = "empty.csv" }\ncapacities = 1', "weights: empty.csv .* no rows of numbers"),
    ('kind = "knapsack"\nweights = { file = "ragged.csv" }\ncapacities = 1', "weights: ragged.csv cannot be read"),
    ('kind = "knapsack"\nweights = { file = "bad.npy" }\ncapacities = 1', "weights: bad.npy cannot be read"),
    ('kind = "knapsack"\nweights = { file = "bad.npz" }\ncapacities = 1', "weights: bad.npz cannot be read"),
    (
        'kind = "knapsack"\nweights = { file = "pickle.npy" }\ncapacities = 1',
        "weights: pickle.npy cannot be read: O",
    ),
    ('kind = "linear_program"', "a linear program needs to know how many variables it has"),
    ('kind = "linear_program"\nA_ub = [[1, 1]]\nb_ub = [-1]', "the region is empty"),
    ('kind = "linear_program"\nA_ub = [[1, nan]]\nb_ub = [1]', "A_ub must be finite; row 0, column 1"),
    ('kind = "linear_program"\nA_ub = [[1, 1]]\nb_ub = [1]\nintegrality = [1]', "integrality must have one entry for"),
    (
        'kind = "linear_program"\nA_ub = [[1, 1]]\nb_ub = [1]\ncosts = [[1]]',
        "a map of costs must have one row for",
    ),
    ('kind = "conic_program"\ncones = [3]', "cones must be SecondOrder, .* or tables such as"),
    ('kind = "conic_program"\ncones = [{ kind = "round" }]', "the kind of a cone must be one of .*; got 'round'"),
    ('kind = "conic_program"\ncones = [{ kind = "quadratic" }]', "a cone of kind 'quadratic' needs 'Q'"),
    (
        'kind = "conic_program"\ncones = [{ kind = "quadratic", q = [1], R = 1 }]',
        "a cone of kind 'quadratic' has no 'R'",
    ),
    ('kind = "file"', "path is missing: kind 'file' needs path"),
    ('kind = "file"\npath = 3', "path must be a string; got 3"),
    ('kind = "file"\npath = "no.mps"', "there is no file .*no.mps"),
    ('kind = "file"\npath = "problem.toml"', "path must be that of a model"),
    (
        'kind = "file"\npath = "battery.lp"\ncosts = "sel_*"',
        r"no variable matches costs='sel_\*'; the nearest",
    ),
    ('kind = "file"\npath = "battery.lp"\ncosts = ["sell1"]', "there is no variable 'sell1'; the nearest .*'sell_1'"),
    ('kind = "file"\npath = "battery.lp"\ntimelimit = 3', "has no key 'timelimit'; the nearest .*'time_limit'"),
    ('kind = "file"\npath = "battery.lp"\ntime_limit = -3', "time_limit must be a number above 0"),
    ('kind = "file"\npath = "battery.lp"\nby_row = 3', r"by_row must be a section, \[by_row\]"),
    ('kind = "file"\npath = "battery.lp"\n[by_row]\nside.a = 1', "by_row has no 'side'; the nearest .*'sides'"),
    ('kind = "file"\npath = "battery.lp"\n[by_row.upper]\ncolumn = "a"', "by_row.upper must have the names"),
    ('kind = "file"\npath = "battery.lp"\n[by_row]\nupper.sel_1 = [1]', "there is no variable 'sel_1'; the nearest"),
    ('kind = "file"\npath = "battery.lp"\n[by_row]\nsides.level1 = [1]', "there is no constraint 'level1'"),
    ('kind = "top_k"\nn = 3\nk = 1\n[by_row]\nupper.a = 1', r"kind 'top_k' has no section \[by_row\]"),
    ('kind = "python"', "object is missing"),
    ('kind = "python"\nobject = 3', "object must be an importable name"),
    ('kind = "python"\nobject = "os.system(1)"', "expected an importable name"),
    ('kind = "python"\nobject = "pf_nowhere:f"', "cannot import 'pf_nowhere' .* beside the problem file"),
    ('kind = "python"\nobject = "pf_module:biuld"', "module 'pf_module' has no 'biuld'; the nearest .*'build'"),
    ('kind = "python"\nobject = "pf_module:number"', "'pf_module:number' must be a problem, or a function"),
    ('kind = "python"\nobject = "pf_module:fails"', "'pf_module:fails' failed: RuntimeError: no battery"),
    (
        'kind = "python"\nobject = "pf_module:wrong"',
        "'pf_module:wrong' failed: TypeError: problem must be",
    ),
    ('kind = "python"\nobject = "pf_module:build"\narguments = 3', "arguments must be a table"),
    ('kind = "python"\nobject = "pf_module:build"\narguments = { m = 3 }', "'pf_module:build' failed: TypeError"),
    ('kind = "python"\nobject = "pf_module:ready"\narguments = { n = 3 }', "is a problem already"),
    ("kind = ", "not valid TOML"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_a_mistake_is_told_with_the_file_and_the_key(tmp_path, write, text, message):
    write(MODULE, "pf_module.py")
    write(BATTERY, "battery.lp")
    write("1,2\n3,x\n", "text.csv")
    write("a,b\n", "empty.csv")
    write("1,2\n3\n", "ragged.csv")
    write("no array", "bad.npy")
    write("no matrix", "bad.npz")
    np.save(tmp_path / "pickle.npy", np.array([Path("x")], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=rf"problem\.toml(:| is).*{message}"):
        read_problem(write(text))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs the pipes of POSIX")
def test_a_pipe_is_no_array(write, tmp_path):
    for kind in ("csv", "npy", "npz"):
        os.mkfifo(tmp_path / f"weights.{kind}")
        path = write(f'kind = "knapsack"\nweights = {{ file = "weights.{kind}" }}\ncapacities = [3]\n')
        with pytest.raises(InputError, match=rf"weights: \S+weights.{kind} is not a file"):
            ProblemFile.read(path)


def test_what_a_description_says_is_not_said_again(tmp_path, write):
    path = write('kind = "top_k"\nn = 4\nk = 2\n')
    with pytest.raises(InputError, match="says all about the problem"):
        read_problem(path, costs="x*")
    with pytest.raises(InputError, match=r"cannot read the problem .*No such file"):
        read_problem(tmp_path / "none.toml")
