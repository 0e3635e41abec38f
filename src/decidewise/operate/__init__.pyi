# What the package offers; see `decidewise.kit.lazy`.
from decidewise.operate import distributed
from decidewise.operate.decide import decide, decide_files, evaluate_files, predict
from decidewise.operate.diagnose import diagnose

__all__ = [
    "decide",
    "decide_files",
    "diagnose",
    "distributed",
    "evaluate_files",
    "predict",
]
