import pytest

from decidewise.kit.errors import InputError
from decidewise_bench.experiments import read_plan
from decidewise_bench.real import PLANS
from decidewise_bench.real.files import VARIABLE, MissingDataError, find_file, with_data


def test_the_folder_is_beside_the_current_one_unless_it_is_named(tmp_path, monkeypatch):
    (tmp_path / "shared" / "data").mkdir(parents=True)
    (tmp_path / "project").mkdir()
    (tmp_path / "shared" / "data" / "epf_NP.csv").touch()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.delenv(VARIABLE, raising=False)
    assert find_file("epf_NP.csv").samefile(tmp_path / "shared" / "data" / "epf_NP.csv")
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(MissingDataError, match=r"there is no file .*epf_NP\.csv; set DECIDEWISE_DATA to the folder"):
        find_file("epf_NP.csv")


def test_a_package_is_not_imported(packages):
    assert find_file("made_stocks:prices.csv").name == "prices.csv"
    with pytest.raises(MissingDataError, match=r"the installed version of made_stocks has no file other\.csv"):
        find_file("made_stocks:other.csv")


def test_tasks_without_data_are_left_out_with_a_sentence(folder, monkeypatch):
    plan = read_plan(PLANS / "real.toml")
    said = []
    monkeypatch.setattr("decidewise_bench.real.files.find_spec", lambda name: None)
    left = with_data(plan, said.append)
    assert {problem.name for problem in plan.problems} - {problem.name for problem in left.problems} == {
        "storage_DE", "portfolios", "bakery", "restaurant",
    }  # fmt: skip
    assert len(said) == 4
    assert said[0].startswith("storage_DE is left out: there is no file ")
    assert said[1].startswith(
        "portfolios is left out: datasets/data/sp500_dataset.csv.gz is part of the package skfolio"
    )
    assert with_data(left, said.append) == left


def test_a_plan_of_which_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    (tmp_path / "mine.toml").write_text(
        """
        trials = 1
        [[problems]]
        name = "mine"
        data = "decidewise_bench.real.storage:day_ahead_storage"
        options = { file = "none.csv", windows = 1, step = 1 }
        samples = [9]
        test_samples = 1
        methods = [{ name = "WISE", model = "decidewise_bench.real.methods:wise" }]
        """
    )
    with pytest.raises(InputError, match="no task of the plan 'mine' has its data on this machine"):
        with_data(read_plan(tmp_path / "mine.toml"), lambda text: None)
