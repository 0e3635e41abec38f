"""Turn rows into tables, figures and one HTML page. A report depends on the rows alone: it solves and trains nothing.

- `results`, `read_results`: boards; a board holds the rows of one problem, and any published numbers for it
- `tables`, `formats`: tables, and their Markdown, LaTeX and CSV
- `chart`, `chart_builders`: charts as plain data; `matplotlib_charts` draws them into files
- `sections`: the sections of a report; other packages can add theirs, as `decidewise_bench.paper.report` does
- `page`: all sections on one HTML page, whose script draws the same charts
- `write`: the files of a report
"""

from decidewise.kit.lazy import import_lazily

import_lazily(__name__)
