"""What a model file says, what it refuses, and what cannot be saved."""

import io
import json
import os
import zipfile
from hashlib import sha256

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import make_column_transformer
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from decidewise import (
    DecisionRegressor,
    GeneralizedLinear,
    InputError,
    WiseRegressor,
    WiseRegressorCV,
    decide,
    evaluate_files,
    load_model,
    read_model_summary,
    save_model,
)
from decidewise.model_file.container import _START, SIGNATURE, VERSION, pack
from decidewise.models import AveragedRegressor, GivenForecast
from decidewise.problems import TopK

RNG = np.random.default_rng(1)
X = RNG.normal(size=(80, 3))
COSTS = np.exp(0.2 * X @ RNG.normal(size=(3, 4))) + RNG.uniform(size=(80, 4))
FRAME = pd.DataFrame(X, columns=["heat", "wind", "hour"])
COST_FRAME = pd.DataFrame(COSTS, columns=list("abcd"))
PROBLEM = TopK(4, 2, sense="min")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.dw"


def written(path, model="unset", arrays=(), **header):
    """Write a file with a given tree, valid but for the tree."""
    summary = {"model": "m", "types": [], "training": {}, "predicts_directions": False, "versions": {}}
    node = {"object": ["GeneralizedLinear", {}]} if model == "unset" else model
    path.write_bytes(pack({"summary": summary, "model": node, **header}, arrays))
    return path


def test_names_of_a_frame_and_what_was_told(path):
    model = WiseRegressor().fit(FRAME, COST_FRAME)
    told = {
        "units": {"costs": "EUR"},
        "rows": np.int64(80),
        "dates": np.array(["2024-01-01", "2024-03-20"], dtype="datetime64[ns]"),
        "regret": {"value": 3.25, "interval": (2.5, np.float32(4.0)), "worst": np.nan},
        "start": pd.Timestamp("2024-01-01 06:00"),
        "plan": ["wise", None, True],
    }
    save_model(model, path, summary=told)
    summary = read_model_summary(path)
    assert summary.feature_names == ("heat", "wind", "hour")
    assert summary.cost_names == tuple("abcd")
    assert (summary.n_features, summary.n_items, summary.n_costs) == (3, None, 4)
    assert summary.predicts_directions
    assert summary.units == {"costs": "EUR"}
    assert summary.training == {
        "rows": 80,
        "dates": ["2024-01-01T00:00:00.000000000", "2024-03-20T00:00:00.000000000"],
        "regret": {"value": 3.25, "interval": [2.5, 4.0], "worst": None},
        "start": "2024-01-01 06:00:00",
        "plan": ["wise", None, True],
    }
    assert set(summary.versions) == {"python", "decidewise", "numpy", "scikit-learn"}
    assert json.loads(json.dumps(summary.as_dict())) == summary.as_dict()


def test_names_of_arrays_are_told(path):
    told = {"feature_names": FRAME.columns, "cost_names": list("abcd"), "item_names": list("wxyz")}
    with pytest.raises(TypeError, match=r"summary\['feature_names'\] must be .*; got Index"):
        save_model(WiseRegressor().fit(X, COSTS), path, summary=told)
    save_model(WiseRegressor().fit(X, COSTS), path, summary={**told, "feature_names": list(FRAME.columns)})
    summary = read_model_summary(path)
    assert (summary.feature_names, summary.item_names) == (("heat", "wind", "hour"), tuple("wxyz"))
    save_model(WiseRegressor().fit(FRAME, COSTS), path, summary={"cost_names": list("abcd")})
    assert list(decide(load_model(path), PROBLEM, FRAME)) == list("abcd")
    with pytest.raises(ValueError, match="missing: 'a', 'b', 'c', 'd'"):
        save_model(WiseRegressor().fit(FRAME, COST_FRAME), path, summary={"cost_names": list("efgh")})
    with pytest.raises(ValueError, match="must have 4 names, one per cost; got 2"):
        save_model(WiseRegressor().fit(X, COSTS), path, summary={"cost_names": list("ab")})


@pytest.mark.parametrize("value", [object(), {1, 2}, b"x"])
def test_a_summary_is_plain(path, value):
    with pytest.raises(TypeError, match=r"summary\['plan'\]\['a'\] must be text, numbers, dates, lists and mappings"):
        save_model(WiseRegressor().fit(X, COSTS), path, summary={"plan": {"a": value}})
    with pytest.raises(TypeError, match=r"summary must be a dict of what to say of the model; got (object|set|bytes)"):
        save_model(WiseRegressor().fit(X, COSTS), path, summary=value)
    assert not path.exists()


