"""What a user meets first: what `import decidewise` costs, what it shows, and how its names are found."""

import ast
import pickle
import pydoc
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import decidewise

LAZY = ("decidewise", "decidewise_bench.experiments", "decidewise.models", "decidewise.problems", "decidewise.rows")
ROOMS = (
    "data",
    "evaluate",
    "frontends",
    "losses",
    "measure",
    "models",
    "operate",
    "problems",
    "testing",
)


def run(code):
    """Run code in a fresh interpreter and return what it prints."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def loaded_by(code):
    return set(run(f"import sys\n{code}\nprint(*sys.modules)").split())


def test_import_decidewise_loads_nothing_heavy():
    packages = {name.partition(".")[0] for name in loaded_by("import decidewise")}
    assert not packages & {"numpy", "scipy", "sklearn", "numba", "torch", "jax", "matplotlib", "pyarrow", "pandas"}


def test_the_first_estimator_loads_no_solver_no_loss_and_no_figure():
    loaded = loaded_by("from decidewise import WiseRegressor")
    assert "decidewise.models.wise_regressor" in loaded
    assert not loaded & {"highspy", "clarabel", "numba", "matplotlib"}
    assert not [name for name in loaded if name.startswith(("decidewise.losses", "decidewise.problems"))]


def test_solvers_are_loaded_where_they_solve_and_extras_never():
    loaded = loaded_by(
        "import decidewise.app.cli.app, decidewise.operate.diagnose, decidewise.losses\n"
        "from decidewise.problems import *"
    )
    assert "decidewise.problems.portfolio.cone" in loaded
    assert not loaded & {"highspy", "clarabel", "numba", "torch", "jax", "polars", "pyepo", "gurobipy"}


def test_dir_and_help_show_what_a_user_came_for():
    names = {
        "WiseRegressor",
        "DecisionRegressor",
        "Problem",
        "Loss",
        "compare",
        "normalized_regret",
        "diagnose",
        "decide",
    }
    assert names | {"SolverError", "CalibrationWarning", *ROOMS} <= set(dir(decidewise))
    assert not {"import_lazily", "annotations"} & set(dir(decidewise))
    shown = pydoc.plain(pydoc.render_doc(decidewise))
    for line in (
        "class WiseRegressor(",
        "class Problem(",
        "class Loss(",
        "decide(model",
        "diagnose(problem",
        "compare(",
    ):
        assert line in shown


def test_rooms_are_attributes_after_a_plain_import():
    assert run("import decidewise; print(decidewise.problems.TopK(3, 1).n_costs)") == "3\n"


@pytest.mark.parametrize("package", LAZY)
def test_type_checkers_and_users_see_the_same_names(package):
    module = import_module(package)
    stub = ast.parse(Path(module.__file__).with_suffix(".pyi").read_text())
    [listed] = [ast.literal_eval(node.value) for node in stub.body if isinstance(node, ast.Assign)]
    assert listed == sorted(listed)
    assert set(listed) - {"__version__"} == {*module.__all__, *(ROOMS if package == "decidewise" else ())}
    for name in listed:
        assert getattr(module, name) is not None
        assert name in dir(module)


def test_a_star_brings_names_but_no_rooms():
    names = {}
    exec("from decidewise import *", names)  # noqa: S102
    assert "WiseRegressor" in names
    assert not set(ROOMS) & set(names)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'decidewise' has no attribute 'WizeRegressor'"):
        decidewise.WizeRegressor  # noqa: B018
    with pytest.raises(ImportError, match="WizeRegressor"):
        from decidewise import WizeRegressor  # noqa: F401, PLC0415


@pytest.mark.parametrize(
    "code",
    [
        "from decidewise import decide",
        "import decidewise.operate.decide; decide = decidewise.operate.decide",
        "from decidewise.operate.decide import decide; import decidewise; assert decide is decidewise.operate.decide",
    ],
)
def test_a_function_wins_over_the_module_of_its_name(code):
    assert run(f"{code}; print(decide.__module__, decide.__qualname__)") == "decidewise.operate.decide decide\n"


def test_what_else_a_module_of_that_name_holds_can_be_imported_and_pickled():
    from decidewise.operate.diagnose import Diagnosis, diagnose  # noqa: PLC0415

    assert decidewise.operate.diagnose is diagnose
    assert pickle.loads(pickle.dumps((diagnose, Diagnosis))) == (diagnose, Diagnosis)  # noqa: S301


def test_python_m_is_the_command():
    result = subprocess.run([sys.executable, "-m", "decidewise", "--help"], check=True, capture_output=True, text=True)
    assert "Usage: decidewise " in result.stdout
