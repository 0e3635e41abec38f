from pathlib import Path

import numpy as np
import pytest
import scipy
import sklearn

import decidewise
from decidewise_bench.experiments import code_version
from decidewise_bench.experiments.version import LIBRARIES, PARTS, fingerprint, library_versions, with_libraries

SOURCE = '''"""Say what it is."""

def double(x):
    """Double it."""
    return 2 * x  # a comment
'''


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(SOURCE)
    return path


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("# a comment", "# another", True),
        ("Double it.", "Add it to itself.", True),
        ("Say what it is.", "", True),
        ("2 * x", "(2  *  x)", True),
        ("2 * x", "3 * x", False),
        ("double", "twice", False),
    ],
)
def test_what_the_code_does_counts_and_what_it_says_does_not(module, old, new, same):
    before = fingerprint([module])
    module.write_text(SOURCE.replace(old, new))
    assert (fingerprint([module]) == before) is same


def test_version_of_the_package():
    version, plus, code = code_version().partition("+")
    assert (version, plus, len(code)) == (decidewise.__version__, "+", 12)
    assert code_version() == f"{version}+{code}"


def test_version_covers_the_modules_of_a_plan(module, monkeypatch):
    monkeypatch.syspath_prepend(str(module.parent))
    with_module = code_version.__wrapped__(("module",))
    assert with_module != code_version()
    module.write_text(SOURCE.replace("2 * x", "x + x"))
    assert code_version.__wrapped__(("module",)) != with_module


def test_every_part_exists():
    for part in PARTS:
        assert (Path(decidewise.__file__).parent / part).exists(), part


def test_libraries_are_named_with_the_versions_that_are_imported():
    found = library_versions()
    assert f"NumPy {np.__version__}, SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}, Numba" in found
    assert all(f"{name} " in found for name in LIBRARIES)
    assert with_libraries("NumPy 1.0") == found.replace(np.__version__, "1.0", 1)


@pytest.mark.parametrize("text", ["numpy", "pandas 2.0", "NumPy 2.0; SciPy 1.0 x"])
def test_libraries_that_are_none(text):
    with pytest.raises(ValueError, match=r"expected versions such as .*, of the libraries NumPy, SciPy"):
        with_libraries(text)
