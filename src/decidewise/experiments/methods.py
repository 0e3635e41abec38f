"""What a method is: a name in the tables, and how an estimator is made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from decidewise.experiments.names import resolve
from decidewise.losses import as_loss, registry
from decidewise.models import DecisionRegressor, GeneralizedLinear, WiseRegressor

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
        if bool(self.loss) == bool(self.model):
            raise ValueError("a method is either a loss or a model; give one of the two.")
        if self.model:
            resolve(self.model)
        elif self.loss not in registry:
            raise ValueError(
                f"unknown loss {self.loss!r}; known are {', '.join(registry)}. A loss of your own joins the registry "
                "in a module that the plan lists under imports."
            )
        elif self.mode == "exact":
            if self.loss not in EXACT or self.parameters:
                raise ValueError(f'mode = "exact" is for {" and ".join(EXACT)}, without parameters; got {self.loss!r}.')
        elif self.mode == "adam":
            self._check_parameters()
        else:
            raise ValueError(f'the mode of a loss is "adam" or "exact"; got {self.mode!r}.')

    def estimator(self, problem: Any, *, random_state: int, **training: Any) -> Any:
        """Return an unfitted estimator; `training` are parameters of `DecisionRegressor`, which only Adam heeds."""
        if self.model:
            return resolve(self.model)(problem, random_state=random_state, **self.parameters)
        if self.mode == "exact":
            return EXACT[self.loss]()
        loss = as_loss(self.loss, **self.parameters)
        return DecisionRegressor(problem, loss, init="torch", random_state=random_state, **training)

    def _check_parameters(self) -> None:
        try:
            as_loss(self.loss, **self.parameters)
        except TypeError as reason:
            raise ValueError(
                f"{self.loss!r} does not take the parameters {dict(self.parameters)}: {reason}."
            ) from reason
