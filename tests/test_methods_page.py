"""The page on methods names every loss, and every method that is not offered."""

import re
from pathlib import Path

from decidewise.losses import NOT_OFFERED, registry


def test_every_loss_is_in_the_table():
    page = (Path(__file__).parents[1] / "docs" / "methods.md").read_text(encoding="utf-8")
    names = {
        name
        for line in page.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`([^`]+)`", line.split("|")[1])
    }
    assert names == set(registry)
    assert all(f"`{name}` is not offered" in page for name in NOT_OFFERED)
