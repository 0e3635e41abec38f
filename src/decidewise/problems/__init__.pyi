# What the package offers; see `decidewise.runtime.lazy`.
from decidewise.polyhedra import Polyhedron
from decidewise.problems.assignment import Assignment
from decidewise.problems.ball import Ball
from decidewise.problems.base import Problem
from decidewise.problems.ellipsoid import Ellipsoid
from decidewise.problems.knapsack import Knapsack
from decidewise.problems.matching import Matching
from decidewise.problems.min_cost_flow import MinCostFlow
from decidewise.problems.portfolio import Portfolio
from decidewise.problems.ranking import Ranking
from decidewise.problems.readers import from_pyepo
from decidewise.problems.shortest_path import ShortestPath
from decidewise.problems.stock import Inventory, Storage
from decidewise.problems.topk import TopK
from decidewise.problems.travelling_salesman import TravellingSalesman
from decidewise.problems.vehicle_routing import VehicleRouting
from decidewise.problems.wrappers import CachedProblem, CountedProblem, KnownCosts, ParallelProblem

__all__ = [
    "Assignment",
    "Ball",
    "CachedProblem",
    "CountedProblem",
    "Ellipsoid",
    "Inventory",
    "Knapsack",
    "KnownCosts",
    "Matching",
    "MinCostFlow",
    "ParallelProblem",
    "Polyhedron",
    "Portfolio",
    "Problem",
    "Ranking",
    "ShortestPath",
    "Storage",
    "TopK",
    "TravellingSalesman",
    "VehicleRouting",
    "from_pyepo",
]
