"""Rows -> tables, figures and one HTML page. Everything here is a function of the rows: nothing is solved or trained.

- `results`, `read_results`: boards, the rows of one problem each with published numbers beside them
- `tables`, `formats`: tables, and their Markdown, LaTeX and CSV
- `chart`, `chart_builders`: charts as plain data; `matplotlib_charts` draws them into files
- `sections`: the parts of a report; others can add their own, as `decidewise.paper.report` does
- `page`: all sections on one page, where a small script draws the same charts
- `write`: the only part that touches the disk
"""

from decidewise.runtime.extras import require
from decidewise.runtime.lazy import import_lazily

require("cli", by=__name__)
import_lazily(__name__)
