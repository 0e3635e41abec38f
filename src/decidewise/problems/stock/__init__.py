"""Problems that carry a stock from period to period: a battery, a warehouse."""

from decidewise.problems.stock.inventory import Inventory
from decidewise.problems.stock.storage import Storage

__all__ = ["Inventory", "Storage"]
