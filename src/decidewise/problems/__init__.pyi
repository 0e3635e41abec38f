# What the package offers; see `decidewise.kit.lazy`.
from decidewise.problems.assignment import Assignment
from decidewise.problems.ball import Ball, Ellipsoid
from decidewise.problems.conic_program import ConicProgram, Exponential, Quadratic, SecondOrder, Semidefinite
from decidewise.problems.contract import Problem
from decidewise.problems.details import SolveDetails
from decidewise.problems.knapsack import Knapsack
from decidewise.problems.known_costs import KnownCosts
from decidewise.problems.levels import (
    DemandCost,
    Levels,
    level_costs,
    level_features,
    lost_sales,
    newsvendor,
    overtime,
    service_level,
)
from decidewise.problems.linear_program import LinearProgram
from decidewise.problems.matching import Matching
from decidewise.problems.min_cost_flow import MinCostFlow
from decidewise.problems.portfolio import Portfolio
from decidewise.problems.present_items import PresentItems
from decidewise.problems.quadratic_program import QuadraticProgram
from decidewise.problems.ranking import Ranking
from decidewise.problems.readers.cvxpy import from_cvxpy
from decidewise.problems.readers.files import read_problem
from decidewise.problems.readers.function import from_function
from decidewise.problems.readers.gurobi import from_gurobi
from decidewise.problems.readers.linopy import from_linopy
from decidewise.problems.readers.problem_file import ProblemFile
from decidewise.problems.readers.pyepo import from_pyepo
from decidewise.problems.readers.pyomo import from_pyomo
from decidewise.problems.shortest_path import ShortestPath
from decidewise.problems.stock import Inventory, Storage
from decidewise.problems.topk import TopK
from decidewise.problems.travelling_salesman import TravellingSalesman
from decidewise.problems.vehicle_routing import VehicleRouting
from decidewise.problems.wrappers import CachedProblem, CountedProblem, ParallelProblem
from decidewise.solvers import Polyhedron

__all__ = [
    "Assignment",
    "Ball",
    "CachedProblem",
    "ConicProgram",
    "CountedProblem",
    "DemandCost",
    "Ellipsoid",
    "Exponential",
    "Inventory",
    "Knapsack",
    "KnownCosts",
    "Levels",
    "LinearProgram",
    "Matching",
    "MinCostFlow",
    "ParallelProblem",
    "Polyhedron",
    "Portfolio",
    "PresentItems",
    "Problem",
    "ProblemFile",
    "Quadratic",
    "QuadraticProgram",
    "Ranking",
    "SecondOrder",
    "Semidefinite",
    "ShortestPath",
    "SolveDetails",
    "Storage",
    "TopK",
    "TravellingSalesman",
    "VehicleRouting",
    "from_cvxpy",
    "from_function",
    "from_gurobi",
    "from_linopy",
    "from_pyepo",
    "from_pyomo",
    "level_costs",
    "level_features",
    "lost_sales",
    "newsvendor",
    "overtime",
    "read_problem",
    "service_level",
]
