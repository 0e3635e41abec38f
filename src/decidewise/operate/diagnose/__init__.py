"""Whether a decision-focused model would pay: the regret it would save, the part that is noise, and advice."""

from decidewise.operate.diagnose.diagnosis import Diagnosis
from decidewise.operate.diagnose.measure import diagnose

__all__ = ["Diagnosis", "diagnose"]
