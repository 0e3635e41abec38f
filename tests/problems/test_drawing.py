"""What the pictures of decisions show."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_hex

from decidewise.problems import CountedProblem, Portfolio, ShortestPath, Storage, TopK
from decidewise.problems.drawing import _BOUGHT, _LEFT, _TAKEN


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


def arrows_of(ax):
    return [text.arrow_patch for text in ax.texts if getattr(text, "arrow_patch", None) is not None]


@pytest.mark.parametrize(
    "problem",
    [
        ShortestPath(3, 4),
        ShortestPath.from_edges([0, 0, 2, 2, 5, 5, 5, 2, 3], [2, 5, 5, 9, 9, 9, 7, 7, 0], 0, 9),
        ShortestPath.from_edges([0, 1, 1, 2], [1, 0, 2, 1], source=[0, 2], target=[2, 1]).take([1]),
    ],
    ids=["grid", "graph", "one row"],
)
def test_a_path_has_all_edges_and_its_own_in_colour(problem):
    costs = np.arange(1.0, problem.n_costs + 1)
    decision = problem.solve(costs[np.newaxis])[0]
    ax = problem.plot(decision, costs)
    arrows = arrows_of(ax)
    assert [to_hex(arrow.get_edgecolor()) == _TAKEN for arrow in arrows] == (decision > 0).tolist()
    shown = [text.get_text() for text in ax.texts]
    assert {"start", "end", *(f"{cost:.3g}" for cost in costs)} <= set(shown)
    first, last = (next(text for text in ax.texts if text.get_text() == name) for name in ("start", "end"))
    assert first.xy[0] < last.xy[0]


def test_ends_that_differ_by_row_need_a_row():
    road = ShortestPath.from_edges([0, 1, 1, 2], [1, 0, 2, 1], source=[0, 2], target=[2, 1])
    with pytest.raises(ValueError, match=r"differ by row; draw the decision of row i of 2 by take\(\[i\]\)"):
        road.plot([1.0, 0.0, 1.0, 0.0])


def test_a_day_of_a_battery_has_prices():
    prices = np.array([10.0, 30.0, 10.0, 40.0])
    battery = CountedProblem(Storage(4, 1.0, 2.0, efficiency=0.8))  # a view draws what is inside
    ax = battery.plot([-1.0, 0.6, -1.0, 1.0], prices)
    bars = {to_hex(bar.get_facecolor()): [] for bar in ax.patches}
    for bar in ax.patches:
        bars[to_hex(bar.get_facecolor())].append(bar.get_height())
    assert bars == {_TAKEN: [0.0, 0.6, 0.0, 1.0], _BOUGHT: [-1.0, 0.0, -1.0, 0.0]}
    [other] = [axes for axes in ax.figure.axes if axes is not ax]
    np.testing.assert_array_equal(other.lines[0].get_ydata(), prices)


def test_a_chosen_set_with_names_and_amounts():
    row = pd.Series([1.0, 0.0, 1.0], index=["a", "b", "c"])
    ax = TopK(3, 2).plot(row, [5.0, 1.0, 4.0])
    colors = {bar.get_height(): to_hex(bar.get_facecolor()) for bar in ax.patches}
    assert colors == {5.0: _TAKEN, 4.0: _TAKEN, 1.0: _LEFT}
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b", "c"]
    amounts = Portfolio(np.eye(3), 0.5).plot([0.2, 0.3, 0.0], ax=pyplot.subplots()[1])
    assert [bar.get_height() for bar in amounts.patches] == [0.2, 0.3, 0.0]
    with pytest.raises(ValueError, match="decision must"):
        TopK(3, 2).plot([1.0, 0.0])
