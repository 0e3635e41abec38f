"""Methods: a method is a name in the tables and a way to build its estimator."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Annotated, Any, TypeAlias

import msgspec

from decidewise.kit.checks import as_positive
from decidewise.kit.errors import InputError
from decidewise.kit.importable import check_name, resolve
from decidewise.losses import NOT_OFFERED, Loss, as_loss, registry
from decidewise.models import DecisionRegressor, GeneralizedLinear, WiseRegressor
from decidewise.problems.contract import Problem

#: The losses whose minimiser over linear predictors has a closed form, with its estimator.
EXACT: dict[str, Callable[[], Any]] = {
    "mse": GeneralizedLinear,
    "wise": partial(WiseRegressor, scale="unit"),
}


def check_text(value: str, name: str) -> None:
    """Raise unless the value can be shown in tables, figures and file names: not blank, and no control characters."""
    if not value.strip() or any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in value):
        raise InputError(f"{name} must be text, not blank and without control characters; got {value!r}.")


class Sweep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Several learning rates in place of one; each becomes a separate method."""

    sweep: Annotated[tuple[float, ...], msgspec.Meta(min_length=1)]


#: One learning rate for all numbers of samples, or one for each.
Rate: TypeAlias = float | tuple[float, ...]


class Method(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One column of a table.

    Parameters
    ----------
    name : str
        The name in tables and figures.
    loss : str
        The loss that a linear predictor is trained on: a name from `decidewise.losses.registry`, or
        `"package.module:Class"` for a loss of your own.
    model : str
        A model in place of a loss: `"package.module:function"`. It is called as
        `function(problem, random_state=..., **parameters)` and returns an object with `fit` and `predict`.
    mode : str
        For a loss "adam", the paper's protocol, or "exact", the closed-form minimiser. For a model, any text that
        distinguishes it from other methods of the same name.
    parameters : dict
        Parameters of the loss or the model. A value may be a sweep: `{ sweep = [0.1, 1.0] }`.
    learning_rate : float, tuple of float or Sweep, optional
        Adam's learning rate, in place of the problem's and of the same forms.
    """

    name: str
    loss: str = ""
    model: str = ""
    mode: str = "adam"
    parameters: dict[str, Any] = {}
    learning_rate: Rate | Sweep | None = None

    def __post_init__(self) -> None:
        check_text(self.name, "name")
        check_text(self.mode, "mode")
        if bool(self.loss) == bool(self.model):
            raise InputError("a method is either a loss or a model; give one of the two.")
        if self.model or ":" in self.loss:
            check_name(self.model or self.loss)
        if self.loss and self.mode not in ("adam", "exact"):
            raise InputError(f'the mode of a loss is "adam" or "exact"; got {self.mode!r}.')
        if self.loss and self.mode == "exact" and (self.loss not in EXACT or self.parameters):
            raise InputError(f'mode = "exact" is for {" and ".join(EXACT)}, without parameters; got {self.loss!r}.')
        if self.learning_rate is not None:
            if not self.has_rate:
                raise InputError('learning_rate is for losses with mode = "adam"; a model has it among its parameters.')
            check_rates(self.learning_rate)
        for name, values in self._swept_parameters.items():
            if not (isinstance(values, list) and values):
                raise InputError(f"the sweep of {name} must be a list of at least one value; got {values!r}.")

    @property
    def has_rate(self) -> bool:
        """Whether the method is trained by Adam and so needs a learning rate."""
        return bool(self.loss) and self.mode == "adam"

    @property
    def importable(self) -> list[str]:
        """The importable names in the method, which a run imports."""
        return [name for name in (self.loss, self.model) if ":" in name]

    def expand(self) -> Iterator[Method]:
        """Yield one method for each combination of swept values, which its name lists; without a sweep, only itself.

        >>> swept = Method("PFY", loss="pfy", parameters={"n_samples": 3, "sigma": {"sweep": [0.1, 1.0]}})
        >>> [(method.name, method.parameters) for method in swept.expand()]
        [('PFY, sigma 0.1', {'n_samples': 3, 'sigma': 0.1}), ('PFY, sigma 1.0', {'n_samples': 3, 'sigma': 1.0})]
        """
        swept = self._swept_parameters
        for rate, *values in product(rates_in(self.learning_rate), *swept.values()):
            chosen = dict(zip(swept, values, strict=True))
            swept_rate = {"learning_rate": rate} if isinstance(self.learning_rate, Sweep) else {}
            label = ", ".join([self.name, *(f"{name} {value}" for name, value in (swept_rate | chosen).items())])
            yield msgspec.structs.replace(self, name=label, parameters=self.parameters | chosen, learning_rate=rate)

    @property
    def _swept_parameters(self) -> dict[str, Any]:
        sweeps = {name: value for name, value in self.parameters.items() if isinstance(value, dict)}
        return {name: value["sweep"] for name, value in sweeps.items() if value.keys() == {"sweep"}}

    def check(self) -> None:
        """Raise unless the loss or the model exists; this imports the module of an importable name."""
        if self.model:
            resolve(self.model)
            return
        if self.loss in NOT_OFFERED and self.loss not in registry:
            raise InputError(f"there is no loss {self.loss!r}: {NOT_OFFERED[self.loss]}")
        if not (self.importable or self.loss in registry):
            raise InputError(
                f"unknown loss {self.loss!r}; known are {', '.join(registry)}. A loss of your own is written as "
                '"package.module:Class".'
            )
        try:
            made = self._make_loss()
        except InputError:
            raise
        except Exception as reason:  # user code may raise anything
            raise InputError(f"{self.loss!r} does not take the parameters {self.parameters}: {reason}") from reason
        if not isinstance(made, Loss):
            raise InputError(f"{self.loss!r} is not a decidewise.losses.Loss; got {type(made).__name__}.")

    def estimator(self, problem: Problem, *, random_state: int, **training: Any) -> Any:
        """Return an unfitted estimator; only mode "adam" uses `training`, parameters of `DecisionRegressor`."""
        if self.model:
            return resolve(self.model)(problem, random_state=random_state, **self.parameters)
        if self.mode == "exact":
            return EXACT[self.loss]()
        return DecisionRegressor(
            problem, self._make_loss(), protocol="paper", init="torch", random_state=random_state, **training
        )

    def _make_loss(self) -> Loss:
        if self.importable:
            return resolve(self.loss)(**self.parameters)
        return as_loss(self.loss, **self.parameters)


def rates_in(rate: Rate | Sweep | None) -> tuple[Rate | None, ...]:
    """Return the learning rates of a sweep; a tuple of one for anything else."""
    return rate.sweep if isinstance(rate, Sweep) else (rate,)


def check_rates(rate: Rate | Sweep) -> None:
    """Raise unless every learning rate is positive."""
    for each in rate.sweep if isinstance(rate, Sweep) else rate if isinstance(rate, tuple) else (rate,):
        as_positive(each, name="learning_rate")
