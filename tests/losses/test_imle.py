import numpy as np
import pytest
from scipy.stats import gumbel_r, ks_2samp, kstest

from decidewise.evaluate import decision_regret
from decidewise.losses import Dbb, Imle
from decidewise.losses.imle import sum_of_gamma
from decidewise.problems import ShortestPath, TopK


class OneTerm:
    """Stands for a generator whose first Gamma term is given and whose others are zero."""

    def __init__(self, term):
        self.terms = [term, *np.zeros((9, *term.shape))]

    def gamma(self, shape, scale, size):
        term = self.terms.pop(0)
        assert term.shape == size
        return term


@pytest.fixture
def rng():
    return np.random.default_rng(17)


def test_kappa_entries_of_the_noise_sum_up_to_a_gumbel_variable(rng):
    noise = sum_of_gamma(rng, (4_000, 4), kappa=4.0, n_terms=500)

    assert kstest(noise.sum(axis=1), gumbel_r.cdf).pvalue > 0.01


def test_moments_of_the_noise(rng):
    noise = sum_of_gamma(rng, (100_000,))
    i = np.arange(1, 11)

    assert abs(noise.mean() - ((1 / i).sum() - np.log(10)) / 5) < 5 * noise.std() / np.sqrt(len(noise))
    np.testing.assert_allclose(noise.var(), (1 / i**2).sum() / 5, rtol=0.05)


@pytest.mark.parametrize("kappa", [0.05, 0.3, 1.0, 5.0, 40.0])
@pytest.mark.parametrize("n_terms", [1, 10])
def test_the_noise_is_distributed_as_the_sum_of_gamma_variables(rng, kappa, n_terms):
    terms = [rng.gamma(1 / kappa, kappa / i, 20_000) for i in range(1, n_terms + 1)]

    noise = sum_of_gamma(rng, (200, 100), kappa=kappa, n_terms=n_terms)

    assert ks_2samp(noise.ravel(), (sum(terms) - np.log(n_terms)) / kappa).pvalue > 0.01
    assert abs(np.corrcoef(noise[:, :-1].ravel(), noise[:, 1:].ravel())[0, 1]) < 0.03


def test_on_the_simplex_it_compares_items(rng):
    costs, prediction = rng.normal(size=(2, 20, 5))
    gamma = rng.gamma(1.0, size=(3, 20, 5))
    perturbed = prediction + 0.7 * (gamma - np.log(10)) / 4.0
    chosen, shifted = perturbed.argmin(axis=2), (perturbed + 2.0 * costs).argmin(axis=2)
    loss = Imle(n_samples=3, sigma=0.7, lambd=2.0, kappa=4.0)

    values, gradient = loss.evaluate(prediction, loss.prepare(TopK(5, 1, sense="min"), costs), OneTerm(gamma))

    np.testing.assert_allclose(values, costs[np.arange(20), chosen].mean(axis=0) - costs.min(axis=1), atol=1e-12)
    np.testing.assert_allclose(gradient, (np.eye(5)[shifted] - np.eye(5)[chosen]).mean(axis=0) / 2.0, atol=1e-12)


def test_without_noise_it_is_dbb(rng):
    problem = ShortestPath(3, 3)
    costs, prediction = rng.normal(size=(2, 30, problem.n_costs))
    imle, dbb = Imle(n_samples=2, sigma=1e-12, lambd=3.0), Dbb(lambd=3.0)

    values, gradient = imle.value_and_grad(prediction, imle.prepare(problem, costs), rng)
    _, expected = dbb.value_and_grad(prediction, dbb.prepare(problem, costs), rng)

    np.testing.assert_allclose(values, decision_regret(problem, prediction, costs), atol=1e-12)
    np.testing.assert_allclose(gradient, expected, atol=1e-12)


@pytest.mark.parametrize("parameters", [{"n_samples": 0}, {"sigma": 0.0}, {"lambd": -1.0}, {"kappa": 0.0}])
def test_parameters_are_checked(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        Imle(**parameters)
