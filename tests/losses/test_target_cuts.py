from itertools import product

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from decidewise.kit.errors import SolverError
from decidewise.losses.mipaal import TargetCuts


@pytest.mark.parametrize("seed", range(4))
def test_cuts_are_facets_that_separate(seed):
    rng = np.random.default_rng(seed)
    cube = np.array(list(product((0.0, 1.0), repeat=4)))
    points = cube[cube @ rng.uniform(1, 5, size=4) <= 7]
    facets = ConvexHull(points).equations if np.ptp(points, axis=0).all() else None
    cuts = TargetCuts(lambda costs: points[(costs @ points.T).argmin(axis=1)], points[:1])
    for outside in rng.uniform(0.6, 1.5, size=(10, 4)):
        if facets is None or (facets[:, :-1] @ outside + facets[:, -1]).max() < 1e-6:
            continue
        normal, limit = cuts.separate(outside)
        assert normal @ outside > limit + 1e-9
        assert (points @ normal <= limit + 1e-12).all()
        assert (
            np.linalg.matrix_rank(
                points[points @ normal > limit - 1e-9][1:] - points[points @ normal > limit - 1e-9][0]
            )
            == 3
        )


def test_a_solver_that_never_agrees_is_given_up(monkeypatch):
    monkeypatch.setattr("decidewise.losses.mipaal._MOST_ROUNDS", 5)
    rng = np.random.default_rng(0)
    cuts = TargetCuts(lambda costs: -1e3 * rng.uniform(1, 2) * costs, np.zeros((1, 2)))
    with pytest.raises(SolverError, match="no cut of a fractional point was found"):
        cuts.separate(np.ones(2))
