"""What is said in more than one of the project's files is the same in each."""

import tomllib
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

import decidewise

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_oldest_versions_are_those_that_the_project_allows():
    lines = (ROOT / "constraints-oldest.txt").read_text().splitlines()
    oldest = dict(line.split("==") for line in lines if "==" in line and not line.startswith("torch"))
    extras = PROJECT["optional-dependencies"]
    needed = [Requirement(line) for line in (*PROJECT["dependencies"], *extras["cli"])]
    assert {requirement.name for requirement in needed} <= set(oldest)
    for requirement in map(Requirement, chain(PROJECT["dependencies"], *extras.values())):
        if requirement.name in oldest:
            bounds = [Version(part.version) for part in requirement.specifier if part.operator in (">=", "==")]
            assert bounds == [Version(oldest[requirement.name])], requirement


def test_the_version_to_cite_is_this_one():
    assert f"version: {decidewise.__version__}" in (ROOT / "CITATION.cff").read_text().splitlines()


def test_every_python_that_is_named_is_tested():
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if "Python :: 3." in line]
    matrix = ", ".join(f'"{version}"' for version in named)
    assert f"python: [{matrix}]" in (ROOT / ".github" / "workflows" / "test.yml").read_text()
    assert PROJECT["requires-python"] == f">={named[0]}"
