import sys

import pytest

from decidewise.errors import InputError
from decidewise.experiments import cells_of_all, code_version, read_plan, run
from decidewise.losses import Mse, registry

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
    assert problem.learning_rates == {40: 1e-2}
    assert [(method.name, method.mode) for method in problem.methods] == [
        ("MSE", "adam"),
        ("SPO+", "adam"),
        ("WISE", "exact"),
    ]


def test_a_learning_rate_for_each_number_of_samples(tiny):
    path = change(tiny, "samples = [40]", "samples = [40, 80]")
    change(tiny, "learning_rate = 1e-2", "learning_rate = [1e-2, 5e-3]")
    assert read_plan(path).problems[0].learning_rates == {40: 1e-2, 80: 5e-3}


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("epochs = 3", "epoch = 3", r"tiny.toml: unknown key 'epoch'; known keys are problems, trials, epochs"),
        ("trials = 2", "", r"tiny.toml: trials is missing"),
        ("trials = 2", "trials = 0", r"trials must be at least 1; got trials=0"),
        ("trials = 2", 'name = "x"\ntrials = 2', r"unknown key 'name'"),
        ("degrees = [1, 4]", "degree = [1, 4]", r"problems\[0\]: unknown key 'degree'; known keys are name, data"),
        ("degrees = [1, 4]", "degrees = []", r"degrees must be a list of at least one entry; got \[\]"),
        ("degrees = [1, 4]", "degrees = [1, 1]", r"degree 1 stands there twice"),
        ("degrees = [1, 4]", "degrees = [1.5]", r"an entry of degrees must be a Python or NumPy integer; got 1.5"),
        ("= 1e-2", "= [1e-2, 1e-3]", r"learning_rate has 2 entries and samples 1"),
        ("= 1e-2", "= -1.0", r"learning_rate must be a number above 0"),
        ('"paths"', "3", r"problems\[0\]: name must be a string; got 3"),
        ("{ grid = [3, 3] }", "3", r"options must be a table; got 3"),
        ('"decidewise.data:make_shortest_path"', '"print(1)"', r"expected an importable name .*got 'print\(1\)'"),
        ('loss = "spo+"', 'loss = "spo+", mode = "exact"', r'mode = "exact" is for mse and wise'),
        ('loss = "spo+"', 'loss = "spo+", mode = "sgd"', r'"adam" or "exact"; got \'sgd\''),
        ('loss = "spo+"', 'loss = "spo+", model = "a:b"', r"either a loss or a model"),
        ('name = "SPO+", loss = "spo+"', 'name = "MSE", loss = "mse"', r"method MSE \(adam\) stands there twice"),
        ("trials = 2", 'trials = 2\nimports = "os"', r"imports must be a list of strings; got 'os'"),
        ("trials = 2", "trials = 2\nimports = ['a b']", r"expected the name of a module .*got 'a b'"),
        ("trials = 2", "trials = ", r"tiny.toml is not valid TOML"),
        ('"paths"', '"pa\\u001b[2Jths"', r"name must be some text without control characters"),
        ('"paths"', '" "', r"name must be some text"),
        ("[40]", f"[{10**30}]", r"an entry of samples must be at most"),
    ],
)
def test_a_mistake_is_named_with_its_place(tiny, old, new, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_plan(change(tiny, old, new))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (":make_shortest_path", ":make_shortest", r"'decidewise.data' has no function 'make_shortest'"),
        ("decidewise.data:", "no_such_module:", r"cannot import 'no_such_module' .*beside the plan"),
        ('loss = "spo+"', 'loss = "spo"', r"tiny, paths, SPO\+: unknown loss 'spo'; known are mse, wise"),
        ('loss = "spo+"', 'loss = "pfy", parameters = { samples = 3 }', r"'pfy' does not take the parameters"),
        ('loss = "spo+"', 'loss = "pfy", parameters = { sigma = -1 }', r"sigma must be a number above 0"),
        ('loss = "spo+"', 'model = "decidewise.data:no"', r"has no function 'no'"),
        (
            "trials = 2",
            'trials = 2\nimports = ["raising"]',
            r"import 'raising': .*: boom \(raising.py, line 2\)",
        ),
        ("trials = 2", 'trials = 2\nimports = ["leaving"]', r"cannot import 'leaving': SystemExit: 7"),
        ("trials = 2", 'trials = 2\nimports = ["broken"]', r"cannot import 'broken': SyntaxError: .*broken.py, line 1"),
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
    change(tiny, "trials = 2", 'trials = 2\nimports = ["parcel.inner.part", "nowhere.to_be.found", "sys"]')
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


def test_a_plan_without_a_problem(tmp_path):
    (tmp_path / "empty.toml").write_text("trials = 1")
    with pytest.raises(ValueError, match="problems must be a list of at least one entry"):
        read_plan(tmp_path / "empty.toml")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match=r"cannot read the plan .*none.toml: No such file"):
        read_plan(tmp_path / "none.toml")


def test_a_module_beside_the_plan_registers_a_loss(tiny):
    module = tiny.plan.parent / "loss_of_mine.py"
    module.write_text("from decidewise.losses import Mse, registry\nregistry['mine'] = Mse\n")
    change(tiny, "trials = 2", 'trials = 1\nimports = ["loss_of_mine"]')
    change(tiny, 'loss = "spo+"', 'loss = "mine"')
    plan, cells, store = read_plan(tiny.plan), tiny.cells(), tiny.store()
    assert plan.modules == ("loss_of_mine",)
    assert "mine" not in registry
    try:
        run(cells, store, jobs=1)
        assert registry["mine"] is Mse
    finally:
        registry.pop("mine", None)
    assert {row.reason for row in store.rows(cells)} == {""}
    assert sys.path[-1] == str(tiny.plan.parent)
