import dataclasses
import signal
import sys
from contextlib import suppress

import numpy as np
import pytest

from decidewise.data import make_shortest_path
from decidewise.evaluate import normalized_regret
from decidewise.kit.errors import InputError
from decidewise.kit.interrupts import interruptible
from decidewise.losses import NOT_OFFERED
from decidewise.models import DecisionRegressor, GeneralizedLinear
from decidewise_bench.experiments import Method
from decidewise_bench.experiments.cells import compute


def of(cells, method, *, degree=4, trial=1):
    (cell,) = [c for c in cells if (c.method.name, c.degree, c.trial) == (method, degree, trial)]
    return cell


@pytest.fixture
def cells(tiny):
    return tiny.cells()


def test_one_cell_for_each_combination_and_trial(cells):
    assert len(cells) == 2 * 2 * 3  # trials, degrees, methods
    assert [cell.trial for cell in cells] == sorted(cell.trial for cell in cells)
    assert {cell.seed for cell in cells} == {42, 43}
    assert len({cell.key for cell in cells}) == len(cells)


def test_every_setting_is_part_of_the_key(cells):
    cell = cells[0]
    changes = {
        "plan": "other",
        "problem": "other",
        "degree": 2,
        "samples": 41,
        "trial": 7,
        "method": Method("MSE", loss="wise"),
        "data": "decidewise.data:make_knapsack",
        "options": {"grid": [3, 4]},
        "seed": 1,
        "test_samples": 51,
        "epochs": 4,
        "batch_size": 17,
        "learning_rate": 2e-2,
        "modules": ("another",),
        "version": "0.0.0",
        "libraries": "NumPy 1.0",
    }
    assert {*changes, "folder"} == {field.name for field in dataclasses.fields(cell)}
    assert dataclasses.replace(cell, folder="elsewhere").key == cell.key  # a plan may be moved
    keys = {dataclasses.replace(cell, **{name: value}).key for name, value in changes.items()}
    assert len(keys | {cell.key}) == len(changes) + 1


def test_an_exact_row_against_least_squares_by_hand(cells):
    cell = of(cells, "WISE")
    data = make_shortest_path(40 + 50, degree=4, seed=43, grid=(3, 3))
    X, Z = np.column_stack([np.ones(90), data.X]), data.costs
    norms = np.linalg.norm(Z[:40], axis=1, keepdims=True)
    weights = np.sqrt(norms)
    solution, *_ = np.linalg.lstsq(weights * X[:40], weights * Z[:40] / norms, rcond=None)
    (row,) = compute([cell])
    assert row.regret == pytest.approx(normalized_regret(data.problem, X[40:] @ solution, Z[40:]))
    assert row.floor == pytest.approx(normalized_regret(data.problem, data.mean_costs[40:], Z[40:]))
    assert (row.status, row.reason, row.n_solves, row.label_seconds) == ("ok", "", 0, 0.0)
    assert (row.seed, row.trial, row.version) == (43, 1, cell.version)


def test_an_adam_row_is_the_papers_protocol(cells):
    cell = of(cells, "SPO+")
    train, test = make_shortest_path(40 + 50, degree=4, seed=43, grid=(3, 3)).split(40)
    model = DecisionRegressor(
        train.problem,
        "spo+",
        protocol="paper",
        init="torch",
        epochs=3,
        batch_size=16,
        learning_rate=1e-2,
        random_state=cell.random_state,
    ).fit(train.X, train.costs)
    (row,) = compute([cell])
    assert row.regret == normalized_regret(test.problem, model.predict(test.X), test.costs)
    assert row.n_solves == model.history_[-1].n_solves == 40 + 3 * 40
    assert min(row.label_seconds, row.train_seconds, row.evaluate_seconds) > 0


