"""A tree from a file must end: a made-up one whose samples would walk in a circle is refused."""

import numpy as np
import pytest

from decidewise.model_file.classes import build

TREE = {
    "feature": np.array([0, -1, -1]),
    "threshold": np.zeros(3),
    "left": np.array([1, -1, -1]),
    "right": np.array([2, -1, -1]),
    "value": np.ones((3, 2)),
    "count": np.array([4, 2, 2]),
}


def test_a_tree_is_read():
    assert build("Nodes", TREE).n_leaves == 2


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"left": np.array([0, -1, -1])}, "must come after it"),
        ({"right": np.array([3, -1, -1])}, "must come after it"),
        ({"left": np.array([1.0, -1, -1])}, "left of a tree must be 3 whole numbers"),
        ({"threshold": np.zeros(2)}, "threshold of a tree"),
        ({"value": np.ones(3)}, "value must be a matrix"),
    ],
)
def test_what_is_no_tree_is_refused(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        build("Nodes", TREE | changes)
