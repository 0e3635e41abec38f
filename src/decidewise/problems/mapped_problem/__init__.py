"""What programs of any kind have in common: predicted costs on expressions of variables, and known costs."""

from decidewise.problems.mapped_problem.problem import EMPTY, MappedProblem, ProgramOptions, taken

__all__ = ["EMPTY", "MappedProblem", "ProgramOptions", "taken"]
