import sys

import pytest

from decidewise.kit.errors import InputError
from decidewise.losses import registry
from decidewise_bench.experiments import cells_of_all, code_version, read_plan, run

MODULES = {
    "raising": "x = 1\nraise RuntimeError('boom')\n",
    "leaving": "import sys\nsys.exit(7)\n",
    "broken": "def f(:\n",
}


def change(bench, old, new):
    text = bench.plan.read_text()
    assert old in text
    bench.plan.write_text(text.replace(old, new))
    return bench.plan


def test_a_plan_is_what_the_file_says(tiny):
    plan = read_plan(tiny.plan)
    assert read_plan(str(tiny.plan)) == plan
    assert (plan.name, plan.trials, plan.epochs, plan.batch_size) == ("tiny", 2, 3, 16)
    (problem,) = plan.problems
    assert problem.seed == 42
    assert problem.options == {"grid": [3, 3]}
    assert [problem.rate(method, 40) for method in problem.methods] == [1e-2, 1e-2, None]  # the exact one needs none
    assert [(method.name, method.mode) for method in problem.methods] == [
        ("MSE", "adam"),
        ("SPO+", "adam"),
        ("WISE", "exact"),
    ]


def test_a_learning_rate_for_each_number_of_samples(tiny):
    path = change(tiny, "samples = [40]", "samples = [40, 80]")
    change(tiny, "learning_rate = 1e-2", "learning_rate = [1e-2, 5e-3]")
    change(tiny, '{ name = "SPO+", loss = "spo+" }', '{ name = "SPO+", loss = "spo+", learning_rate = [1e-3, 5e-4] }')
    (problem,) = read_plan(path).problems
    rates = [[problem.rate(method, n) for n in (40, 80)] for method in problem.methods]
    assert rates == [[1e-2, 5e-3], [1e-3, 5e-4], [None, None]]


