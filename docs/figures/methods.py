"""The figure of the README: the regret of nine models against the time of their training."""

from time import process_time
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from decidewise import DecisionRegressor, GeneralizedLinear, WiseRegressor, WiseRegressorCV, normalized_regret
from decidewise.app.pages import INK, LIGHT
from decidewise.data import make_shortest_path
from decidewise.problems import Problem

BLUE, ORANGE = LIGHT[:2]
SEEDS, DEGREE, N_TRAIN, N_TEST = range(500, 508), 6, 400, 5_000
#: Where the name of a method stands: from its mark, in points.
PLACES = {
    "WiseRegressorCV": (-9, -3),
    "SPO+": (0, -13),
    "PFY": (0, -13),
    "DBB": (-9, -3),
    "LAVA": (9, -3),
    "SPO+, log-linear": (9, -3),
}


def models(problem: Problem) -> dict[str, Any]:
    """Return the models; those whose name is a loss call the solver in every step."""
    trained = {
        name: DecisionRegressor(problem, loss, random_state=0)
        for name, loss in {"SPO+": "spo+", "PFY": "pfy", "DBB": "dbb", "LAVA": "lava"}.items()
    }
    gamma = WiseRegressor(GeneralizedLinear("gamma"))
    return {
        "least squares": GeneralizedLinear(),
        "WISE": WiseRegressor(),
        "WISE, log-linear": gamma,
        "WiseRegressorCV": WiseRegressorCV(problem, random_state=0),
        **trained,
        "SPO+, log-linear": DecisionRegressor(problem, "spo+", init=gamma, link="log", random_state=0),
    }


def measure() -> tuple[dict[str, tuple[float, float]], float]:
    """Return seconds of training and regret of each model, and the floor, over the seeds."""
    found: dict[str, list[tuple[float, float]]] = {}
    floors = []
    for seed in SEEDS:
        train, test = make_shortest_path(N_TRAIN + N_TEST, degree=DEGREE, seed=seed).split(N_TRAIN)
        floors.append(normalized_regret(test.problem, test.mean_costs, test.costs))
        for name, model in models(train.problem).items():
            if not found.get(name):
                model.fit(train.X, train.costs)  # the first fit also compiles
            start = process_time()
            model.fit(train.X, train.costs)
            seconds = process_time() - start
            regret = normalized_regret(test.problem, model.predict(test.X), test.costs)
            found.setdefault(name, []).append((seconds, regret))
    means = {}
    for name, rows in found.items():
        seconds, regrets = np.array(rows).T
        means[name] = float(np.median(seconds)), float(np.mean(regrets))
    return means, float(np.mean(floors))


def draw_methods() -> Figure:
    """Measure, print what was measured, and draw it."""
    found, floor = measure()
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    for name, (seconds, regret) in found.items():
        print(f"  {name}: {regret:.2f} %, {1e3 * seconds:.3g} ms")
        is_free = name in ("least squares", "WISE", "WISE, log-linear", "WiseRegressorCV")
        color = BLUE if is_free else ORANGE
        axes.plot(seconds, regret, "o" if is_free else "D", color=color, markersize=10 if is_free else 8)
        x, y = PLACES.get(name, (9, -3))
        place = {"ha": ("right", "center", "left")[np.sign(x) + 1], "va": "baseline" if x else "top"}
        text = f"{name}  {regret:.1f} %"
        axes.annotate(text, (seconds, regret), (x, y), textcoords="offset points", color=color, fontsize=9.5, **place)
    print(f"  floor: {floor:.2f} %")
    axes.axhline(floor, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    axes.text(0.995, floor - 0.15, f"floor {floor:.1f} %: no prediction from these features decides better",
              transform=axes.get_yaxis_transform(), ha="right", va="top", fontsize=9)  # fmt: skip
    axes.plot([], [], "o", color=BLUE, label="no solver in training")
    axes.plot([], [], "D", color=ORANGE, label="a solver for labels or in every step")
    axes.legend(frameon=False, loc="upper right", fontsize=9.5)
    axes.set(
        xscale="log", xlabel="training, time of one core", ylabel="regret, % above the best routes", ylim=(4.2, 15)
    )
    axes.set_xticks([1e-3, 1e-2, 1e-1, 1], ["1 ms", "10 ms", "100 ms", "1 s"])
    axes.minorticks_off()
    axes.set_title(f"Routes on a 5×5 grid, {N_TRAIN} past mornings, {len(SEEDS)} draws", loc="left")
    axes.margins(x=0.1)
    return figure
