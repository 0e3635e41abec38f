"""The tree from what a reader has to the call that fits."""

from itertools import count

from matplotlib.figure import Figure

from decidewise.app.pages import INK, LIGHT

BLUE = LIGHT[0]
#: Each question with its answers, and the call of each answer.
TREE = {
    "your table": {
        "one line per sample": "WiseRegressorCV(problem).fit(X, costs)",
        "one line per sample and item": "read_table(..., rows=, items=)",
        "with a forecast of yours": "WiseRegressorCV(problem, forecast=...)",
        "in the order of time": ".fit(X, costs, times=days)",
    },
    "your problem": {
        "route, knapsack, battery, ...": "ShortestPath, Knapsack, Storage, ...",
        "in CVXPY, Pyomo, Gurobi, linopy": "from_cvxpy(model, parameter), ...",
        "an MPS or LP file": 'read_problem("model.mps", costs=...)',
        "a solver of your own": "from_function(solve, n_costs)",
    },
    "what is hard": {
        "the solver is slow": "WiseRegressor(): none in training",
        "heavy tails, rare spikes": 'WiseRegressor(GeneralizedLinear("gamma"))',
        "known costs beside predicted": "KnownCosts(problem, tolls)",
        "limits differ by row": "Knapsack(weights, capacities_by_row)",
        "billions of rows, a cluster": '.fit_files("*.parquet"), .distributed',
        "a torch or jax network": 'loss_module("spo+", problem)',
        "does it pay at all?": "diagnose(problem, X, costs)",
    },
}


def draw_tree() -> Figure:
    """Return the tree: questions on the left, answers in the middle, calls on the right."""
    n_rows = sum(map(len, TREE.values())) + len(TREE) - 1
    figure = Figure(figsize=(7.2, 0.32 * n_rows + 0.2))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, 7.2), ylim=(n_rows - 0.3, -0.7))
    axes.axis("off")
    rows = count()
    for question, answers in TREE.items():
        heights = [next(rows) for _ in answers]
        middle = (heights[0] + heights[-1]) / 2
        axes.text(
            0.7, middle, question, ha="center", va="center", fontsize=10, color="#ffffff", weight="bold", zorder=2,
            bbox={"boxstyle": "round,pad=0.5", "facecolor": BLUE, "edgecolor": BLUE},
        )  # fmt: skip
        for height, (answer, call) in zip(heights, answers.items(), strict=True):
            axes.plot([0.7, 1.45, 1.45, 1.6], [middle, middle, height, height], color=INK, alpha=0.45, lw=1, zorder=1)
            axes.text(1.68, height, answer, va="center", fontsize=9.5)
            axes.text(4.05, height, call, va="center", fontsize=8.5, family="DejaVu Sans Mono", color=BLUE)
        next(rows)
    return figure