def test_a_loaded_model_refuses_other_tables(path):
    save_model(WiseRegressor().fit(FRAME, COST_FRAME), path)
    model = load_model(path)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(FRAME.rename(columns={"wind": "rain"}))
    with pytest.raises(ValueError, match="missing:\\n- wind"):
        model.predict(FRAME[["heat", "hour"]])
    with pytest.raises(ValueError, match=r"column 0 is 'b', and should be 'a'"):
        model.score(FRAME, COST_FRAME[list("bacd")])


def test_categories_gaps_and_names_need_no_trust(path):
    frame = FRAME.assign(day=pd.Categorical(RNG.choice(["mon", "tue", "wed"], 80)), kind=RNG.choice(["x", "y"], 80))
    frame.loc[::7, "wind"] = np.nan
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["heat", "wind"]),
        (OneHotEncoder(handle_unknown="ignore"), ["day", "kind"]),
        remainder="passthrough",
    )
    model = make_pipeline(columns, WiseRegressor(GeneralizedLinear(alpha=0.1))).fit(frame, COST_FRAME)
    save_model(model, path)
    np.testing.assert_array_equal(load_model(path).predict(frame), model.predict(frame))
    summary = read_model_summary(path)
    assert summary.feature_names == tuple(frame.columns)
    assert summary.types == ()
    assert summary.predicts_directions  # as the last step does
    with pytest.raises(ValueError, match="columns are missing"):
        load_model(path).predict(frame.drop(columns="day"))


@pytest.mark.parametrize("rule", ["minimum", "average"])
@pytest.mark.parametrize("whole", [lambda model: model, lambda model: make_pipeline(StandardScaler(), model)])
def test_a_choice_keeps_the_names_that_it_was_fitted_with(path, tmp_path, rule, whole):
    choice = WiseRegressorCV(PROBLEM, {"a": WiseRegressor(), "b": WiseRegressor(scale="unit")}, rule=rule)
    save_model(whole(choice).fit(FRAME, COST_FRAME), path)
    assert list(decide(load_model(path), PROBLEM, FRAME)) == list("abcd")
    save_model(load_model(path), path)
    assert list(decide(load_model(path), PROBLEM, FRAME)) == list("abcd")
    FRAME.join(COST_FRAME).to_parquet(tmp_path / "rows.parquet")
    assert evaluate_files(load_model(path), PROBLEM, tmp_path / "rows.parquet").n_rows == 80


def test_a_choice_is_saved_as_what_it_chose(path):
    candidates = {"wise": WiseRegressor(), "plain": WiseRegressor(exponent=0.0)}
    chosen = WiseRegressorCV(PROBLEM, candidates, rule="minimum", random_state=0).fit(FRAME, COST_FRAME)
    save_model(chosen, path)
    found = load_model(path)
    assert type(found) is WiseRegressor
    np.testing.assert_array_equal(found.predict(FRAME), chosen.predict(FRAME))
    np.testing.assert_array_equal(decide(found, PROBLEM, FRAME), decide(chosen, PROBLEM, FRAME))
    summary = read_model_summary(path)
    assert summary.cost_names == tuple("abcd")
    assert summary.model == repr(chosen.best_estimator_)


def test_an_average_that_was_chosen_is_saved(path):
    candidates = {"a": WiseRegressor(), "b": WiseRegressor(scale="unit")}  # these decide alike
    chosen = WiseRegressorCV(PROBLEM, candidates, random_state=0).fit(X, COSTS)
    save_model(chosen, path)
    found = load_model(path)
    assert type(found) is AveragedRegressor
    np.testing.assert_array_equal(found.predict(X), chosen.predict(X))
    summary = read_model_summary(path)
    assert (summary.n_features, summary.n_costs) == (3, 4)


def test_weights_of_an_average_are_kept(path):
    members = [("a", WiseRegressor()), ("b", LinearRegression())]
    model = AveragedRegressor(members, weights=[3.0, 1.0]).fit(X, COSTS)
    save_model(model, path)
    np.testing.assert_array_equal(load_model(path).predict(X), model.predict(X))
    model.weights = [1.0]
    with pytest.raises(TypeError, match="weights must be a vector of length 2"):
        save_model(model, path)


def test_a_loaded_model_learns_on(path):
    model = WiseRegressor().fit(X[:50], COSTS[:50])
    save_model(model, path)
    found = load_model(path).partial_fit(X[50:], COSTS[50:])
    np.testing.assert_array_equal(found.predict(X), model.partial_fit(X[50:], COSTS[50:]).predict(X))
    assert found.score(X, COSTS) == model.score(X, COSTS)


def test_a_trained_model_leaves_its_problem_behind(path):
    model = DecisionRegressor(PROBLEM, epochs=2, random_state=0).fit(X, COSTS)
    save_model(model, path)
    found = load_model(path)
    assert found.problem is None
    assert found.history_ == model.history_
    assert found.set_params(problem=PROBLEM).score(X, COSTS) == model.score(X, COSTS)


