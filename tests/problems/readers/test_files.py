"""Files of the kinds that tools write, and of the kinds that go wrong."""

import gzip

import numpy as np
import pytest

from decidewise.problems import read_problem
from decidewise.testing.requirements import pickled

PLAN = """NAME          PLAN
OBJSENSE
    MAX
ROWS
 N  VALUE
 N  REMARK
 L  WORK
 G  LEAST
 E  BALANCE
COLUMNS
    M1        'MARKER'   'INTORG'
    price_a   VALUE      1.0        WORK       2.0
    price_a   REMARK     9.0
    M2        'MARKER'   'INTEND'
    price_b   VALUE      1.0        WORK       1.0
    price_b   LEAST      1.0        BALANCE    1.0
    stock     VALUE     -0.5        BALANCE   -1.0
RHS
    RHS       WORK       10.0       LEAST      1.0
    RHS       VALUE     -7.0
RANGES
    RNG       WORK       6.0
BOUNDS
 UP BND       price_a    4.0
 UP BND       price_b    5.0
 MI BND       stock
ENDATA
"""


def written(tmp_path, text, name="plan.mps"):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("name", ["plan.mps", "PLAN.MPS", "plan.mps.gz"])
def test_an_mps_file(tmp_path, name):
    """Sense, constant, a free row, a range, whole numbers and a variable without a lower bound."""
    problem = read_problem(written(tmp_path, PLAN, name), costs="price_*")

    assert problem.sense == "max"
    assert problem.names == ["price_a", "price_b", "stock"]
    # 4 <= 2a + b <= 10, b >= 1, stock = b, a whole: by hand
    np.testing.assert_allclose(problem.solve([[3.0, 1.0], [-1.0, -2.0], [1.0, 0.9]]), [[4, 2], [2, 1], [4, 2]])
    solution = problem.solution([3.0, 1.0])
    assert solution["stock"] == pytest.approx(2.0)
    lifted = problem.minimize_lifted(np.array([[-3.0, -1.0, 1.0]]))
    assert lifted[0, -1] == pytest.approx(-(7.0 - 0.5 * 2.0))
    twin = pickled(problem)
    np.testing.assert_array_equal(twin.solve([1.0, 0.9]), problem.solve([1.0, 0.9]))


def test_an_lp_file_and_the_sense_that_is_asked_for(tmp_path):
    text = "maximize\n obj: 3 x + 2 y + 5\nsubject to\n c1: x + y <= 4\nbounds\n x <= 3\n y <= 2\nend\n"
    path = written(tmp_path, text, "plan.lp")
    np.testing.assert_allclose(read_problem(path).solve([1.0, 2.0]), [2, 2])
    np.testing.assert_allclose(read_problem(path, sense="min").solve([1.0, 2.0]), [0, 0])


def test_costs_by_name_in_any_order(tmp_path):
    path = written(tmp_path, PLAN)
    forth = read_problem(path, costs=["price_a", "price_b"])
    back = read_problem(path, costs=["price_b", "price_a"])
    np.testing.assert_array_equal(forth.solve([3.0, 1.0]), back.solve([1.0, 3.0])[::-1])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "plan.mps",
            PLAN.replace(" MI BND       stock", " UP BND       stock     -1.0"),
            "variable stock has the upper",
        ),
        ("plan.mps", "garbage\n1 2 3\n", "HiGHS cannot read plan.mps.* Is it a complete MPS file"),
        ("plan.mps", PLAN[:300], "HiGHS cannot read plan.mps"),
        ("plan.mps", PLAN.replace("price_a ", "price a "), "HiGHS cannot read plan.mps"),
        ("plan.mps", "", "HiGHS cannot read plan.mps. Is it a complete MPS file"),
        ("plan.mps", PLAN.replace("WORK       10.0", "WORK       10,5"), "plan.mps, line 19: '10,5' is not a number"),
        ("plan.mps", PLAN.replace("WORK       10.0", "WORK       ten"), "plan.mps, line 19: 'ten' is not a number"),
        ("plan.mps", PLAN.replace("WORK       2.0", "WORK       NaN"), "plan.mps, line 12: 'NaN' is not a number"),
        ("plan.mps", PLAN.replace("price_b    5.0", "price_b    5.0x"), "plan.mps, line 25: '5.0x' is not a number"),
        (
            "plan.mps",
            PLAN.replace("BND       price_b", "BND       prize_b"),
            "line 25: a bound of variable 'prize_b', which has no column; the nearest of 3 names .*'price_b'",
        ),
        ("plan.mps", PLAN.replace("MAX", "LARGEST"), "plan.mps, line 3: the sense must be MAX or MIN; got 'LARGEST'"),
        (
            "plan.mps",
            PLAN.replace("RHS\n    RHS", "    price_b   WORK   1.0\nRHS\n    RHS"),
            "line 18: variable 'price_b' is already there",
        ),
        ("plan.mps", PLAN.replace("WORK       10.0", "WORK       -9.0"), "plan.mps: the region is empty"),
        (
            "plan.mps",
            PLAN.replace("ENDATA", "QCMATRIX WORK\n    stock stock 1.0\nENDATA"),
            "Quadratic rows not supported",
        ),
        ("plan.mps", PLAN.replace("ENDATA", "SOS\n S1 s\n    price_a 1\n    stock 2\nENDATA"), "SOS not supported"),
        ("plan.lp", "this is not\nan lp file 12 ~~ >>\n", "plan.lp has no variables"),
        ("plan.lp", "min\n obj: x\nst\n c: nan x + y >= 3\nend\n", "plan.lp has NaN"),
        (
            "plan.mps",
            PLAN.replace("price_b   VALUE      1.0", "price_b   VALUE      nan"),
            "plan.mps, line 15: 'nan' is not a number",
        ),
        (
            "plan.mps",
            "*SENSE:Maximize\n" + PLAN.replace("OBJSENSE\n    MAX\n", ""),
            "only in a comment that it maximises",
        ),
        ("plan.lp", "max\n obj: x[0] + x[1]\nst\n c1: x[0] + x[1] <= 4\nend\n", r"names such as x\[0\].*Write an .mps"),
        ("plan.lp", "min\n obj: x + [ x^2 ]/2\nst\n c1: x + y <= 4\nend\n", "plan.lp has a quadratic objective"),
        (
            "plan.lp",
            "min\n obj: x\nst\n c1: x + y >= 1\nbounds\n x <= 5\nsemi\n x\nend\n",
            "a semi-continuous variable",
        ),
        ("plan.txt", PLAN, r"'plan.txt' must end in .mps, .lp"),
        ("plan.mps", PLAN.replace("price_a", "a").replace("price_b", "b"), "no variable matches costs='price_"),
    ],
)
def test_what_is_refused_in_a_sentence(tmp_path, name, text, message):
    with pytest.raises(ValueError, match=message):
        read_problem(written(tmp_path, text, name), costs="price_*" if "price_*" in message or ".mps" in name else None)


