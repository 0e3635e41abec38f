"""Every example runs, on small data, and prints something; those that need a missing extra are skipped."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
#: Arguments of an example's `main` that make it short.
SMALL = {
    "blind_spots": {"n_seeds": 1, "truths": ("60 features",)},
    "known_costs": {"n_seeds": 1, "n_test": 50},
    "pyepo_one_line": {"n_train": 64, "n_test": 50, "epochs": 2},
    "costs_seen_in_part": {"draws": 1, "rows": (2000,), "degrees": (8,)},
    "field_grids": {"grids": (3,), "rows": 40, "epochs": 1, "trials": 1, "rates": (1e-2,), "authors": True},
    "field_published": {"seeds": (42,), "draws": 2, "n_test": 20},
    "demand": {"draws": 1},
    "demand_real": {"tasks": ("restaurant",), "windows": 1},
    "hourly_series": {"windows": 1, "series": ("drifting",), "decisions": ("cheapest hours",)},
    "interval_coverage": {"rounds": 2, "sizes": (50,)},
    "lancer": {"n_test": 50, "seeds": (42,), "rates": (1e-2,)},
    "larger_than_memory": {"megabytes": 1, "times": 1, "limit": False},
    "reduction": {"workers": (1, 10)},
    "rehearsal": {"only": ("restaurant",)},
    "scales": {"trials": 1, "n_test": 50, "data": Path("nowhere")},
    "rates": {"trials": 10, "sizes": (32, 64, 128)},
    "seasons": {"draws": 2, "rows": 40},
    "spo_plus": {"trials": 1, "rows": 60, "degrees": (1, 8)},
    "votes": {"n_seeds": 1, "names": ("knapsack, degree 1",)},
    "terrain_network": {"n_train": 20, "n_test": 20, "side": 4, "epochs": 1},
    "torch_network": {"n_train": 64, "n_test": 50, "epochs": 2},
}
EXTRAS = {"gurobipy", "jax", "pyepo", "torch"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # an example may write files
    try:
        example = runpy.run_path(str(path), run_name=path.stem)
    except ModuleNotFoundError as missing:
        if missing.name not in EXTRAS:
            raise
        pytest.skip(f"needs {missing.name}")
    example["main"](**SMALL.get(path.stem, {}))
    assert capsys.readouterr().out
