"""What a diagnosis found, how it is shown, and what to do by it: a sentence, and the call that does it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from decidewise.evaluate import Interval
from decidewise.evaluate.intervals import plus_minus
from decidewise.models import DecisionRegressor
from decidewise.models.selection.null_models import DO_NOTHING

#: What to do if a gain of the best candidate is not proven, and the model to use then; the first such gain counts.
_NOT_PROVEN = {
    "gain_on_nothing": ("Do nothing: that any model decides better than no decision at all", DO_NOTHING),
    "gain_on_forecast": ("The forecast you have is good enough: that a model decides better", "forecast"),
    "gain_on_mean": (
        "Your features do not pay: that any model decides better than the mean of past costs",
        "training mean",
    ),
    "gain": ("Use least squares: that another model decides better", "least squares"),
}


@dataclass(frozen=True)
class Diagnosis:
    """The result of `diagnose`; regrets are out of fold, in percent of the optimal value, with 95 % intervals.

    Attributes
    ----------
    least_squares, training_mean : Interval or None
        The regret of plain least squares, and of deciding every row by the mean costs. None, here and below, if it
        could not be measured.
    forecast : Interval or None
        The regret of the best of the given forecasts; None also if there are none.
    best_name : str
        The candidate with the lowest regret.
    best : Interval
        The regret of choosing among the candidates; see `diagnose`.
    gain, gain_on_mean, gain_on_forecast, gain_on_nothing : Interval or None
        The regret of least squares, of the training mean, of the forecast and of doing nothing minus `best`, from
        paired differences. None also for what is not there: a forecast, or a problem in which nothing can be done.
    spo_plus_gain : Interval or None
        `best` minus the regret of a linear or log-linear model trained with SPO+, from paired differences. None also if
        `train_solves` or `max_solves` is too small to train one.
    gain_of_sharing : Interval or None
        With features of each item: the regret of least squares with coefficients of each item's own minus that of one
        model shared by all items. None without features of each item.
    floor : Interval or None
        An estimate of the regret of the best candidate with unlimited rows; see `diagnose`.
    flips : float or None
        The share of decisions, from 0 to 1, that change when the best candidate is fitted on a bootstrap sample.
    value : float
        The mean absolute value of an optimal decision, in units of the costs: what 100 % is, per row.
    n_rows, n_solves : int
        The number of rows scored, and of solver calls, including those of steps that failed.
    advice : str
        One or two sentences that say what to do.
    chosen : str
        The name of the advised model, as `decidewise fit --model` takes it; "spo+" if it is trained with the solver.
    call : str
        The call, in terms of `problem`, `X` and `costs`, whose model was measured and is advised.
    failures : tuple of str
        One sentence for each quantity that could not be measured, with the reason; and one if intervals may not hold.
    """

    least_squares: Interval | None
    training_mean: Interval | None
    forecast: Interval | None
    best_name: str
    best: Interval
    gain: Interval | None
    gain_on_mean: Interval | None
    gain_on_forecast: Interval | None
    gain_on_nothing: Interval | None
    spo_plus_gain: Interval | None
    gain_of_sharing: Interval | None
    floor: Interval | None
    flips: float | None
    value: float
    n_rows: int
    n_solves: int
    advice: str
    chosen: str
    call: str
    failures: tuple[str, ...] = ()

    def __str__(self) -> str:
        width = max(len(label) for label, _ in self._lines())
        lines = [f"{label.ljust(width)}  {value}" for label, value in self._lines()]
        return "\n".join([*lines, *self.failures, self._footnote(), self.advice, self.call])

    def _repr_html_(self) -> str:
        cells = "".join(f"<tr><th>{escape(label)}</th><td>{escape(value)}</td></tr>" for label, value in self._lines())
        remarks = "".join(f"<p>{escape(remark)}</p>" for remark in (*self.failures, self._footnote()))
        advice = f"<p><b>{escape(self.advice)}</b></p><pre>{escape(self.call)}</pre>"
        return f"<table>{cells}</table>{remarks}{advice}"

    def _lines(self) -> list[tuple[str, str]]:
        changed = "not measured" if self.flips is None else f"{100 * self.flips:.0f} %"
        lines = [
            ("regret of the training mean", self._shown(self.training_mean)),
            ("regret of least squares", self._shown(self.least_squares)),
            (f"regret of the best candidate, {self.best_name}", self._shown(self.best)),
            ("saved by it, against least squares", self._shown(self.gain)),
            ("saved further by training with the solver (SPO+)", self._shown(self.spo_plus_gain)),
            ("regret left with this model and unlimited rows", self._shown(self.floor)),
            ("decisions that change with other rows of the same kind", changed),
        ]
        if self.forecast is not None:
            lines.insert(1, ("regret of the forecast you have", self._shown(self.forecast)))
        if self.gain_of_sharing is not None:
            lines.insert(-2, ("saved by sharing one model among the items", self._shown(self.gain_of_sharing)))
        return lines

    def _shown(self, interval: Interval | None) -> str:
        if interval is None:
            return "not measured"
        return f"{interval} %, {plus_minus(interval.scaled(self.value / 100))} per row"

    def _footnote(self) -> str:
        return (
            f"In percent of the best decisions in hindsight, with 95 % bootstrap intervals over {self.n_rows:,} rows "
            f"out of fold, and in units of the costs; {self.n_solves:,} solver calls."
        )


def advice_of(
    best_name: str,
    gains: Mapping[str, Interval | None],
    *,
    log_link: bool,
    exponent: float,
    iterated: bool,
    n_training: int,
) -> tuple[str, str]:
    """Return the advice, and the name of the model that it advises, from the gains of a `Diagnosis` by their names."""
    if log_link:
        how = "a log link, which suits effects that multiply"
    elif exponent > 0 and iterated:
        how = "the iterated scale, which counts errors in units of the predicted size"
    elif exponent > 0:
        how = "the change of measure, which suits sizes that vary"
    else:
        how = "another learner"
    advice, chosen = _first_that_applies(best_name, gains, how, n_training)
    sharing = gains.get("gain_of_sharing")
    if sharing is not None and sharing.low > 0 and "own" not in chosen:
        advice += " The shared model is what helps: with coefficients of its own, each item would decide worse."
    return advice, chosen


def _first_that_applies(
    best_name: str, gains: Mapping[str, Interval | None], how: str, n_training: int
) -> tuple[str, str]:
    if (solver := gains.get("spo_plus_gain")) is not None and solver.low > 0:
        return f"Train with the solver: SPO+ pays, and takes up to {n_training:,} solver calls.", "spo+"
    for gain, (advice, name) in _NOT_PROVEN.items():
        if (measured := gains.get(gain)) is not None and measured.low <= 0:
            return f"{advice} is not proven with these rows.", name
    return f"Use {how}: {best_name!r} decides better.", best_name


def call_of(chosen: str, spo_plus: DecisionRegressor, *, lifted: bool, forecast: bool) -> str:
    """Return the call that fits the model that was measured."""
    if chosen == DO_NOTHING:
        return "np.zeros_like(costs)"
    if chosen == "forecast":
        return "decide(GivenForecast(forecast).fit(X, costs), problem, X)"
    if chosen == "spo+":
        parameters = {name: value for name, value in spo_plus.get_params(deep=False).items() if name != "problem"}
        given = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
        return f"DecisionRegressor(problem, {given}).fit(X, costs)"
    options = (", lifted=True" if lifted else "") + (", forecast=forecast" if forecast else "")
    return f"default_candidates(X, costs{options})[{chosen!r}].fit(X, costs)"
