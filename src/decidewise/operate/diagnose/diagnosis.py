"""What a diagnosis found, and how it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from decidewise.evaluate import Interval


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
        The simplest candidate within one standard error of the lowest regret.
    best : Interval
        The regret of choosing among the candidates; see `diagnose`.
    gain, gain_on_mean, gain_on_forecast : Interval or None
        The regret of least squares, of the training mean and of the forecast minus `best`, from paired differences.
    spo_plus_gain : Interval or None
        `best` minus the regret of a linear or log-linear model trained with SPO+, from paired differences. None also if
        `max_solves` is too small to train one.
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
    spo_plus_gain: Interval | None
    gain_of_sharing: Interval | None
    floor: Interval | None
    flips: float | None
    value: float
    n_rows: int
    n_solves: int
    advice: str
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
            ("saved by the best candidate", self._shown(self.gain)),
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
        return f"{interval} %, {interval.estimate * self.value / 100:z,.3g} per row"

    def _footnote(self) -> str:
        return (
            f"In percent of the best decisions in hindsight, with 95 % bootstrap intervals over {self.n_rows:,} rows "
            f"out of fold, and in units of the costs; {self.n_solves:,} solver calls."
        )