def test_a_file_that_is_not_there_and_one_that_cannot_be_unpacked(tmp_path):
    with pytest.raises(ValueError, match=r"there is no file 'nowhere.mps'"):
        read_problem("nowhere.mps")
    broken, packed = tmp_path / "plan.mps.gz", gzip.compress(PLAN.encode())
    for content in (packed[:60], PLAN.encode(), packed[:40] + b"\xff" * 9 + packed[49:], packed[:-4] + b"1234"):
        broken.write_bytes(content)
        with pytest.raises(ValueError, match=r"plan.mps.gz cannot be unpacked"):
            read_problem(broken)
    (tmp_path / "latin.mps").write_bytes(PLAN.replace("stock", "stück").encode("latin1"))
    with pytest.raises(ValueError, match=r"latin.mps is not written in UTF-8"):
        read_problem(tmp_path / "latin.mps")


def test_files_that_look_strange_are_read(tmp_path):
    """Comments, exponents of Fortran, names of sections as names, no names of sets, letters beyond ASCII."""
    expected = read_problem(written(tmp_path, PLAN), costs="price_*").solve([3.0, 1.0])
    odd = PLAN.replace("VALUE", "ROWS").replace("stock", "größe").replace("LEAST", "BOUNDS")
    odd = odd.replace("10.0 ", "1.0D1").replace("BND ", "   ").replace("5.0\n", "5.0 $ at most\n* nothing here\n")
    problem = read_problem(written(tmp_path, odd), costs="price_*")
    np.testing.assert_array_equal(problem.solve([3.0, 1.0]), expected)
    assert "größe" in problem.names


def test_what_highs_repairs_is_a_warning_in_its_words(tmp_path):
    path = written(tmp_path, PLAN.replace("RHS       VALUE     -7.0", "RHS       NOWHERE   -7.0"))
    with pytest.warns(UserWarning, match=r"plan.mps: HiGHS says: .*NOWHERE"):
        read_problem(path, costs="price_*")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # on what comes with PuLP 4
def test_pulp(tmp_path):
    pulp = pytest.importorskip("pulp")
    model = pulp.LpProblem("plan", pulp.LpMaximize)
    a, b = pulp.LpVariable("price_a", 0, 3), pulp.LpVariable("price_b", 0, 3)
    model += a + 2 * b
    model += a + b <= 4
    model.writeMPS(str(tmp_path / "plan.mps"))
    model.writeLP(str(tmp_path / "plan.lp"))
    with pytest.raises(ValueError, match="Pass sense='max'"):
        read_problem(tmp_path / "plan.mps")
    for name, sense in (("plan.mps", "max"), ("plan.lp", None)):
        np.testing.assert_allclose(read_problem(tmp_path / name, sense=sense).solve([1.0, 2.0]), [1, 3])
