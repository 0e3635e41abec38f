"""Rows -> tables, figures and one HTML page. Everything here is a function of the rows: nothing is solved or trained.

- `boards`, `reading`: the rows of one problem, with the published numbers beside them
- `verdicts`, `misses`: which published cells are reproduced, and what is known about the others
- `contest`: rows of models that are to decide better than any published one
- `tables` and `formats`: tables, and their Markdown, LaTeX and CSV
- `charts` and `views`: charts as plain data; `figures` draws them into files
- `illustrations`: the paper's drawings
- `page`: all of it on one page, where a small script draws the same charts
- `write`: the only part that touches the disk
"""

from decidewise.runtime.extras import require

require("cli", by=__name__)
