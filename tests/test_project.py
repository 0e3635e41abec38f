"""What is said in more than one of the project's files is the same in each."""

import re
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


def test_workflows_name_actions_by_hash_and_one_job_may_publish():
    texts = {path.name: path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml")}
    for name, text in texts.items():
        actions = re.findall(r"uses: *(.*)", text)
        assert actions, name
        for action in actions:
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}   # v\d+\.\d+\.\d+", action), f"{name}: {action}"
        assert text.count("actions/checkout@") == text.count("persist-credentials: false")
        assert "\npermissions:\n  contents: read\n" in text
    assert sum(text.count("id-token: write") for text in texts.values()) == 1
    publishing = texts["release.yml"].partition("  publish:")[2]
    assert "id-token: write" in publishing
    assert "run:" not in publishing


def test_the_conda_package_needs_what_the_command_line_needs():
    lines = [line.strip() for line in (ROOT / ".ci" / "recipe.yaml").read_text().splitlines()]
    assert f'version: "{decidewise.__version__}"' in lines
    assert f'summary: "{PROJECT["description"]}"' in lines
    run = lines[lines.index("run:") + 1 : lines.index("tests:") - 1]
    needed = (f"python{PROJECT['requires-python']}", *PROJECT["dependencies"], *PROJECT["optional-dependencies"]["cli"])
    named = [line.removeprefix("- ").replace("matplotlib-base", "matplotlib") for line in run]
    assert list(map(Requirement, named)) == list(map(Requirement, needed))
