"""All that the description of the server allows, and what it forbids, is answered as it says."""

import os
import subprocess
import sys

import numpy as np
import pytest

from decidewise import GeneralizedLinear, WiseRegressor
from decidewise.app.server import Limits
from decidewise.problems import ProblemFile

pytest.importorskip("schemathesis", minversion="4")

RNG = np.random.default_rng(0)
X, ITEMS, COSTS = RNG.normal(size=(40, 2)), RNG.normal(size=(40, 3, 2)), RNG.uniform(1, 2, size=(40, 3))
MODELS = {
    "names": (WiseRegressor().fit(X, COSTS), {"feature_names": ["wind", "hour"]}),
    "items": (GeneralizedLinear("gamma").fit(ITEMS, COSTS), {}),
}
# Too many rows are refused by 413, which the check does not expect of itself.
SETTINGS = '[checks]\nnegative_data_rejection.expected-statuses = ["400", "401", "405", "413", "415", "422"]\n'


@pytest.mark.parametrize("name", MODELS)
def test_the_server_does_what_it_says(name, served, tmp_path):
    (tmp_path / "problem.toml").write_text('kind = "top_k"\nn = 3\nk = 1\n')
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)
    model, summary = MODELS[name]
    problem = ProblemFile.read(tmp_path / "problem.toml")
    with served(model, problem, summary, token="secret", limits=Limits(max_rows=20)) as client:
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"{client.url}/openapi.json", "--seed", "0"]
        command += ["--header", "Authorization: Bearer secret", "--max-examples", "25", "--no-color"]
        result = subprocess.run(
            command, cwd=tmp_path, check=False, capture_output=True, text=True, env={**os.environ, "COLUMNS": "200"}
        )
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-2000:]
    assert "Tested: 4" in result.stdout
