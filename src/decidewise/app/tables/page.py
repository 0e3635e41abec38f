"""The page of a comparison: one self-contained HTML file."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import decidewise
from decidewise.app.pages.page import chart_data, render_template, source_of
from decidewise.app.pages.style import DARK, LIGHT, styles
from decidewise.app.tables.charts import charts_of_comparison
from decidewise.app.tables.comparison import FORECAST, LEAST_SQUARES, MEAN, WISE, TableComparison
from decidewise.app.tables.headline import fit_command, headline, how_measured, in_unit, number, row_in_words
from decidewise.app.tables.health import health
from decidewise.app.tables.savings import Part, by_item, by_kind_of_row, extreme_rows

_VERDICTS = {"better": "Worth changing", "unproven": "Not proven", "worse": "Keep it", "same": "Keep it"}

#: How to go on in Python where the table is in memory.
_IN_MEMORY = """found = compare_table(table, problem, ...)  # which made this page
model = found.fit()
decisions = model.decide(new_table, problem).columns()  # or .regret"""


def render_comparison(result: TableComparison, command: Mapping[str, Any] | None = None) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    result : TableComparison
    command : mapping, optional
        As for `fit_command`, to show how to go on; None if the table was in memory.
    """
    charts = charts_of_comparison(result)
    looks = styles(result.regrets, first=(LEAST_SQUARES, WISE, FORECAST, MEAN))
    differs = result.verdict.outcome != "same"
    gains = result.truth.problem.sense == "max"
    return render_template(
        "compare.html.j2",
        package="decidewise.app.tables",
        headline=headline(result),
        verdict=result.verdict.outcome,
        verdict_words=_VERDICTS[result.verdict.outcome],
        measured=how_measured(result),
        regret_words=f"what decisions {'gain less than' if gains else 'cost above'} the best ones in hindsight",
        title=result.samples.noun,
        unit=in_unit(result),
        baseline=result.baseline,
        challenger=result.challenger,
        failures=result.failures,
        models=[row_in_words(result, row) for row in result.table],
        facts=_facts(result, command),
        over_time=next((chart for chart in charts if chart.name == "over_time"), None),
        predicted=charts[-1],
        items=_bars(by_item(result)) if differs else [],
        kinds={kind: _bars(parts) for kind, parts in by_kind_of_row(result).items()} if differs else {},
        extremes=[(key, number(saved), f"{share:.1f}") for key, saved, share in extreme_rows(result)],
        findings=health(result),
        cost_words=_cost_words(result),
        tried=list(_tried(result)),
        families={} if result.choice.search is None else result.choice.search.notes_,
        shell=None if command is None else _shell(result, command),
        python=_IN_MEMORY if command is None else _python(command),
        looks=looks,
        light=LIGHT,
        dark=DARK,
        css=source_of("page.css"),
        own_css=source_of("compare.css", package="decidewise.app.tables"),
        js=source_of("page.js"),
        data=chart_data(looks, charts),
    )


def _facts(result: TableComparison, command: Mapping[str, Any] | None) -> dict[str, str]:
    samples = result.samples
    table, problem = ("in memory", "") if command is None else (command["data"], f"{command['problem']}: ")
    kind = "features of each item" if samples.per_item else "features"
    return {
        "Table": f"{table}: {len(samples):,} rows, {len(samples.cost_names)} costs",
        "Problem": f"{problem}{result.truth.problem!r}",
        "Features": f"{len(result.choice.prepared.feature_names_)} {kind}: "
        + _shortened(result.choice.prepared.feature_names_),
        "Made by": f"decidewise {decidewise.__version__}",
    }


def _shortened(names: Sequence[str], most: int = 12) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} others" if len(names) > most else "")


def _bars(parts: Iterable[Part]) -> list[dict[str, Any]]:
    parts = list(parts)
    largest = max((abs(part.saving) for part in parts), default=0.0) or 1.0
    bars = []
    for part in parts:
        width = 50 * abs(part.saving) / largest
        bars.append(
            {
                "name": part.name,
                "n_rows": f"{part.n_rows:,}",
                "saved": number(part.saving),
                "error": number(1.96 * part.error) if np.isfinite(part.error) else "",
                "loss": part.saving < 0,
                "left": f"{50 - width if part.saving < 0 else 50:.2f}",
                "width": f"{width:.2f}",
            }
        )
    return bars


def _cost_words(result: TableComparison) -> str:
    search = result.choice.search
    if search is None:
        return f"The model was named, not chosen; measuring took {result.n_solves:,} solver calls."
    measuring = result.n_solves - search.n_solves_
    return (
        f"Choosing took {search.n_solves_:,} solver calls and {result.choice.seconds:.1f} seconds; measuring the "
        f"models of the first table took {measuring:,} more. The whole comparison took {result.seconds:.1f} seconds. "
        "Training the chosen model itself calls no solver; each decision is one call."
    )


def _tried(result: TableComparison) -> Iterable[dict[str, str]]:
    if result.choice.search is None:
        return
    found = result.choice.search.cv_results_
    for i in np.argsort(found["rank"], kind="stable"):
        scored = np.isfinite(found["regret"][i])
        yield {
            "name": str(found["candidate"][i]),
            "regret": f"{found['regret'][i]:.2f}" if scored else "",
            "error": f"{found['standard_error'][i]:.2f}" if scored else "",
            "solves": f"{int(found['n_solves'][i]):,}",
            "seconds": f"{found['seconds'][i]:.2f}",
            "note": str(found["note"][i]),
        }


def _shell(result: TableComparison, command: Mapping[str, Any]) -> str:
    text = [word for name, value in command.get("text", {}).items() for word in (f"--{name}", value)]
    problem = str(command["problem"])
    decide = ["decidewise", "decide", "model.dw", "new.csv", "--problem", problem, *text, "--out", "decisions.csv"]
    return "\n".join([fit_command(result, command), shlex.join(decide), "decidewise inspect model.dw"])


def _python(command: Mapping[str, Any]) -> str:
    return "\n".join(
        [
            "from decidewise import load_model",
            'model = load_model("model.dw")  # what the first line of shell has written',
            f'decisions = model.decide("new.csv", {json.dumps(str(command["problem"]))}).columns()  # or .regret',
        ]
    )
