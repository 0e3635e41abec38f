"""Equal predictions, costs and noise give the values and gradients of PyEPO 2.2.7, in either sense.

PyEPO's layers (DBB, NID, DPO, I-MLE, AI-MLE) return decisions; the task loss put on them is the regret. In a
maximisation PyEPO adds noise to the prediction and decidewise to minus the prediction, so the noise is mirrored.
"""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from decidewise.losses import Aimle, Dbb, Dpo, Imle, Nid, Pfy, Pg, SpoPlus
from decidewise.losses.imle import sum_of_gamma
from decidewise.problems import Knapsack, ShortestPath

pyepo = pytest.importorskip("pyepo")
pytest.importorskip("gurobipy")
torch = pytest.importorskip("torch")
from pyepo.model.grb import knapsackModel, shortestPathModel  # noqa: E402

N, SAMPLES, SIGMA, KAPPA = 60, 4, 0.3, 5.0


@dataclass
class Case:
    problem: object
    model: object
    sign: float
    prediction: np.ndarray
    costs: np.ndarray

    def __post_init__(self):
        solved = []
        for row in self.costs:
            self.model.setObj(row)
            solved.append(self.model.solve())
        self.decisions, self.objectives = map(np.array, zip(*solved, strict=True))

    def ours(self, loss, rng=None):
        return loss.value_and_grad(self.prediction, loss.prepare(self.problem, self.costs), rng)

    def theirs(self, module, *labels):
        prediction = torch.tensor(self.prediction, requires_grad=True)
        values = module(prediction, *map(torch.tensor, labels))
        values.sum().backward()
        return values.detach().numpy(), prediction.grad.numpy()

    def their_regret(self, layer):
        costs, objectives = torch.tensor(self.costs), torch.tensor(self.objectives)
        return self.theirs(lambda prediction: self.sign * ((layer(prediction) * costs).sum(1) - objectives))


def path():
    rng = np.random.default_rng(0)
    problem = ShortestPath(4, 4)
    costs, factors = rng.uniform(0.5, 2.0, size=(2, N, problem.n_costs))
    return Case(problem, shortestPathModel((4, 4)), 1.0, costs * factors, costs)


def knapsack():
    rng = np.random.default_rng(1)
    weights, capacity = rng.uniform(3.0, 8.0, size=(2, 10)), np.array([20.0, 22.0])
    model = knapsackModel(weights, capacity)
    model._model.Params.MIPGap, model._model.Params.IntFeasTol = 0.0, 1e-9
    costs, factors = rng.uniform(0.5, 2.0, size=(2, N, 10))
    return Case(Knapsack(weights, capacity), model, -1.0, costs * factors, costs)


@pytest.fixture(scope="module", params=[path, knapsack], ids=lambda make: make.__name__)
def case(request):
    return request.param()


def assert_same(ours, theirs):
    assert np.abs(theirs[1]).max() > 0.01  # there is a gradient to compare
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-6, atol=1e-6)


class Given(np.random.Generator):
    """A generator that returns given numbers: `Given(gamma=draw)` has the method `gamma` replaced by `draw`."""

    def __init__(self, **methods):
        super().__init__(np.random.PCG64(0))
        vars(self).update(methods)


def normal_noise(case):
    """Return a generator for us that gives the first noise of a PyEPO module with seed 135, mirrored if need be."""
    generator = torch.Generator().manual_seed(135)
    shape = (N, SAMPLES, case.problem.n_costs)
    noise = torch.randn(shape, dtype=torch.float64, generator=generator).numpy()
    return Given(standard_normal=lambda shape: case.sign * noise.swapaxes(0, 1))


def gamma_noise(case):
    """Return a noise distribution for PyEPO and a generator for us that leads to the same noise."""
    noise = np.random.default_rng(2).gumbel(size=(N, SAMPLES, case.problem.n_costs))
    first = KAPPA * case.sign * noise.swapaxes(0, 1) + np.log(10)
    terms = iter([first] + 9 * [np.zeros_like(first)])
    distribution = SimpleNamespace(sample=lambda size, **_: noise)
    return distribution, Given(gamma=lambda shape, scale, size: next(terms))


