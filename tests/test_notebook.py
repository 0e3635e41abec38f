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


def test_the_page_of_the_notebook_has_its_cells_and_what_they_show():
    specification = importlib.util.spec_from_file_location("notebook_page", DOCS / "_ext" / "notebook_page.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    cells = [
        {"cell_type": "markdown", "source": ["# A day\n", "of prices"]},
        {"cell_type": "code", "source": ["print(1)"], "outputs": [{"output_type": "stream", "text": ["1\n"]}]},
        {"cell_type": "code", "source": ["x.plot();"], "outputs": [{"data": {"image/png": "aGk="}}]},
        {"cell_type": "code", "source": ["x"], "outputs": [{"data": {"text/plain": ["x"], "text/html": ["<b>x</b>"]}}]},
    ]
    text, pictures = module.page({"cells": cells})
    assert pictures == {"tutorial_notebook_0.png": b"hi"}
    for part in (
        "# A day\nof prices",
        "```python\nprint(1)\n```\n\n```text\n1\n```",
        "![What x.plot() draws](",
        "<b>x</b>",
    ):
        assert part in text