def test_a_sweep_is_one_method_for_each_value(tiny):
    change(tiny, "learning_rate = 1e-2", "learning_rate = { sweep = [1e-2, 5e-4] }")
    swept = '{ name = "PFY", loss = "pfy", parameters = { n_samples = 1, sigma = { sweep = [0.5, 1] } }'
    change(tiny, '{ name = "SPO+", loss = "spo+" }', f"{swept}, learning_rate = 0.1 }}")
    (problem,) = read_plan(tiny.plan).problems
    assert [(method.name, method.parameters, problem.rate(method, 40)) for method in problem.methods] == [
        ("MSE, learning_rate 0.01", {}, 1e-2),
        ("MSE, learning_rate 0.0005", {}, 5e-4),
        ("PFY, sigma 0.5", {"n_samples": 1, "sigma": 0.5}, 0.1),
        ("PFY, sigma 1", {"n_samples": 1, "sigma": 1}, 0.1),
        ("WISE", {}, None),
    ]
    assert len({cell.key for cell in tiny.cells()}) == 2 * 2 * 5


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("epochs = 3", "epoch = 3", r"tiny.toml: unknown key 'epoch'; known keys are problems, trials, epochs"),
        ("trials = 2", "", r"tiny.toml: trials is missing\."),
        ("trials = 2", "trials = 0", r"tiny.toml: trials: expected integer >= 1; got 0\."),
        ("trials = 2", 'trials = "two"', r"tiny.toml: trials: expected integer; got 'two'\."),
        ("trials = 2", 'name = "x"\ntrials = 2', r"unknown key 'name'"),
        ("trials = 2", 'imports = ["x"]\ntrials = 2', r"unknown key 'imports'"),
        ("degrees = [1, 4]", "degree = [1, 4]", r"problems\[0\]: unknown key 'degree'; known keys are name, data"),
        ("degrees = [1, 4]", "degrees = []", r"problems\[0\].degrees: expected list of length >= 1; got \[\]"),
        ("degrees = [1, 4]", "degrees = [1, 1]", r"problems\[0\]: degree 1 is listed twice; list each degree once"),
        ("degrees = [1, 4]", "degrees = [1, 1.5]", r"problems\[0\].degrees\[1\]: expected integer; got 1.5"),
        ("= 1e-2", "= [1e-2, 1e-3]", r"problems\[0\]: learning_rate has 2 entries and samples 1"),
        ('loss = "spo+"', 'loss = "spo+", learning_rate = [1.0, 1.0]', r"learning_rate has 2 entries and samples 1"),
        (
            'loss = "spo+"',
            'loss = "spo+", learning_rate = [-1.0]',
            r"methods\[1\]: learning_rate must be a number above 0",
        ),
        ("= 1e-2", "= -1.0", r"problems\[0\]: learning_rate must be a number above 0"),
        ("= 1e-2", "= { sweep = [] }", r"problems\[0\].learning_rate.sweep: expected list of length >= 1; got \[\]"),
        ("= 1e-2", "= { sweep = [1e-2, 0.0] }", r"problems\[0\]: learning_rate must be a number above 0"),
        ("learning_rate = 1e-2\n", "", r"problems\[0\]: learning_rate is missing; MSE is trained by Adam"),
        ('"paths"', "3", r"problems\[0\].name: expected string; got 3"),
        ("{ grid = [3, 3] }", "3", r"problems\[0\].options: expected table; got 3"),
        ('"decidewise.data:make_shortest_path"', '"print(1)"', r"expected an importable name .*got 'print\(1\)'"),
        ('loss = "spo+"', "loss = 7", r"problems\[0\].methods\[1\].loss: expected string; got 7"),
        (
            'loss = "spo+"',
            'lost = "spo+"',
            r"problems\[0\].methods\[1\]: unknown key 'lost'; known keys are name, loss",
        ),
        ('loss = "spo+"', 'loss = "spo+", mode = "exact"', r'methods\[1\]: mode = "exact" is for mse and wise'),
        ('loss = "spo+"', 'loss = "spo+", mode = "sgd"', r'"adam" or "exact"; got \'sgd\''),
        ('loss = "spo+"', 'loss = "spo+", model = "a:b"', r"either a loss or a model"),
        ('loss = "spo+"', 'loss = "my losses:Mine"', r"expected an importable name .*got 'my losses:Mine'"),
        ('loss = "spo+"', 'model = "a:b", learning_rate = 1.0', r"methods\[1\]: learning_rate is for losses"),
        ('loss = "spo+"', 'loss = "pfy", parameters = { sigma = { sweep = 1 } }', r"the sweep of sigma must be a list"),
        ('name = "SPO+", loss = "spo+"', 'name = "MSE", loss = "mse"', r"method MSE \(adam\) is listed twice"),
        ("trials = 2", "trials = ", r"tiny.toml is not valid TOML"),
        ('"paths"', '"pa\\u001b[2Jths"', r"name must be text, not blank and without control characters"),
        ('"paths"', '" "', r"name must be text"),
        ("[40]", f"[{10**30}]", r"problems\[0\].samples\[0\]: expected integer <= "),
    ],
)
def test_a_mistake_is_named_with_its_place(tiny, old, new, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_plan(change(tiny, old, new))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (":make_shortest_path", ":make_shortest", r"'decidewise.data' has no function or class 'make_shortest'"),
        ("decidewise.data:", "no_such_module:", r"cannot import 'no_such_module' .*beside the plan"),
        ('loss = "spo+"', 'loss = "spo"', r"tiny, paths, SPO\+: unknown loss 'spo'; known are mse, wise"),
        ('loss = "spo+"', 'loss = "pfy", parameters = { samples = 3 }', r"'pfy' does not take the parameters"),
        ('loss = "spo+"', 'loss = "pfy", parameters = { sigma = -1 }', r"sigma must be a number above 0"),
        ('loss = "spo+"', 'model = "decidewise.data:no"', r"has no function or class 'no'"),
        ('loss = "spo+"', 'loss = "decidewise.models:WiseRegressor"', r"is not a decidewise.losses.Loss"),
        ('loss = "spo+"', 'loss = "raising:Loss"', r"import 'raising': .*: boom \(raising.py, line 2\)"),
        ('loss = "spo+"', 'loss = "leaving:Loss"', r"cannot import 'leaving': SystemExit: 7"),
        ('loss = "spo+"', 'loss = "broken:Loss"', r"cannot import 'broken': SyntaxError: .*broken.py, line 1"),
    ],
)
def test_what_a_name_stands_for_is_told_by_a_run_before_it_computes_or_replaces(tiny, old, new, sentence):
    for name, source in MODULES.items():
        (tiny.plan.parent / f"{name}.py").write_text(source)
    change(tiny, old, new)
    cells, store = tiny.cells(), tiny.store()
    with pytest.raises(InputError, match=sentence):
        run(cells, store, jobs=1, anew="all")
    assert store.rows(cells) == []


