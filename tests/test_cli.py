import subprocess
import sys

import pytest
from typer.testing import CliRunner

import decidewise
from decidewise.cli import app
from decidewise.demo import run_demo


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout.strip() == f"decidewise {decidewise.__version__}"


def test_demo_prints_one_table_and_writes_one_figure(tmp_path, capsys):
    results = run_demo(tmp_path / "new")
    shown = capsys.readouterr().out
    assert shown.count("┏") == 1
    assert "least squares" in shown
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["demo.png"]
    assert (tmp_path / "new" / "demo.png").read_bytes().startswith(b"\x89PNG")
    for result in results:
        assert result.floor < result.regret.low < result.regret.estimate < result.regret.high
    for degree in (4, 8):
        blind, wise = (r.regret.estimate for r in results if r.degree == degree)
        assert wise < blind


@pytest.mark.parametrize("heavy", ["numpy", "sklearn", "numba", "torch", "jax", "matplotlib", "pyarrow", "pandas"])
def test_import_decidewise_loads_nothing_heavy(heavy):
    code = f"import sys, decidewise; sys.exit({heavy!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("extra", ["torch", "jax", "polars", "pyepo", "gurobipy"])  # scikit-learn loads pandas
def test_no_part_of_the_core_loads_an_extra(extra):
    modules = (
        "decidewise.models, decidewise.problems, decidewise.data, decidewise.evaluate, decidewise.cli, decidewise.demo"
    )
    code = f"import sys, {modules}; sys.exit({extra!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'WizeRegressor'"):
        decidewise.WizeRegressor  # noqa: B018
