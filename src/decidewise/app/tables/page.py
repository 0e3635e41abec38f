"""The page of a comparison: one self-contained HTML file."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from math import floor, log10
from typing import Any

import numpy as np

import decidewise
from decidewise.app.pages import DARK, LIGHT, chart_data, render_template, source_of, styles
from decidewise.app.tables.choice import CHOICE, FORECAST, ITERATED, LEAST_SQUARES, MEAN, WISE
from decidewise.app.tables.comparison import TableComparison
from decidewise.app.tables.headline import (
    explanation,
    fit_command,
    headline,
    how_measured,
    in_unit,
    model_in_words,
    row_in_words,
    saves_heading,
    saves_word,
    verdict_in_words,
)
from decidewise.app.tables.health import doubts, health
from decidewise.app.tables.samples import shown_key
from decidewise.app.tables.savings import (
    FORESIGHT,
    Part,
    bills,
    by_item,
    by_kind_of_row,
    charts_of_comparison,
    extreme_rows,
)
from decidewise.evaluate import Interval
from decidewise.evaluate.intervals import number, plus_minus
from decidewise.kit.checks import listed
from decidewise.models.selection.families import SPO_PLUS

#: How to go on in Python where the table is in memory.
_IN_MEMORY = """found = compare_table(table, problem, ...)  # which made this page
model = found.fit()
decisions = model.decide(new_table, problem).columns()  # or .regret"""


def render_comparison(result: TableComparison, command: Mapping[str, Any] | None = None) -> str:
    """Return the page as HTML; `command` is as for `fit_command`, or None if the table was in memory."""
    charts, findings = charts_of_comparison(result), health(result)
    doubtful = doubts(findings)
    looks = styles(result.regrets, first=(LEAST_SQUARES, WISE, FORECAST, MEAN, ITERATED, CHOICE))
    differs = result.verdict.outcome != "same"
    gains = result.truth.problem.sense == "max"
    return render_template(
        "compare.html.j2",
        package="decidewise.app.tables",
        headline=headline(result),
        verdict="doubtful" if doubtful else result.verdict.outcome,
        verdict_words=verdict_in_words(result, doubtful),
        bills=_bills(result),
        next_command="model = found.fit()" if command is None else fit_command(result.chosen, command),
        gains=gains,
        saves=saves_heading(result),
        per_year=_per_year(result),
        explanation=explanation(result.choice),
        measured=how_measured(result),
        regret_words=f"what decisions {'gain less than' if gains else 'cost above'} the best ones in hindsight",
        title=result.samples.noun,
        unit=in_unit(result),
        baseline=result.baseline,
        challenger=result.challenger,
        failures=result.failures,
        models=[row_in_words(result, row) for row in result.table],
        facts=_facts(result, command),
        rows=charts[0],
        over_time=next((chart for chart in charts if chart.name == "over_time"), None),
        predicted=charts[-1],
        items=_bars(by_item(result)) if differs else [],
        kinds={kind: _bars(parts) for kind, parts in by_kind_of_row(result).items()} if differs else {},
        extremes=[(key, number(saved), f"{share:.1f}") for key, saved, share in extreme_rows(result)],
        findings=findings,
        cost_words=_cost_words(result),
        tried=list(_tried(result)),
        families={} if result.choice.search is None else result.choice.search.notes_,
        shell=None if command is None else _shell(command),
        python=_IN_MEMORY if command is None else _python(command),
        looks=looks,
        light=LIGHT,
        dark=DARK,
        css=source_of("page.css"),
        own_css=source_of("compare.css", package="decidewise.app.tables"),
        js=source_of("page.js"),
        data=chart_data(looks, charts),
    )


