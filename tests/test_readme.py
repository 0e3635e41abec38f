import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_there_is_code_to_run():
    assert BLOCKS


@pytest.mark.parametrize("block", BLOCKS)
def test_the_code_of_the_readme_runs(block, capsys):
    exec(compile(block, "README.md", "exec"), {})  # noqa: S102
    assert "WISE" in capsys.readouterr().out


def test_every_linked_file_exists():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (Path(__file__).parents[1] / target).exists(), target