@pytest.mark.parametrize(("loss", "calls"), [("mse", 0), ("lava", 40), ("cave+", 40), ("dbb", 40 + 3 * 80)])
def test_solver_calls_are_those_of_labels_and_training(cells, loss, calls):
    cell = dataclasses.replace(
        cells[0], data="decidewise.data:make_knapsack", options={"n_items": 6}, method=Method(loss, loss=loss)
    )
    (row,) = compute([cell])
    assert row.n_solves == calls


def test_methods_share_data_and_start_and_do_not_depend_on_each_other(cells):
    together = [cell for cell in cells if cell.draw == cells[0].draw]
    assert len({cell.random_state for cell in together}) == 1
    assert len({cell.random_state for cell in cells}) == 4
    for cell, row in zip(together, compute(together), strict=True):
        (alone,) = compute([cell])
        assert (alone.method, alone.regret, alone.floor) == (row.method, row.regret, row.floor)


def test_a_method_that_fails_is_a_row_and_the_others_go_on(cells):
    # LAVA needs a polyhedron, which the portfolio does not have.
    base = dataclasses.replace(cells[0], data="decidewise.data:make_portfolio", options={"n_assets": 4})
    methods = [Method("MSE", loss="mse"), Method("LAVA", loss="lava"), Method("WISE", loss="wise", mode="exact")]
    rows = list(compute([dataclasses.replace(base, method=method) for method in methods]))
    assert [row.status for row in rows] == ["ok", "failed", "ok"]
    assert rows[1].reason.startswith("ValueError: Lava needs linear constraints")
    assert rows[1].regret is None
    assert rows[1].floor == rows[0].floor > 0


def test_data_that_fail_are_a_row_for_each_method(cells):
    bad = [dataclasses.replace(cell, options={"grid": [3]}) for cell in cells if cell.draw == cells[0].draw]
    rows = list(compute(bad))
    assert [row.method for row in rows] == ["MSE", "SPO+", "WISE"]
    assert {row.status for row in rows} == {"failed"}
    assert all(row.reason.startswith("ValueError: grid must be a pair") and row.floor is None for row in rows)