def test_how_many_processes_work_is_not_kept(path):
    model = AveragedRegressor([("a", WiseRegressor()), ("b", LinearRegression(n_jobs=2))], n_jobs=2).fit(X, COSTS)
    save_model(model, path)
    found = load_model(path)
    assert (found.n_jobs, found.estimators_[1].n_jobs) == (None, None)
    np.testing.assert_array_equal(found.predict(X), model.predict(X))


def test_the_same_model_gives_the_same_bytes(path, tmp_path):
    model = WiseRegressor(scale="iterated").fit(X, COSTS)
    save_model(model, path)
    save_model(load_model(path), tmp_path / "again.dw")
    assert path.read_bytes() == (tmp_path / "again.dw").read_bytes()


class Odd(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        self.shape_ = lambda: (len(X), y.shape[1])
        return self

    def predict(self, X):
        return np.ones((len(X), self.shape_()[1]))


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        (GivenForecast(lambda X: X[:, :1].repeat(4, axis=1)), TypeError, "a GivenForecast: .* a function cannot be"),
        (WiseRegressor(random_state=np.random.RandomState(0)), TypeError, r"model\.random_state, .* RandomState"),
        (Odd(), TypeError, "the model, a Odd: "),
        (make_pipeline(StandardScaler(), WiseRegressor(), memory="cache"), TypeError, "a pipeline with a memory"),
    ],
)
def test_what_cannot_be_saved_is_named(model, error, words, path):
    with pytest.raises(error, match=words):
        save_model(model.fit(X, COSTS), path)
    assert not path.exists()


def test_an_unfitted_model_is_not_saved(path):
    with pytest.raises(NotFittedError):
        save_model(WiseRegressor(), path)


def test_a_failed_save_keeps_the_old_file(path):
    save_model(WiseRegressor().fit(X, COSTS), path)
    before = path.read_bytes()
    with pytest.raises(TypeError):
        save_model(Odd().fit(X, COSTS), path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_refusals_are_one_sentence(path, tmp_path):
    save_model(WiseRegressor().fit(X, COSTS), path)
    content = path.read_bytes()
    newer = _START.pack(SIGNATURE, VERSION + 1, *_START.unpack(content[: _START.size])[2:]) + content[_START.size :]
    altered = content[:-1] + bytes([content[-1] ^ 1])
    in_header = content.replace(b'"coef_"', b'"coeff"')
    cases = {
        b"": "is not a model file",
        b"kind = 'knapsack'": "is not a model file",
        content[:5]: "is cut off",
        content[:40]: "is cut off",
        content[:200]: "is cut off",
        content[:-1]: "is cut off: it has [0-9]+ bytes, and",
        content + b"x": "has something after its end",
        altered: "does not match its checksum",
        in_header: "its header does not match its checksum",
        newer: f"has format {VERSION + 1}, and decidewise .* reads formats up to {VERSION}. Install a newer",
    }
    for bad, words in cases.items():
        path.write_bytes(bad)
        with pytest.raises(InputError, match=words):
            load_model(path)
    with pytest.raises(InputError, match=r"cannot read the model .*: No such file"):
        read_model_summary(tmp_path / "none.dw")
    with pytest.raises(InputError, match="is not a file"):
        load_model(tmp_path)
    with pytest.raises(InputError, match="embedded null"):
        load_model("a\0b.dw")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs the pipes of POSIX")
def test_devices_and_pipes_are_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(InputError, match="is not a file"):
            load_model(path)


LINEAR = {"coef_": {"array": 0}, "intercept_": {"array": 1}, "n_features_in_": 2, "deviance": "squared"}


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (None, "it holds no model"),
        (["a"], "it holds no model"),
        ({"object": ["StandardScaler", {}]}, "it holds no model"),
        ({"object": ["os.system", {}]}, "malformed|no class"),
        ({"object": ["GeneralizedLinear", {"predict": 1}]}, r"cannot have an attribute \['predict'\]"),
        ({"object": ["GeneralizedLinear", {"__class__": 1}]}, "cannot have an attribute"),
        ({"object": ["GeneralizedLinear", {**LINEAR, "n_features_in_": 7}]}, "coef_ must have 7 columns"),
        ({"object": ["GeneralizedLinear", {**LINEAR, "link": "eval"}]}, "link must be one of"),
        ({"object": ["GeneralizedLinear", {**LINEAR, "coef_": "x"}]}, "must be numbers"),
        ({"object": ["WiseRegressor", {"estimator_": 3}]}, "estimator_ must be a model"),
        (
            {"object": ["MultiOutputRegressor", {"estimator": None, "n_jobs": 10**6}]},
            "cannot have the parameters n_jobs",
        ),
        ({"function": "os.system"}, "a value of kind 'function' is malformed"),
        ({"pickle": "gASVFAAAAAAAAACMBXBvc2l4"}, "no value of kind 'pickle'"),
        ({"array": 2}, "there is no such array"),
        ({"array": -1}, "there is no such array"),
        ({"tuple": "ab"}, "expected a list"),
        ({"type": "|V9999999999"}, "expected the type"),
        ({"texts": [[2], ["a" * 2**20, *[""] * 2**10]]}, "too much memory"),
        (10**30, "an integer is too large"),
        (json.loads('{"tuple":[' * 60 + "]}" * 60), "nested too deeply"),
        ({"\x1b[2J" * 100: 1}, "no value of kind"),
    ],
)
def test_hostile_trees_are_refused(model, words, path):
    written(path, model, [np.ones((3, 2)), np.ones(3)])
    with pytest.raises(InputError, match=words) as refusal:
        load_model(path)
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 1000