def test_labels(case):
    np.testing.assert_allclose(SpoPlus().prepare(case.problem, case.costs).decisions, case.decisions, atol=1e-6)


def test_spo_plus(case):
    module = pyepo.func.SPOPlus(case.model, reduction="none")
    assert_same(case.ours(SpoPlus()), case.theirs(module, case.costs, case.decisions, case.objectives[:, None]))


@pytest.mark.parametrize(("mode", "two_sides"), [("backward", False), ("central", True)])
@pytest.mark.parametrize("h", [0.1, 0.5])
def test_pg(case, mode, two_sides, h):
    module = pyepo.func.perturbationGradient(case.model, sigma=h, two_sides=two_sides, reduction="none")
    assert_same(case.ours(Pg(h=h, mode=mode)), case.theirs(module, case.costs))


@pytest.mark.parametrize("lambd", [1.0, 10.0])
def test_dbb(case, lambd):
    assert_same(case.ours(Dbb(lambd=lambd)), case.their_regret(pyepo.func.blackboxOpt(case.model, lambd=lambd)))


def test_nid(case):
    assert_same(case.ours(Nid()), case.their_regret(pyepo.func.negativeIdentity(case.model)))


def test_pfy(case):
    module = pyepo.func.perturbedFenchelYoung(case.model, SAMPLES, SIGMA, reduction="none")
    assert_same(case.ours(Pfy(SAMPLES, SIGMA), normal_noise(case)), case.theirs(module, case.decisions))


@pytest.mark.parametrize("variance_reduction", [True, False])
def test_dpo(case, variance_reduction):
    layer = pyepo.func.perturbedOpt(case.model, SAMPLES, SIGMA, variance_reduction=variance_reduction)
    loss = Dpo(SAMPLES, SIGMA, variance_reduction)
    assert_same(case.ours(loss, normal_noise(case)), case.their_regret(layer))


@pytest.mark.parametrize("lambd", [1.0, 10.0])
def test_imle(case, lambd):
    distribution, rng = gamma_noise(case)
    layer = pyepo.func.implicitMLE(case.model, SAMPLES, SIGMA, lambd, distribution)
    assert_same(case.ours(Imle(SAMPLES, SIGMA, lambd, KAPPA), rng), case.their_regret(layer))


def test_a_mean_over_the_batch_shortens_the_step_of_pyepo(case):
    # A layer sees only the gradient that comes from above: with a mean over N rows that is c/N, and its step λ/N.
    layer = pyepo.func.blackboxOpt(case.model, lambd=10.0)
    _, gradient = case.theirs(lambda p: (case.sign * layer(p) * torch.tensor(case.costs)).sum(1).mean())
    _, ours = case.ours(Dbb(lambd=10.0 / N))
    np.testing.assert_allclose(ours / N, gradient, atol=1e-6)
    assert np.abs(gradient).max() > 0.01


def test_aimle_on_its_first_batch(case):
    distribution, rng = gamma_noise(case)
    layer = pyepo.func.adaptiveImplicitMLE(case.model, SAMPLES, SIGMA, distribution)
    assert_same(case.ours(Aimle(SAMPLES, SIGMA, KAPPA), rng), case.their_regret(layer))


def test_aimle_adapts_as_its_authors_do_and_pyepo_does_not(case):
    # The authors aim at one non-zero entry a sample; PyEPO compares the share of non-zero entries, at most 1, with 1.
    distribution, rng = gamma_noise(case)
    layer = pyepo.func.adaptiveImplicitMLE(case.model, SAMPLES, SIGMA, distribution)
    case.their_regret(layer)
    loss = Aimle(SAMPLES, SIGMA, KAPPA)
    target = loss.prepare(case.problem, case.costs)
    loss.value_and_grad(case.prediction, target, rng)

    assert target.step.density > 1
    assert target.step.alpha == pytest.approx(0.999)
    assert layer.alpha == pytest.approx(1.001)


def test_sum_of_gamma_draws_are_those_of_pyepo():
    theirs = pyepo.func.utils.sumGammaDistribution(kappa=KAPPA, seed=3).sample((7, 2))
    np.testing.assert_allclose(sum_of_gamma(np.random.RandomState(3), (7, 2), kappa=KAPPA), theirs)
