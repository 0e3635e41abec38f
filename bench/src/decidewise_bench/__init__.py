"""The evidence for decidewise: a plan gives rows, and rows give a page.

- `experiments`: plans, and the rows that they produce, in one SQLite file
- `report`: rows as tables, figures and one page
- `paper`, `real`, `field`: the plans, and what their reports add
- `commands`: `decidewise paper`, `real`, `field` and `bench`
"""

__version__ = "0.1.0"