def test_a_header_is_strict_json(path):
    for text in ('{"parts": [], "parts": []}', '{"parts": NaN}', "[" * 100_000, "\udcff", "[1]", '{"parts": {}}'):
        encoded = text.encode("utf-8", "surrogateescape")
        path.write_bytes(_START.pack(SIGNATURE, 1, len(encoded), sha256(encoded).digest()) + encoded)
        with pytest.raises(InputError, match=r"its header (is not JSON|has no list of arrays)"):
            load_model(path)
    path.write_bytes(_START.pack(SIGNATURE, 1, 2**62, bytes(32)))
    with pytest.raises(InputError, match="is damaged"):
        load_model(path)


@pytest.mark.parametrize(
    "change",
    [{"type": "|O"}, {"type": "<f16"}, {"shape": [-1]}, {"shape": [2**60]}, {"shape": [1.0]}, {"order": "A"}, {"x": 1}],
)
def test_arrays_are_plain_and_within_the_file(change, path):
    part = {"type": "<f8", "shape": [3], "order": "C", "sha256": sha256(bytes(24)).hexdigest(), **change}
    encoded = json.dumps({"parts": [part]}).encode()
    start = _START.pack(SIGNATURE, 1, len(encoded), sha256(encoded).digest())
    path.write_bytes(start + encoded + bytes(24))
    with pytest.raises(InputError, match="describes an array in a way"):
        load_model(path)
    part = {**part, "type": "<f8", "shape": [2**40], "order": "C"}
    part.pop("x", None)
    encoded = json.dumps({"parts": [part]}).encode()
    path.write_bytes(_START.pack(SIGNATURE, 1, len(encoded), sha256(encoded).digest()) + encoded + bytes(24))
    with pytest.raises(InputError, match="is cut off"):  # before a terabyte is allocated
        load_model(path)


def test_nothing_of_a_foreign_part_is_read_before_its_type_is_trusted(path):
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", b" " * 10**7)
    plain = io.BytesIO()
    with zipfile.ZipFile(plain, "w") as archive:
        archive.writestr("schema.json", json.dumps({"__module__": "posix", "__class__": "system"}))
    cases = {
        b"no archive": "is not a file of skops",
        bomb.getvalue(): "its entries are compressed",
        plain.getvalue(): "needs types that you must trust first: posix.system",
    }
    for content, words in cases.items():
        written(path, {"skops": 0}, [np.frombuffer(content, dtype=np.uint8)])
        with pytest.raises(InputError, match=words):
            load_model(path)
    written(path, {"lightgbm": 0}, [np.frombuffer(b"tree", dtype=np.uint8)])
    with pytest.raises(InputError, match=r"trust first: lightgbm\.Booster"):
        load_model(path)
    with pytest.raises(TypeError, match="trusted must be a list of names"):
        load_model(path, trusted="lightgbm.Booster")


def test_another_version_of_scikit_learn_is_warned_about(path):
    model = make_pipeline(StandardScaler(), WiseRegressor()).fit(X, COSTS)
    save_model(model, path)
    content = path.read_bytes()
    length = _START.unpack(content[: _START.size])[2]
    header = json.loads(content[_START.size : _START.size + length])
    header["summary"]["versions"]["scikit-learn"] = "0.24.1"
    encoded = json.dumps(header).encode()
    start = _START.pack(SIGNATURE, 1, len(encoded), sha256(encoded).digest())
    path.write_bytes(start + encoded + content[_START.size + length :])
    with pytest.warns(InconsistentVersionWarning, match=r"0\.24\.1"):
        load_model(path)


def test_lightgbm_needs_no_skops_and_trusts_its_text(path):
    model = WiseRegressor(LGBMRegressor(n_estimators=3, verbosity=-1, n_jobs=1)).fit(X, COSTS)
    save_model(model, path)
    assert read_model_summary(path).types == ("lightgbm.Booster",)