def test_a_training_that_was_interrupted_is_no_result(cells, monkeypatch):
    def interrupted(self, X, y):
        self.stopped_ = "interrupted"
        return self

    monkeypatch.setattr(DecisionRegressor, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(compute([of(cells, "MSE")]))


@pytest.mark.parametrize("error", [SystemError("a kernel returned a result with an exception set"), ImportError("no")])
@pytest.mark.parametrize("place", ["data", "fit"])
def test_an_interrupt_in_the_guise_of_another_error_is_no_result(cells, monkeypatch, place, error):
    def interrupted(*_, **__):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as stop:
            raise error from stop

    if place == "fit":
        monkeypatch.setattr(DecisionRegressor, "fit", interrupted)
    else:
        monkeypatch.setattr("decidewise_bench.experiments.cells.resolve", lambda name: interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(compute([of(cells, "MSE")]))


def test_an_interrupt_that_someone_swallows_is_no_result(cells, monkeypatch):
    fit = GeneralizedLinear.fit

    def swallowing(self, X, y):
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return fit(self, X, y)

    monkeypatch.setattr(GeneralizedLinear, "fit", swallowing)
    cell = dataclasses.replace(cells[0], method=Method("MSE", loss="mse", mode="exact"))
    with interruptible(), pytest.raises(KeyboardInterrupt):
        list(compute([cell]))


def test_an_exit_is_a_failure_like_any_other(cells, monkeypatch):
    def leaving(self, X, y):
        sys.exit(9)

    monkeypatch.setattr(DecisionRegressor, "fit", leaving)
    rows = list(compute([cell for cell in cells if cell.draw == cells[0].draw]))
    assert [row.reason for row in rows] == ["SystemExit: 9", "SystemExit: 9", ""]


REAL_DATA = """
import csv
from pathlib import Path
import numpy as np
from decidewise.data import Dataset
from decidewise.problems import TopK

def read(n, *, seed, file):
    with Path(__file__).with_name(file).open() as text:
        table = np.array([[float(value) for value in line.values()] for line in csv.DictReader(text)])
    rows = np.random.default_rng(seed).permutation(len(table))[:n]
    return Dataset(table[rows, :2], table[rows, 2:], TopK(3, 1))
"""


def test_observed_data_have_neither_degree_nor_floor_and_exact_methods_no_learning_rate(tiny):
    rng = np.random.default_rng(0)
    folder = tiny.plan.parent
    table = np.column_stack([X := rng.normal(size=(60, 2)), 5 + X @ rng.normal(size=(2, 3)) + rng.normal(size=(60, 3))])
    np.savetxt(folder / "prices.csv", table, delimiter=",", header="a,b,x,y,z", comments="")
    (folder / "my_prices.py").write_text(REAL_DATA)
    tiny.plan.write_text(
        """
        trials = 2
        [[problems]]
        name = "prices"
        data = "my_prices:read"
        options = { file = "prices.csv" }
        samples = [40]
        test_samples = 20
        methods = [{ name = "MSE", loss = "mse", mode = "exact" }, { name = "WISE", loss = "wise", mode = "exact" }]
        """
    )
    cells = tiny.cells()
    assert {(cell.degree, cell.learning_rate) for cell in cells} == {(None, None)}
    rows = [row for trial in range(2) for row in compute([cell for cell in cells if cell.trial == trial])]
    assert [(row.reason, row.degree, row.floor) for row in rows] == [("", None, None)] * 4
    order = np.random.default_rng(42).permutation(60)
    A = np.column_stack([np.ones(60), table[order, :2]])
    solution, *_ = np.linalg.lstsq(A[:40], table[order[:40], 2:], rcond=None)
    chosen = np.argmax(A[40:] @ solution, axis=1)
    costs = table[order[40:], 2:]
    best = costs.max(axis=1).sum()  # the problem is a maximisation
    by_hand = 100 * (best - costs[np.arange(20), chosen].sum()) / best
    assert rows[0].regret == pytest.approx(by_hand)


@pytest.mark.parametrize(("n", "sentence"), [(50, "returned 50 rows, and 60 were asked for"), (70, "returned 70 rows")])
def test_data_of_another_length_are_a_failure(cells, monkeypatch, n, sentence):
    make = make_shortest_path
    monkeypatch.setattr(
        "decidewise_bench.experiments.cells.resolve",
        lambda name: lambda _, **given: make(n, **given | {"grid": (3, 3)}),
    )
    (row,) = compute([dataclasses.replace(cells[0], samples=10)])
    assert sentence in row.reason


ITEMS = """
import numpy as np
from decidewise.data import Dataset
from decidewise.problems import TopK

def draw(n, *, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5, 2))
    return Dataset(X, 5 + X @ [1.0, -1.0] + rng.normal(size=(n, 5)), TopK(5, 2))
"""


def test_plans_take_features_per_item(tiny):
    (tiny.plan.parent / "my_items.py").write_text(ITEMS)
    tiny.plan.write_text(
        """
        trials = 1
        epochs = 2
        [[problems]]
        name = "items"
        data = "my_items:draw"
        samples = [40]
        test_samples = 100
        learning_rate = 1e-2
        methods = [
          { name = "MSE", loss = "mse", mode = "exact" },
          { name = "WISE", loss = "wise", mode = "exact" },
          { name = "SPO+", loss = "spo+" },
        ]
        """
    )
    rows = list(compute(tiny.cells()))
    assert [row.reason for row in rows] == ["", "", ""]
    assert max(row.regret for row in rows[:2]) < 20


@pytest.mark.parametrize("name", NOT_OFFERED)
def test_a_method_with_a_loss_that_is_not_offered_says_why(name):
    with pytest.raises(InputError, match=f"there is no loss '{name}'"):
        Method("theirs", loss=name).check()
