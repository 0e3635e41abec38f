# What the package offers; see `decidewise.kit.lazy`.
from decidewise.operate import distributed
from decidewise.operate.choose import choose_files
from decidewise.operate.decide import decide, decide_files, evaluate_files
from decidewise.operate.diagnose import diagnose

__all__ = [
    "choose_files",
    "decide",
    "decide_files",
    "diagnose",
    "distributed",
    "evaluate_files",
]
