"""The result of a comparison in words."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from decidewise.app.tables.choice import CHOICE, Choice
from decidewise.app.tables.comparison import TableComparison
from decidewise.evaluate import ComparisonRow, Interval
from decidewise.evaluate.intervals import plus_minus
from decidewise.kit.checks import listed
from decidewise.models.selection.families import words_of
from decidewise.models.selection.null_models import DO_NOTHING

_VERDICTS = {
    "better": "Worth changing",
    "unproven": "Not proven",
    "worse": "Keep it",
    "same": "Keep it",
    "no gain": "Not worth it",
}
#: So many families of an average are named.
_N_FAMILIES = 4


def verdict_in_words(result: TableComparison, doubts: Sequence[str]) -> str:
    """Return the verdict in a few words, with what makes it doubtful (`health.doubts`)."""
    doubtful = f", with {'a doubt' if len(doubts) == 1 else 'doubts'}: {'; '.join(doubts)}" if doubts else ""
    return _VERDICTS[result.verdict.outcome] + doubtful


def headline(result: TableComparison) -> str:
    """Return the result in one sentence, with its interval, after a doubt if a feature is a cost."""
    return _doubt(result.leaks) + _verdict(result)


def _doubt(leaks: Sequence[str]) -> str:
    if not leaks:
        return ""
    is_, costs, it = ("is", "a cost", "it") if len(leaks) == 1 else ("are", "costs", "them")
    return (
        f"Possible leak: {listed(leaks)} {is_} almost identical to {costs} of the same row. If you do not know {it} "
        f"when you decide, drop {it} (--features): the result below is then wrong. "
    )


def _verdict(result: TableComparison) -> str:
    baseline, challenger = model_in_words(result.baseline, result.choice), challenger_in_words(result)
    verdict = result.verdict
    on_rows = f"on {len(result.rows):,} held-out {result.samples.noun}s"
    if verdict.outcome == "no gain":
        null = None if verdict.name == DO_NOTHING else model_in_words(verdict.name, result.choice)
        return _no_gain(null, dict.fromkeys([baseline, challenger]), on_rows)
    if verdict.outcome == "same":
        return (
            f"Keep {baseline}: on the training rows, none of {_n_tried(result) - 1} other models decides better by "
            "more than chance."
        )
    if verdict.outcome == "unproven":
        keeps = verdict.name == result.baseline
        use = f"Keep {baseline}: {challenger}" if keeps else f"Use {challenger}, which the training rows prefer: it"
        against = "" if keeps else f" against {baseline}"
        return f"{use} {_saved_or_lost(result)}{against} {on_rows}, a difference that may be chance."
    if verdict.outcome == "worse":
        return (
            f"Keep {baseline}: {challenger}, which was chosen on the training rows, {_saved_or_lost(result)} {on_rows}."
        )
    kind = challenger[0].upper() + challenger[1:]
    saves = f"{saves_word(result)}{'' if kind == 'Trees' else 's'}"
    what = "avoidable cost" if result.truth.problem.sense == "min" else "missed gain"
    share = "" if result.share is None else f": {plus_minus(result.share, ' %')} of the {what}"
    return f"{kind} {saves} {_amount(result, result.saving)} against {baseline}{share}."


def _no_gain(null: str | None, models: Iterable[str], on_rows: str) -> str:
    models = list(models)
    neither = f"neither {' nor '.join(models)} is" if len(models) > 1 else f"{models[0]} is not"
    if null is None:
        return f"Do nothing: {on_rows}, {neither} proven to pay."
    return f"Use {null}: {on_rows}, {neither} proven to decide better."


def explanation(choice: Choice) -> str:
    """Return what the choice is, in one or two sentences: the families of an average, with their shares, and why."""
    if choice.name != CHOICE:
        return ""
    if len(choice.weights) == 1:
        [name] = choice.weights
        return f"The choice is {name!r}: {model_in_words(name, choice)}."
    shares = choice.shares
    families = list(shares)
    parts = [f"{100 * shares[family]:.0f} % {words_of(family).several}" for family in families]
    if len(families) > _N_FAMILIES + 1:
        parts[_N_FAMILIES:] = [f"{100 * sum(shares[family] for family in families[_N_FAMILIES:]):.0f} % others"]
    listed_families = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return (
        f"The choice averages {len(choice.weights)} models: {listed_families}. The training rows cannot tell which of "
        "them decides best."
    )


def _amount(result: TableComparison, saving: Interval) -> str:
    return f"about {plus_minus(saving, in_unit(result))} per {result.samples.noun}"


def _saved_or_lost(result: TableComparison) -> str:
    saving = result.saving
    word = saves_word(result).rstrip("e") + "ed" if saving.estimate >= 0 else "lost"
    return f"{word} {_amount(result, saving if saving.estimate >= 0 else saving.scaled(-1))}"


def saves_word(result: TableComparison) -> str:
    """Return what a better model does: it saves costs, or gains more."""
    return "save" if result.truth.problem.sense == "min" else "gain"


def saves_heading(result: TableComparison) -> str:
    """Return the heading of the column of savings, such as "saves per day, EUR"."""
    return f"{saves_word(result)}s per {result.samples.noun}{in_unit(result) and ',' + in_unit(result)}"


def in_unit(result: TableComparison) -> str:
    """Return the unit of the costs with a space before it, or nothing."""
    return f" {result.samples.unit}" if result.samples.unit else ""


def row_in_words(result: TableComparison, row: ComparisonRow) -> dict[str, Any]:
    """Return the figures of a model, as the terminal and the page show them."""
    saved = row.mean_difference
    return {
        "name": row.name,
        "chosen": row.name == result.chosen,
        "regret": f"{row.regret.estimate:.2f}",
        "interval": f"{row.regret.low:.2f} – {row.regret.high:.2f}",
        "mean": plus_minus(row.mean_regret),
        "saved": plus_minus(saved.scaled(-1)) if saved else "baseline",
        "fit": f"{1e3 * result.fit_seconds[row.name]:,.0f} ms",
    }


def model_in_words(name: str, choice: Choice) -> str:
    """Return what "choice" or a candidate is, for readers who do not know the names."""
    return "an average of the best models" if name == CHOICE else words_of(choice.families.get(name, name)).one


def challenger_in_words(result: TableComparison) -> str:
    """Return what was chosen: of a choice that is one model, its kind."""
    alone = result.challenger == CHOICE and len(result.choice.weights) == 1
    return model_in_words(next(iter(result.choice.weights)) if alone else result.challenger, result.choice)


def fit_command(model: str, command: Mapping[str, Any]) -> str:
    """Return the command that fits a model on all rows; `command` is that of the comparison.

    It has the "data" and the "problem" of the command, the options that were "given", and those of "text" files.
    """
    given = []
    for name, value in (command["given"] | command.get("text", {})).items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            given += [option] * value
        else:
            given += [
                word for entry in ([value] if isinstance(value, str) else value or []) for word in (option, entry)
            ]
    words = ["decidewise", "fit", str(command["data"]), "--problem", str(command["problem"]), *given]
    return shlex.join([*words, "--model", model, "--out", "model.dw"])


def _n_tried(result: TableComparison) -> int:
    return 1 if result.choice.search is None else int((result.choice.search.cv_results_["status"] != "not tried").sum())


def how_measured(result: TableComparison) -> str:
    """Return how the figures were measured, in a sentence."""
    samples, rows = result.samples, result.rows
    n_known = len(result.splits[0][0])
    held = f"{len(rows):,} {samples.noun}s"
    if samples.times is not None:
        windows = f"{len(result.splits)} windows" if len(result.splits) > 1 else "one window"
        how = f"Models were chosen on the first {n_known:,} {samples.noun}s and tested on the next {len(rows):,}, "
        how += f"in {windows}, each predicted from all earlier {samples.noun}s"
    elif samples.groups is not None:
        how = f"Models were chosen on {n_known:,} rows and tested on {held} of other groups"
    else:
        how = f"Models were chosen on {n_known:,} random rows and tested on {held} held out"
    blocks = f", in blocks of {result.table.block_length}" if result.table.block_length > 1 else ""
    how += f"; 95 % intervals by a paired bootstrap over these rows{blocks}."
    return " ".join(filter(None, [how, result.table.caution, result.table.unproven]))
