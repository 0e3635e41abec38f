"""What a method is: a name in the tables, and how an estimator is made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from decidewise.errors import InputError
from decidewise.experiments.importable import check_name, check_text, resolve
from decidewise.losses import as_loss, registry
from decidewise.models import DecisionRegressor, GeneralizedLinear, WiseRegressor
from decidewise.problems.base import Problem

#: Losses whose minimiser over the linear predictors is known in closed form.
EXACT: dict[str, Callable[[], Any]] = {"mse": GeneralizedLinear, "wise": WiseRegressor}


@dataclass(frozen=True)
class Method:
    """One line of a table.

    Parameters
    ----------
    name : str
        What tables and figures call it.
    loss : str
        A name from `decidewise.losses.registry`: a linear predictor is trained on it.
    model : str
        Instead of a loss, `"package.module:function"`. Called as `function(problem, random_state=..., **parameters)`,
        it returns anything with `fit` and `predict`.
    mode : str
        "adam", the paper's protocol, or "exact", the minimiser itself; of a model, whatever tells it from others of the
        same name.
    parameters : mapping
        Those of the loss or of the model.
    """

    name: str
    loss: str = ""
    model: str = ""
    mode: str = "adam"
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_text(self.name, "name")
        check_text(self.mode, "mode")
        if bool(self.loss) == bool(self.model):
            raise InputError("a method is either a loss or a model; give one of the two.")
        if self.model:
            check_name(self.model)
        elif self.mode == "exact":
            if self.loss not in EXACT or self.parameters:
                raise InputError(f'mode = "exact" is for {" and ".join(EXACT)}, without parameters; got {self.loss!r}.')
        elif self.mode != "adam":
            raise InputError(f'the mode of a loss is "adam" or "exact"; got {self.mode!r}.')

    def check(self) -> None:
        """Raise unless there is such a loss or model; a model's module is imported for that."""
        if self.model:
            resolve(self.model)
        elif self.loss not in registry:
            raise InputError(
                f"unknown loss {self.loss!r}; known are {', '.join(registry)}. A loss of your own joins the registry "
                "in a module that the plan lists under imports."
            )
        else:
            try:
                as_loss(self.loss, **self.parameters)
            except Exception as reason:  # a loss may be anyone's code
                raise InputError(
                    f"{self.loss!r} does not take the parameters {dict(self.parameters)}: {reason}"
                ) from reason

    def estimator(self, problem: Problem, *, random_state: int, **training: Any) -> Any:
        """Return an unfitted estimator; `training` are parameters of `DecisionRegressor`, which only Adam heeds."""
        if self.model:
            return resolve(self.model)(problem, random_state=random_state, **self.parameters)
        if self.mode == "exact":
            return EXACT[self.loss]()
        loss = as_loss(self.loss, **self.parameters)
        return DecisionRegressor(problem, loss, protocol="paper", init="torch", random_state=random_state, **training)
