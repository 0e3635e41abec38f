import numpy as np
import pytest
from scipy.spatial import ConvexHull

from decidewise.errors import InputError
from decidewise.experiments.methods import Method
from decidewise.losses import NOT_OFFERED, Qptl, Rfwo, as_loss, registry
from decidewise.problems import Knapsack, LinearProgram


@pytest.mark.parametrize("name", NOT_OFFERED)
def test_the_name_of_a_method_that_is_not_offered_says_why_and_what_to_use(name):
    assert name not in registry
    with pytest.raises(ValueError, match=rf"there is no loss '{name}': ") as raised:
        as_loss(name)
    with pytest.raises(InputError, match=f"there is no loss '{name}'"):
        Method("theirs", loss=name).check()
    assert any(f'"{other}"' in str(raised.value) for other in registry)


def test_the_limit_of_all_cuts_is_the_hull_on_which_rfwo_projects():
    """MIPaaL with every facet of the hull as a cut, QPTL on that, is RFWO; without cuts it is not."""
    knapsack = Knapsack([[3.0, 4.0, 5.0]], [8.0])
    points = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1) if 3 * i + 4 * j + 5 * k <= 8], float)
    facets = np.unique(ConvexHull(points).equations.round(12), axis=0)
    with_cuts = LinearProgram(facets[:, :-1], -facets[:, -1], lower=0.0, upper=1.0, sense="max")
    rng = np.random.default_rng(0)
    prediction, costs = rng.uniform(0, 1.5, size=(2, 40, 3))
    found = {}
    for name, loss, problem in (
        ("cuts", Qptl(lambd=1.0), with_cuts),
        ("hull", Rfwo(lambd=1.0), knapsack),
        ("relaxation", Qptl(lambd=1.0), knapsack),
    ):
        found[name] = loss.value_and_grad(prediction, loss.prepare(problem, costs), rng)
    np.testing.assert_allclose(found["cuts"][0], found["hull"][0], atol=1e-8)
    np.testing.assert_allclose(found["cuts"][1], found["hull"][1], atol=1e-6)
    assert np.abs(found["relaxation"][0] - found["hull"][0]).max() > 0.1
