# What the package offers; see `decidewise.runtime.lazy`.
from decidewise.report.write import write_report

__all__ = ["write_report"]
