"""Every loss as a torch module, for any network on any device: see `loss_module`."""

from __future__ import annotations

from typing import Any

import numpy as np

from decidewise.frontends import Reduction, check_batch, check_reduction, reduce
from decidewise.kit.checks import FloatArray, as_array, as_integer
from decidewise.losses import Loss, Target, as_loss
from decidewise.problems.contract import Problem

try:
    import torch
except ImportError as reason:
    raise ImportError('decidewise.frontends.torch needs torch: pip install "decidewise[torch]".') from reason


def loss_module(
    loss: str | Loss, problem: Problem, *, seed: int = 0, reduction: Reduction = "mean", **parameters: Any
) -> LossModule:
    """Return a loss as a torch module.

    Parameters
    ----------
    loss : str or Loss
        A name in `decidewise.losses.registry`, or a loss.
    problem : Problem
        The problem whose costs are predicted. MSE and WISE do not solve it.
    seed : int
        Seed of the noise of losses that are random; each call draws new noise.
    reduction : {"mean", "sum", "none"}
        Whether to return the mean of the values of a batch, their sum, or the values `(batch,)`.
    **parameters
        The parameters of the loss, if `loss` is a name: `loss_module("pfy", problem, sigma=0.5)`.

    Examples
    --------
    >>> from decidewise.data import make_shortest_path
    >>> data = make_shortest_path(100, degree=4, seed=0)
    >>> X, costs = torch.tensor(data.X), torch.tensor(data.costs)
    >>> network = torch.nn.Linear(5, 40, dtype=torch.float64)
    >>> spo_plus = loss_module("spo+", data.problem)
    >>> spo_plus(network(X), costs).backward()
    >>> network.weight.grad.shape
    torch.Size([40, 5])

    In a training loop, solve for the labels once and pass those of the batch beside its costs:

    >>> target = spo_plus.prepare(costs)
    >>> rows = torch.arange(32)
    >>> spo_plus(network(X[rows]), costs[rows], target[rows]).backward()
    """
    return LossModule(as_loss(loss, **parameters), problem, seed=seed, reduction=reduction)


class LossModule(torch.nn.Module):
    """A loss and a problem as a module `(prediction, costs[, target]) -> value`; see `loss_module`.

    A loss that has a `native` form, as MSE and WISE do, is torch code and can be differentiated any number of times.
    All others are computed in float64 on the CPU, whatever the device and precision of the prediction. They can be
    differentiated once, only in the prediction; the gradient is the one that the loss returns.

    Examples
    --------
    >>> from decidewise.losses import Wise
    >>> from decidewise.problems import TopK
    >>> loss = LossModule(Wise(), TopK(3, 1))
    >>> loss(torch.tensor([[0.0, 0.6, 0.8]]), [[0.0, 3.0, 4.0]]).round(decimals=6)  # the direction is right
    tensor(0.)
    """

    def __init__(self, loss: Loss, problem: Problem, *, seed: int = 0, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.loss = as_loss(loss)
        self.loss.check(problem)
        check_reduction(reduction)
        self.problem = problem
        self.reduction: Reduction = reduction
        self.rng = np.random.default_rng(as_integer(seed, name="seed", minimum=0))

    def prepare(self, costs: Any, X: Any = None) -> Target:
        """Compute the labels of all costs (n, n_costs) once; `target[rows]` are the labels of a batch.

        `X` (n, p) are the features, for a loss that computes its labels from them.
        """
        costs, X = (_to_numpy(given) if isinstance(given, torch.Tensor) else given for given in (costs, X))
        return self.loss.prepare(self.problem, costs, X=X, rng=self.rng.spawn(1)[0])

    def forward(self, prediction: torch.Tensor, costs: Any, target: Target | None = None) -> torch.Tensor:
        """Return the loss of a batch, on the device and in the precision of the prediction.

        Parameters
        ----------
        prediction : Tensor of floats, of shape (batch, n_costs)
            The predicted costs, in the problem's own sense.
        costs : Tensor or array-like of shape (batch, n_costs)
            The true costs.
        target : Target, optional
            Rows of the target that `prepare` returned. Without it the labels of the batch are computed here, and data
            that samples share (a pool of decisions, an adaptive step) come from this batch only.
        """
        if not (isinstance(prediction, torch.Tensor) and prediction.is_floating_point()):
            kind = f"one of {prediction.dtype}" if isinstance(prediction, torch.Tensor) else type(prediction).__name__
            raise TypeError(f"prediction must be a torch.Tensor of floats, so that it can have a gradient; got {kind}.")
        if isinstance(costs, Target):
            raise TypeError("a target comes after the costs that it belongs to: loss(prediction, costs, target).")
        costs = costs if isinstance(costs, torch.Tensor) else torch.tensor(as_array(costs, name="costs"))
        check_batch(prediction, costs, self.problem.n_costs)
        if self.loss.native is not None:
            return reduce(self.loss.native(prediction, costs.to(prediction)), self.reduction)
        target = self.prepare(costs) if target is None else target
        return reduce(_Values.apply(prediction, self.loss, target, self.rng), self.reduction)

    def extra_repr(self) -> str:
        """Return the loss, the problem and the reduction, for torch to print."""
        return f"{self.loss!r}, {self.problem!r}, reduction={self.reduction!r}"


class _Values(torch.autograd.Function):
    """The value of each row, with the gradient that the loss returns."""

    @staticmethod
    def forward(
        ctx: Any, prediction: torch.Tensor, loss: Loss, target: Target, rng: np.random.Generator
    ) -> torch.Tensor:
        values, gradient = loss.value_and_grad(_to_numpy(prediction), target, rng)
        ctx.save_for_backward(_to_tensor(gradient, like=prediction))
        return _to_tensor(values, like=prediction)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return upstream[:, None] * gradient, None, None, None


def _to_numpy(tensor: torch.Tensor) -> FloatArray:
    # First to the CPU, because some devices have no float64.
    return tensor.detach().cpu().double().numpy()


def _to_tensor(array: FloatArray, *, like: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(array).to(like.dtype).to(like.device)
