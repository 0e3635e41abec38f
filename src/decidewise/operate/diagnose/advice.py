"""What to do, by what a diagnosis found: a sentence, and the call that does it."""

from __future__ import annotations

from dataclasses import dataclass

from decidewise.evaluate import Interval
from decidewise.models import DecisionRegressor


@dataclass(frozen=True)
class Grounds:
    """What the advice depends on: the gains, and what the best candidate is; see `Diagnosis`."""

    best_name: str
    gain: Interval | None
    gain_on_mean: Interval | None
    gain_on_forecast: Interval | None
    spo_plus_gain: Interval | None
    gain_of_sharing: Interval | None
    log_link: bool
    exponent: float
    n_training: int

    def advice(self) -> tuple[str, str]:
        """Return the advice, and the name of the model that it advises."""
        advice, chosen = self._first()
        if self.gain_of_sharing is not None and self.gain_of_sharing.low > 0 and "own" not in chosen:
            advice += " The shared model is what helps: with coefficients of its own, each item would decide worse."
        return advice, chosen

    def _first(self) -> tuple[str, str]:
        """Return the advice of the first rule that applies, and the name of the model that it advises."""
        if self.spo_plus_gain is not None and self.spo_plus_gain.low > 0:
            return f"Train with the solver: SPO+ pays, and takes up to {self.n_training:,} solver calls.", "spo+"
        if _unproven(self.gain_on_forecast):
            return (
                "The forecast you have is good enough: that a model decides better is not proven with these rows.",
                "forecast",
            )
        if _unproven(self.gain_on_mean):
            return (
                "Your features do not pay: that any model decides better than the mean of past costs is not proven "
                "with these rows.",
                "training mean",
            )
        if _unproven(self.gain):
            return (
                "Keep least squares: that another model decides better is not proven with these rows.",
                "least squares",
            )
        if self.log_link:
            how = "a log link, which suits effects that multiply"
        elif self.exponent > 0:
            how = "the change of measure, which suits sizes that vary"
        else:
            how = "another learner"
        return f"Use {how}: {self.best_name!r} decides better.", self.best_name


def _unproven(gain: Interval | None) -> bool:
    return gain is not None and gain.low <= 0


def call_of(chosen: str, spo_plus: DecisionRegressor, *, lifted: bool, forecast: bool) -> str:
    """Return the call that fits the model that was measured."""
    if chosen == "forecast":
        return "decide(GivenForecast(forecast).fit(X, costs), problem, X)"
    if chosen == "spo+":
        parameters = {name: value for name, value in spo_plus.get_params(deep=False).items() if name != "problem"}
        given = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
        return f"DecisionRegressor(problem, {given}).fit(X, costs)"
    options = (", lifted=True" if lifted else "") + (", forecast=forecast" if forecast else "")
    return f"default_candidates(X, costs{options})[{chosen!r}].fit(X, costs)"
