"""What a user gets who has no checkout."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling.build import build_wheel

import decidewise_bench.field
import decidewise_bench.paper
import decidewise_bench.real
from decidewise_bench.experiments import Store
from decidewise_bench.paper import TABLES

ROOT = Path(__file__).parents[2]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The folder that the two wheels of this checkout install."""
    for project in (ROOT, ROOT / "bench"):
        monkeypatch.chdir(project)
        wheel = build_wheel(str(tmp_path))
        with zipfile.ZipFile(tmp_path / wheel) as archive:
            archive.extractall(tmp_path / "installed")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "installed"


def files(folder):
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.suffix in {".toml", ".csv"}
    }


def test_the_wheel_carries_the_plans_and_finds_them(installed, tmp_path):
    for room in (decidewise_bench.paper, decidewise_bench.real, decidewise_bench.field):
        source = Path(room.__file__).parent
        assert files(installed / "decidewise_bench" / source.name) == files(source) != {}
    Store(tmp_path / "rows.sqlite")
    command = "import decidewise.app.cli.app as cli; print(cli.__file__); cli.app()"
    result = subprocess.run(
        [sys.executable, "-c", command, "paper", "status", *TABLES, "quick", "--store", "rows.sqlite"],
        env=os.environ | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert str(installed) in result.stdout
    assert all(f" {name} " in result.stdout for name in (*TABLES, "quick"))
