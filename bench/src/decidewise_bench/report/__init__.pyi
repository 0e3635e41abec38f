# What the package offers; see `decidewise.kit.lazy`.
from decidewise_bench.report.write import benchmark_report, write_report

__all__ = ["benchmark_report", "write_report"]
