"""Data: features, realised costs and their problem, read from tables, or drawn from a population or by generators.

The generators also return the conditional mean of the costs.
"""

from decidewise.data.batches import draw_rows
from decidewise.data.dataset import Dataset
from decidewise.data.knapsack import make_knapsack
from decidewise.data.portfolio import make_portfolio
from decidewise.data.shortest_path import make_shortest_path
from decidewise.data.storage import make_storage
from decidewise.data.tables import read_features, read_table
from decidewise.data.tours import make_travelling_salesman, make_vehicle_routing

__all__ = [
    "Dataset",
    "draw_rows",
    "make_knapsack",
    "make_portfolio",
    "make_shortest_path",
    "make_storage",
    "make_travelling_salesman",
    "make_vehicle_routing",
    "read_features",
    "read_table",
]
