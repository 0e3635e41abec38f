import importlib.util
import re
import sys
from pathlib import Path

CONTRIBUTING = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()


def test_what_one_can_write_keeps_the_contracts(tmp_path, monkeypatch):
    (block,) = re.findall(r"```python\n(.*?)```", CONTRIBUTING, flags=re.DOTALL)
    (tmp_path / "mine.py").write_text(block)
    spec = importlib.util.spec_from_file_location("mine", tmp_path / "mine.py")
    mine = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mine", mine)
    spec.loader.exec_module(mine)

    mine.check()
