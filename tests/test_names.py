"""One name for one thing."""

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "decidewise"


def test_no_two_public_classes_share_a_name():
    homes = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(SOURCE)))
    assert len(homes) > 50
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}