def test_reading_a_plan_imports_nothing(tiny):
    package = tiny.plan.parent / "parcel"
    (package / "inner").mkdir(parents=True)
    for file in ("parcel/__init__.py", "parcel/inner/__init__.py", "parcel/inner/part.py"):
        (tiny.plan.parent / file).write_text(f"raise SystemExit({file!r})")
    change(tiny, 'loss = "spo+"', 'loss = "parcel.inner.part:Loss"')
    change(tiny, 'loss = "mse" }', 'model = "nowhere.to_be.found:model" }')
    path, version = list(sys.path), tiny.cells()[0].version
    assert sys.path == path
    assert not [name for name in sys.modules if name.startswith("parcel")]
    (package / "inner" / "part.py").write_text("raise SystemExit('something else')")
    code_version.cache_clear()
    assert tiny.cells()[0].version != version  # it is part of the code all the same


def test_more_cells_than_anyone_wants_are_refused_before_they_are_made(tiny):
    plan = read_plan(change(tiny, "trials = 2", "trials = 3000000000"))
    with pytest.raises(InputError, match=r"18,000,000,000 cells, more than 1,000,000; ask for fewer trials"):
        cells_of_all([plan])


@pytest.mark.parametrize("trials", ["2", 0, 1.5])
def test_trials_in_place_of_those_of_the_plan_are_checked(tiny, trials):
    with pytest.raises(ValueError, match="trials must be "):
        tiny.cells(trials=trials)


def test_a_plan_without_a_problem(tmp_path):
    (tmp_path / "empty.toml").write_text("trials = 1")
    with pytest.raises(ValueError, match=r"empty\.toml: problems is missing"):
        read_plan(tmp_path / "empty.toml")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match=r"cannot read the plan .*none.toml: No such file"):
        read_plan(tmp_path / "none.toml")


def test_a_loss_of_ones_own_is_named_like_a_model(tiny):
    module = tiny.plan.parent / "loss_of_mine.py"
    module.write_text("from decidewise.losses import Pfy\n\nclass Mine(Pfy):\n    pass\n")
    change(tiny, "trials = 2", "trials = 1")
    change(tiny, 'loss = "spo+"', 'loss = "loss_of_mine:Mine", parameters = { n_samples = 2 }')
    change(tiny, 'name = "MSE", loss = "mse"', 'name = "PFY", loss = "pfy", parameters = { n_samples = 2 }')
    plan, cells, store = read_plan(tiny.plan), tiny.cells(), tiny.store()
    assert plan.modules == ("loss_of_mine",)
    known = dict(registry)
    run(cells, store, jobs=1)
    assert registry == known
    rows = store.rows(cells)
    assert {row.reason for row in rows} == {""}
    assert [row.regret for row in rows if row.method == "SPO+"] == [row.regret for row in rows if row.method == "PFY"]


SHARED = """
trials = 1
parameters = { tries = 8, epochs = 20 }
methods = METHODS
[[problems]]
name = "few"
data = "decidewise.data:make_knapsack"
degrees = [1]
samples = [40]
learning_rate = { sweep = [1e-2, 1e-3] }
test_samples = 20
parameters = { epochs = 5 }
[[problems]]
name = "own"
data = "decidewise.data:make_knapsack"
degrees = [1]
samples = [40]
test_samples = 20
methods = [{ name = "Mine", model = "mine:model", parameters = { tries = 1 } }]
"""
LISTED = '[{ name = "MSE", loss = "mse" }, { name = "Tree", model = "mine:tree", parameters = { depth = 2 } }]'


@pytest.mark.parametrize("apart", [False, True], ids=["in the plan", "in a file of its own"])
def test_methods_and_parameters_for_all_problems(tmp_path, apart):
    (tmp_path / "more.toml").write_text(f"methods = {LISTED}")
    (tmp_path / "plan.toml").write_text(SHARED.replace("METHODS", '"more.toml"' if apart else LISTED))
    few, own = read_plan(tmp_path / "plan.toml").problems
    assert [(method.name, method.parameters) for method in few.methods] == [
        ("MSE, learning_rate 0.01", {}),  # parameters for all are for models, not for losses
        ("MSE, learning_rate 0.001", {}),
        ("Tree", {"tries": 8, "epochs": 5, "depth": 2}),
    ]
    assert [(method.name, method.parameters) for method in own.methods] == [("Mine", {"tries": 1, "epochs": 20})]


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ("[]", "few has no methods; list some there, or at the top for all problems"),
        ('"none.toml"', "cannot read the methods .*none.toml: No such file"),
        ('"empty.toml"', "few has no methods"),
        ("7", "methods: expected list; got 7"),
    ],
)
def test_methods_for_all_that_are_wrong(tmp_path, methods, message):
    (tmp_path / "empty.toml").write_text("")
    (tmp_path / "plan.toml").write_text(SHARED.replace("METHODS", methods))
    with pytest.raises(InputError, match=message):
        read_plan(tmp_path / "plan.toml")
