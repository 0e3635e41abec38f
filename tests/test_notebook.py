"""The notebook of the tutorial runs, and shows what is stored in it."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def runner():
    spec = importlib.util.spec_from_file_location("notebook", DOCS / "notebook.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def text_of(output):
    return "".join(output.get("text", output.get("data", {}).get("text/plain", [])))


def test_the_cells_of_the_tutorial_show_what_is_stored():
    notebook = json.loads((DOCS / "tutorial_notebook.ipynb").read_text(encoding="utf-8"))
    stored = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for expected, found in zip(stored, runner().outputs(notebook), strict=True):
        assert [sorted(output.get("data", output)) for output in expected] == [
            sorted(output.get("data", output)) for output in found
        ]
        for before, now in zip(map(text_of, expected), map(text_of, found), strict=True):
            assert NUMBER.sub("", before).split() == NUMBER.sub("", now).split()
            numbers = [[float(number.replace(",", "")) for number in NUMBER.findall(text)] for text in (before, now)]
            assert numbers[1] == pytest.approx(numbers[0], rel=0.02, abs=0.02)  # other versions may round otherwise
