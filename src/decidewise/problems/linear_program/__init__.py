"""Any linear program, with variables in whole numbers or without."""

from decidewise.problems.linear_program.problem import LinearProgram

__all__ = ["LinearProgram"]
