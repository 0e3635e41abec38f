"""Any conic program: second-order, semidefinite and exponential cones, and convex quadratic constraints."""

from decidewise.problems.conic_program.cones import Exponential, Quadratic, SecondOrder, Semidefinite
from decidewise.problems.conic_program.problem import ConicProgram

__all__ = ["ConicProgram", "Exponential", "Quadratic", "SecondOrder", "Semidefinite"]
