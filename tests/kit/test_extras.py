"""Without an extra, what needs it says so in one sentence, and everything else works."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from decidewise.kit.lazy import EXTRAS

ROOT = Path(__file__).parents[2]


HIDE = """
import sys
from importlib.machinery import PathFinder
class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name in {hidden!r} else super().find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Hiding
"""


def run(code, *hidden):
    """Run code in a fresh interpreter where some modules are not installed."""
    code = HIDE.format(hidden=hidden) + code
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)


def test_extras_are_those_of_the_project():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extra, modules in EXTRAS.items():
        assert sorted(re.match(r"[\w-]+", requirement)[0] for requirement in extras[extra]) == sorted(modules)


def test_without_the_command_line_the_library_works():
    code = (
        "from decidewise import *\n"
        "from decidewise import data, losses, problems\n"
        "train = data.make_shortest_path(50, degree=2, seed=0)\n"
        "model = WiseRegressorCV(train.problem, [WiseRegressor(), GeneralizedLinear()]).fit(train.X, train.costs)\n"
        "DecisionRegressor(train.problem, epochs=1, random_state=0).fit(train.X, train.costs)\n"
        "print(decide(model, train.problem, train.X).shape)"
    )
    result = run(code, *EXTRAS["cli"])
    assert result.stdout == "(50, 40)\n", result.stderr


@pytest.mark.parametrize("missing", ["typer", "pyarrow"])
def test_the_command_names_the_extra_and_nothing_else(missing):
    result = run("from decidewise.__main__ import main; main()", missing)
    assert result.returncode == 2
    assert result.stderr == f'Error: the command line needs {missing}: pip install "decidewise[cli]".\n'


def test_the_server_names_its_extra():
    pytest.importorskip("fastapi")
    result = run(
        "from decidewise.__main__ import main; import sys; sys.argv[1:] = ['serve', 'm.dw']; main()", "uvicorn"
    )
    assert result.returncode == 2
    assert result.stderr == 'Error: decidewise.app.server needs uvicorn: pip install "decidewise[serve]".\n'


@pytest.mark.parametrize("extra", ["onnx", "skops"])
def test_models_in_other_forms_name_their_extra(extra, tmp_path):
    code = (
        "from sklearn.neighbors import KNeighborsRegressor\n"
        "from decidewise import export_onnx, save_model\n"
        "model = KNeighborsRegressor(1).fit([[0.0], [1.0]], [[0.0], [1.0]])\n"
        f"{'export_onnx' if extra == 'onnx' else 'save_model'}(model, {str(tmp_path / 'm')!r})"
    )
    result = run(code, extra)
    assert f' needs {extra}: pip install "decidewise[{extra}]".' in result.stderr.strip().splitlines()[-1]