def _bills(result: TableComparison) -> list[dict[str, Any]]:
    found, per_year = bills(result), result.samples.rows_per_year
    largest = max(abs(bill.value) for bill in found)
    decimals = max(0, 3 - floor(log10(largest))) if largest > 0 else 0  # four digits of the largest
    tiles = []
    for bill in found:
        words = bill.name if bill.name == FORESIGHT else model_in_words(bill.name, result.choice)
        advised = bill.name == result.chosen
        amounts = [f"{abs(bill.saving):,.{decimals}f} per {result.samples.noun}"]
        if per_year:
            amounts.append(f"{number(abs(bill.saving) * per_year)} per year")
        better = saves_word(result)
        saves = f"could {better}" if bill.name == FORESIGHT else f"{better}s" if bill.saving >= 0 else "loses"
        tiles.append(
            {
                "name": ("now, " if bill.name == FORECAST else "") + f"with {words}" + " (advised)" * advised,
                "advised": advised,
                "value": f"{bill.value:z,.{decimals}f}",
                "per_year": number(bill.value * per_year) if per_year else "",
                "saved": "" if bill.name == result.baseline else f"{saves} {', '.join(amounts)}",
            }
        )
    return tiles


def _per_year(result: TableComparison) -> str:
    noun, per_year, keys = result.samples.noun, result.samples.rows_per_year, result.samples.keys[result.rows]
    mean = f"Means of the {len(keys):,} test {noun}s"
    if result.samples.times is not None:
        mean += f", {shown_key(keys[0])} to {shown_key(keys[-1])}"
    return f"{mean}; per year as if {per_year:,.0f} {noun}s were like them." if per_year else f"{mean}."


def _facts(result: TableComparison, command: Mapping[str, Any] | None) -> dict[str, str]:
    samples = result.samples
    table, problem = ("in memory", "") if command is None else (command["data"], f"{command['problem']}: ")
    what = "costs" if samples.demand is None else "items"
    kind = "features of each item" if samples.per_item else "features"
    return {
        "Table": f"{table}: {len(samples):,} rows, {len(samples.cost_names)} {what}",
        "Problem": f"{problem}{result.truth.problem!r}",
        "Features": f"{len(result.choice.prepared.feature_names_)} {kind}: "
        + _shortened(result.choice.prepared.feature_names_),
        "Made": f"{date.today().isoformat()}, by decidewise {decidewise.__version__}",
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
                "saved": _with_error(part.saving, 1.96 * part.error),
                "loss": part.saving < 0,
                "left": f"{50 - width if part.saving < 0 else 50:.2f}",
                "width": f"{width:.2f}",
            }
        )
    return bars


def _with_error(value: float, width: float) -> str:
    return plus_minus(Interval(value, value - width, value + width)) if np.isfinite(width) else number(value)


def _cost_words(result: TableComparison) -> str:
    search = result.choice.search
    if search is None:
        return f"The model was named, not chosen; measuring took {result.n_solves:,} solver calls."
    measuring, choice = result.n_solves - search.n_solves_, result.choice
    by_solver = [name for name in choice.weights if choice.families.get(name) == SPO_PLUS]
    training = "Training the choice itself calls no solver"
    if by_solver:
        training = (
            f"Of the choice, {listed(by_solver)} {'is' if len(by_solver) == 1 else 'are'} trained with the solver"
        )
    return (
        f"Choosing took {search.n_solves_:,} solver calls and {result.choice.seconds:.1f} seconds; measuring the "
        f"models of the first table took {measuring:,} more. The whole comparison took {result.seconds:.1f} seconds. "
        f"{training}; each decision is one call."
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


def _shell(command: Mapping[str, Any]) -> str:
    text = [word for name, value in command.get("text", {}).items() for word in (f"--{name}", value)]
    problem = str(command["problem"])
    decide = ["decidewise", "decide", "model.dw", "new.csv", "--problem", problem, *text, "--out", "decisions.csv"]
    return "\n".join([shlex.join(decide), "decidewise inspect model.dw"])


def _python(command: Mapping[str, Any]) -> str:
    return "\n".join(
        [
            "from decidewise import load_model",
            'model = load_model("model.dw")  # what `decidewise fit` has written',
            f'decisions = model.decide("new.csv", {json.dumps(str(command["problem"]))}).columns()  # or .regret',
        ]
    )
