"""The answers of the server are those of Python, and every bad request is refused with one sentence."""

import contextlib
import html
import http.client
import os
import re
import shlex
import signal
import socket
import struct
import subprocess
import sys
import zlib
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from typer.testing import CliRunner

from decidewise import GeneralizedLinear, InputError, WiseRegressor, decide, save_model
from decidewise.app.cli.app import app
from decidewise.app.server import Limits, create_app
from decidewise.app.server.app import patient_for
from decidewise.app.server.bodies import ARROW, RefusedError, read_stream, write_stream
from decidewise.app.tables.features import TableFeatures
from decidewise.app.tables.table_model import TableModel
from decidewise.model_file import ModelSummary
from decidewise.problems import ProblemFile, TopK

from .conftest import Client, running

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
COSTS = np.exp(0.3 * X @ RNG.normal(size=(3, 4))) + RNG.uniform(size=(60, 4))
NAMES = ["heat", "wind", "hour"]
MODEL = WiseRegressor().fit(X, COSTS)
NAMED = {"feature_names": NAMES, "cost_names": list("abcd")}


@pytest.fixture
def top_two(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text('kind = "top_k"\nn = 4\nk = 2\nsense = "min"\n')
    return ProblemFile.read(path)


def as_rows(X):
    return [dict(zip(NAMES, row, strict=True)) for row in X.tolist()]


def arrow(**columns):
    return write_stream(columns)


def stream(table, compression=None):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def read_arrow(reply):
    assert reply.headers["content-type"] == ARROW
    return pa.ipc.open_stream(reply.content).read_all().to_pydict()


def test_a_decision_that_is_not_proven_optimal_has_a_warning(served, tmp_path):
    """A knapsack whose values are its weights, real numbers: no solver proves a pack to be the best."""
    weights = RNG.uniform(1, 1000, 80)
    path = tmp_path / "problem.toml"
    limits = 'time_limit = 0.3\non_limit = "best"\n'
    path.write_text(f'kind = "knapsack"\nweights = {weights.tolist()}\ncapacities = {weights.sum() / 2}\n{limits}')
    model = DummyRegressor().fit(X, np.tile(weights, (60, 1)))
    with served(model, ProblemFile.read(path), {"feature_names": NAMES}) as client:
        reply = client.post("/decide", {"X": X[:1].tolist()}).json
    assert reply["warnings"][0].startswith(
        "1 of 1 decisions is not proven optimal: all together may be better by up to"
    )


def test_answers_are_those_of_python(served, top_two):
    expected, decisions = MODEL.predict(X), decide(MODEL, top_two.build(), X)
    with served(MODEL, top_two, NAMED) as client:
        for body in ({"X": X.tolist()}, {"rows": as_rows(X)}):
            reply = client.post("/predict", body)
            assert reply.status == 200
            np.testing.assert_array_equal(reply.json["costs"], expected)
            assert reply.json["names"] == list("abcd")
            found = client.post("/decide", body).json
            np.testing.assert_array_equal(found["decisions"], decisions)
            np.testing.assert_allclose(found["predicted_objective"], (expected * decisions).sum(axis=1), rtol=1e-14)
        rows = as_rows(X[:2])
        rows[1] |= {"more": "x"}  # which is not needed
        assert client.post("/predict", {"rows": rows}).json["costs"] == expected[:2].tolist()
        stream = arrow(wind=X[:, 1], heat=X[:, 0], hour=X[:, 2], more=["x"] * len(X))
        reply = client.post("/decide", stream, content_type=ARROW, accept=ARROW)
        table = read_arrow(reply)
        np.testing.assert_array_equal(np.column_stack([table[f"decision_{name}"] for name in "abcd"]), decisions)
        assert list(table)[-1] == "predicted_objective"
        reply = client.post("/predict", stream, content_type=ARROW)
        np.testing.assert_array_equal(reply.json["costs"], expected)


def test_items_come_as_arrays(served, top_two):
    items = RNG.normal(size=(60, 4, 2))
    model = GeneralizedLinear("gamma").fit(items, COSTS)
    with served(model, top_two) as client:
        found = client.post("/decide", {"X": items[:5].tolist()}).json
        np.testing.assert_array_equal(found["decisions"], decide(model, top_two.build(), items[:5]))
        assert found["names"] == ["0", "1", "2", "3"]
        assert client.post("/decide", {"X": items[0].tolist()}).status == 422
        reply = client.post("/predict", {"X": items[:5, :3].tolist()})  # a shared model could, but names would be wrong
        assert reply.json["error"] == "each row must have 4 items; got 3."
        assert "without names" in client.post("/predict", {"rows": [{"a": 1}]}).json["error"]


def test_frames_with_categories(served):
    frame = pd.DataFrame(X, columns=NAMES).assign(day=RNG.choice(["mon", "tue"], 60))
    columns = make_column_transformer((OneHotEncoder(), ["day"]), remainder="passthrough")
    model = make_pipeline(columns, WiseRegressor()).fit(frame, COSTS)
    with served(model) as client:
        reply = client.post("/predict", {"rows": frame.to_dict("records")})
        np.testing.assert_array_equal(reply.json["costs"], model.predict(frame))
        assert (
            "unknown categories" in client.post("/predict", {"rows": [{**as_rows(X)[0], "day": "sun"}]}).json["error"]
        )


def test_what_differs_by_row_comes_with_the_rows(served, tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text('kind = "top_k"\nn = 4\nk = { column = "places" }\nsense = "min"\n')
    problem, k = ProblemFile.read(path), np.array([1, 3, 2])
    expected = decide(MODEL, TopK(4, k, sense="min"), X[:3])
    with served(MODEL, problem, NAMED) as client:
        rows = [{**row, "places": int(places)} for row, places in zip(as_rows(X[:3]), k, strict=True)]
        np.testing.assert_array_equal(client.post("/decide", {"rows": rows}).json["decisions"], expected)
        places = [{"places": int(count)} for count in k]
        reply = client.post("/decide", {"X": X[:3].tolist(), "rows": places})
        np.testing.assert_array_equal(reply.json["decisions"], expected)
        assert "no column 'places'" in client.post("/decide", {"rows": as_rows(X[:3])}).json["error"]
        reply = client.post("/decide", {"X": X[:3].tolist(), "rows": places[:2]})
        assert (reply.status, reply.json["error"][:12]) == (422, '"X" has 3 ro')


class OfTables:
    """A model that reads tables, as `decidewise fit` writes it."""

    needed = MappingProxyType(dict.fromkeys(("heat", "wind", "hour"), "numbers"))
    options = MappingProxyType({"rows": "day", "items": "hour"})
    cost_names_in_ = tuple("abcd")
    n_outputs_ = 4

    def read(self, table, problem=None, *, costs):
        assert costs is False
        X = np.column_stack([table[name] for name in NAMES])
        keys = np.array(table["day"], dtype="datetime64[D]")
        return SimpleNamespace(X=X, keys=keys, problem=None if problem is None else problem.build())

    def predict_samples(self, samples):
        return MODEL.predict(samples.X)

    def warnings(self, samples):
        return [f"{len(samples.X)} values far out of range."]

    def decide_samples(self, samples):
        decisions = decide(MODEL, samples.problem, samples.X)
        return SimpleNamespace(decisions=decisions, objective=decisions.sum(axis=1), caution="")


def test_models_of_tables_get_the_whole_table(served, top_two):
    with served(OfTables(), top_two) as client:
        rows = [{**row, "day": f"2026-01-0{k + 1}"} for k, row in enumerate(as_rows(X[:3]))]
        found = client.post("/decide", {"rows": rows}).json
        np.testing.assert_array_equal(found["decisions"], decide(MODEL, top_two.build(), X[:3]))
        assert found["rows"] == ["2026-01-01", "2026-01-02", "2026-01-03"]
        assert found["warnings"] == ["3 values far out of range."]
        found = client.post("/predict", {"rows": rows}).json
        np.testing.assert_array_equal(found["costs"], MODEL.predict(X[:3]))
        described = client.get("/openapi.json").json["paths"]["/predict"]["post"]["requestBody"]["content"]
        record = described["application/json"]["schema"]["properties"]["rows"]["items"]
        assert record["required"] == ["day", "hour", "heat", "wind"]
        assert "reads tables" in client.post("/predict", {"X": X.tolist()}).json["error"]
        reply = client.post("/predict", {"rows": rows}, accept=ARROW)
        assert read_arrow(reply)["row"] == found["rows"]
        assert pa.ipc.open_stream(reply.content).schema.metadata[b"warnings"].decode() == found["warnings"][0]


BODIES = {
    b"": (400, "not valid JSON"),
    b"{": (400, "not valid JSON"),
    b"\xff\xfe": (400, "not valid JSON"),
    b"[" * 10_000: (422, "does not fit its schema"),
    b"null": (422, "does not fit its schema"),
    b"{}": (422, 'the body needs "X"'),
    b'{"x": [[1, 2, 3]]}': (422, "unknown field `x`"),
    b'{"X": []}': (422, "no rows"),
    b'{"X": [[]]}': (422, "0 feature"),
    b'{"X": [[1, 2]]}': (422, "2 features"),
    b'{"X": [[1, 2, 3], [1]]}': (422, "same shape"),
    b'{"X": [[1, 2, "3"]]}': (422, "Expected `float`, got `str` - at `$.X[0][2]`"),
    b'{"X": [[1, 2, NaN]]}': (400, "not valid JSON"),
    b'{"X": [[1, 2, null]]}': (422, "Expected `float`, got `null`"),
    b'{"X": [[1, 2, 1e999]]}': (422, "out of range"),
    b'{"rows": [{"heat": 1, "wind": 2, "hours": 3}]}': (422, "not all rows have 'hour'; the nearest"),
    b'{"rows": [{"heat": 1, "wind": "high", "hour": 3}]}': (422, "row 0: 'wind' must be a number"),
    b'{"rows": [{"heat": 1, "wind": null, "hour": 3}]}': (422, "row 0: 'wind' must be a number"),
    b'{"rows": [{"heat": 1, "wind": [2], "hour": 3}]}': (422, "got `array`"),
    b'{"rows": [{"heat": 1, "wind": 2, "hour": 3}, {"heat": 1}]}': (422, "not all rows have 'wind'"),
    b'{"rows": [{"heat": ' + b"9" * 400 + b', "wind": 2, "hour": 3}]}': (422, "out of range|too large"),
}


def test_bad_bodies_are_refused_with_one_sentence(served, top_two):
    with served(MODEL, top_two, NAMED) as client:
        for path in ("/predict", "/decide"):
            for content, (status, words) in BODIES.items():
                reply = client.post(path, content)
                assert 400 <= reply.status < 500, content[:80]
                assert reply.status == status, (content[:80], reply.content)
                assert re.search(words.replace("[", r"\[").replace("$", r"\$"), reply.json["error"]), reply.json
                assert "\n" not in reply.json["error"]


def test_what_overflows_is_refused(served, top_two):
    model = GeneralizedLinear().fit(X, 100 * COSTS)
    largest = [(1e308 * np.sign(model.coef_[0])).tolist()]
    with served(model, top_two) as client:
        reply = client.post("/predict", {"X": largest})
        assert (reply.status, reply.json["error"][:14]) == (422, "the prediction")
        assert client.post("/decide", {"X": largest}).status == 422


def test_bad_requests_are_refused(served, top_two):
    body = b'{"X": [[1, 2, 3]]}'
    with served(MODEL, top_two, NAMED) as client:
        assert client.post("/predict", body, content_type="text/csv").status == 415
        assert client.ask("POST", "/predict", body).status == 415
        assert client.post("/predict", zlib.compress(body), content_encoding="gzip").status == 415
        assert client.post("/predict", body, content_type="application/json; charset=utf-8").status == 200
        assert client.get("/predict").status == 405
        reply = client.get("/../../etc/passwd")
        assert (reply.status, set(reply.json)) == (404, {"error"})
        assert client.get("/docs").status == 404  # it would load scripts from elsewhere


def test_arrow_is_read_with_distrust(served):
    columns = {"heat": X[:, 0], "wind": X[:, 1], "hour": X[:, 2]}
    table = pa.table(columns)

    whole = stream(table)
    coded = table.append_column("day", pa.array(["a", "b"] * 30).dictionary_encode())
    doubled = pa.table([columns["heat"]] * 3, names=["heat", "heat", "wind"])
    with served(MODEL, summary=NAMED, limits=Limits(max_rows=60)) as client:
        assert client.post("/predict", stream(coded), content_type=ARROW).status == 200
        for bad, status, words in (
            (b"", 400, "not a valid Arrow stream"),
            (b"ARROW1", 400, "not a valid Arrow stream"),
            (whole[:100], 400, "not a valid Arrow stream"),
            (whole[:-200], 400, "not a valid Arrow stream"),
            (stream(table, "zstd"), 400, "it is compressed"),
            (stream(coded.select(["day"]), "lz4"), 400, "it is compressed"),
            (stream(doubled), 400, "two columns have the same name"),
            (stream(pa.concat_tables([table, table])), 413, "more than 60 rows"),
            (stream(table.slice(0, 0)), 422, "no rows"),
            (stream(table.select(["heat", "wind"])), 422, "have 'hour'"),
        ):
            reply = client.post("/predict", bad, content_type=ARROW)
            assert (reply.status, words in reply.json["error"]) == (status, True), reply.content


@pytest.mark.parametrize("seed", range(3))
def test_no_stream_of_bytes_does_harm(seed):
    rng = np.random.default_rng(seed)
    coded = pa.array(["x", "y"] * 10).dictionary_encode()
    whole = bytearray(write_stream({"a": np.arange(20.0), "b": ["x", "y"] * 10, "c": np.arange(20), "d": coded}))
    n_read = 0
    for _ in range(1000):
        changed = bytearray(whole)
        for place in rng.integers(len(changed), size=rng.integers(1, 4)):
            changed[place] = rng.integers(256)
        if rng.random() < 0.3:
            place = int(rng.integers(len(changed) - 8))
            changed[place : place + 8] = struct.pack("<q", int(rng.integers(-(2**62), 2**62)))
        try:
            table = read_stream(bytes(changed), 100)
        except (ValueError, RefusedError):
            continue
        n_read += 1
        assert table.num_rows <= 100
        assert all(len(table[name].to_numpy()) == table.num_rows for name in table.column_names)
    assert 0 < n_read < 1000


def test_limits(served, top_two):
    limits = Limits(max_bytes=1000, max_rows=5, seconds=0.3)
    with served(MODEL, top_two, NAMED, limits=limits) as client:
        assert client.post("/predict", {"X": [[1, 2, 3]] * 5}).status == 200
        assert client.post("/predict", {"X": [[1, 2, 3]] * 6}).status == 413
        reply = client.post("/predict", b" " * 1001)
        assert (reply.status, "1,000 bytes" in reply.json["error"]) == (413, True)
        connection = http.client.HTTPConnection("127.0.0.1", client.port)
        connection.request("POST", "/predict", iter([b" " * 600] * 3), {"Content-Type": "application/json"})
        assert connection.getresponse().status == 413  # although no length was announced
        connection.close()
        connection = http.client.HTTPConnection("127.0.0.1", client.port)
        connection.putrequest("POST", "/predict")
        connection.putheader("Content-Length", "10")
        connection.endheaders(b"{")
        assert connection.getresponse().status == 408  # the rest never comes
        connection.close()


SLOW = """
import time
from decidewise.problems import Problem
from decidewise.kit.batches import check_time
from decidewise.kit.errors import SolverError

class Slow(Problem):
    n_costs = 4
    def minimize(self, costs):
        if costs[0, 0] > 50:
            raise SolverError("it is infeasible", row=0)
        while True:
            time.sleep(0.01)
            check_time()
"""


def test_slow_and_unsolvable_rows(served, tmp_path):
    (tmp_path / "slow_problem.py").write_text(SLOW)
    (tmp_path / "problem.toml").write_text('kind = "python"\nobject = "slow_problem:Slow"\n')
    problem = ProblemFile.read(tmp_path / "problem.toml")
    model = GeneralizedLinear().fit(X, COSTS)
    far = 1000 * np.sign(model.coef_[0])
    with served(model, problem, limits=Limits(seconds=0.2)) as client:
        reply = client.post("/decide", {"X": X[:1].tolist()})
        assert (reply.status, "within 0.2 seconds" in reply.json["error"]) == (503, True)
        reply = client.post("/decide", {"X": [far.tolist()]})
        assert (reply.status, reply.json["error"]) == (422, "row 0: it is infeasible")
        assert client.post("/predict", {"X": X[:1].tolist()}).status == 200


class Broken:
    n_outputs_ = 4

    def predict(self, X):
        raise KeyError("a bug")


def test_a_fault_of_the_server_says_nothing_of_its_inside(served):
    with served(Broken()) as client:
        reply = client.post("/predict", {"X": [[1.0]]})
    assert (reply.status, reply.json) == (500, {"error": "the server failed; its log says where."})


def test_token(served):
    with served(MODEL, token="a secret") as client:
        body = {"X": [[1, 2, 3]]}
        assert client.get("/health").json["status"] == "ok"
        for path in ("/", "/model"):
            assert client.get(path).status == 401
            assert client.get(path, authorization="Bearer a secret").status == 200
        for header in ("Bearer a secre", "Bearer é", "Basic a secret", "a secret", ""):
            reply = client.post("/predict", body, authorization=header)
            assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")
        assert client.post("/predict", body, authorization="Bearer a secret").status == 200


def test_pages(served, top_two):
    summary = {**NAMED, "cost_names": ["<script>", "b", "c", "d"], "rows": 60}
    with served(MODEL, top_two, summary) as client:
        page = client.get("/").content.decode()
        assert "<script>" not in page
        assert "&lt;script&gt;" in page
        assert "POST /decide" in page
        assert not re.findall(r"(?:src|href)=(?!openapi\.json)", page)
        assert client.get("/model").json["training"] == {"rows": 60}
        described = client.get("/openapi.json").json
        assert set(described["paths"]) == {"/health", "/model", "/predict", "/decide"}


@pytest.fixture
def of_hours(tmp_path):
    """A model of a long table, as `decidewise fit` writes it, and its file."""
    days, hours = np.repeat(np.datetime64("2026-01-01") + np.arange(30), 4), np.tile(np.arange(4), 30)
    table = {"day": days, "hour": hours, "wind": RNG.normal(size=120), "sky": RNG.choice(["clear", "grey"], 120)}
    features = TableFeatures(["day", "wind", "sky"]).fit(table)
    estimator = GeneralizedLinear().fit(features.transform(table).reshape(30, 4, -1), COSTS[:30])
    names = [str(hour) for hour in range(4)]
    model = TableModel(estimator, features, {"rows": "day", "items": "hour", "costs": ["price"]}, names)
    save_model(model, tmp_path / "hours.dw", summary={"cost_names": names})
    return model, tmp_path / "hours.dw", table


@pytest.mark.parametrize("token", [None, "a secret"])
def test_the_example_of_the_page_is_answered(served, top_two, of_hours, token, tmp_path):
    path = tmp_path / "by_row.toml"
    path.write_text('kind = "top_k"\nn = 4\nk = { column = "places" }\nsense = "min"\n')
    by_row = ProblemFile.read(path)
    for model, summary in ((MODEL, NAMED), (MODEL, {}), (of_hours[0], {"cost_names": list("0123")})):
        for problem in (None, top_two, by_row) if summary else (None, top_two):
            with served(model, problem, summary, token=token) as client:
                secret = {"authorization": f"Bearer {token}"}
                page = client.get("/", **secret).content.decode()
                command = shlex.split(html.unescape(re.search("<pre>(.*)</pre>", page)[1]))
                assert ("Authorization: Bearer $DECIDEWISE_TOKEN" in command) == (token is not None)
                url = command[-1]
                assert url.startswith(f"{client.url}/"), url
                reply = client.post(url.removeprefix(client.url), command[-2].encode(), **secret)
                assert reply.status == 200, reply.content


def test_columns_of_arrow_are_decoded(served, top_two, of_hours):
    model, _, table = of_hours
    table = pa.table({name: column[:4] for name, column in table.items()})
    expected = None
    with served(model, top_two, {"cost_names": list("0123")}) as client:
        for name, kind in (
            ("wind", pa.float64()),
            ("sky", pa.dictionary(pa.int8(), pa.string())),
            ("hour", pa.dictionary(pa.int32(), pa.int64())),
            ("hour", pa.decimal128(20, 0)),
            ("day", pa.timestamp("ns")),
            ("day", pa.timestamp("us", tz="UTC")),
            ("day", pa.dictionary(pa.int8(), pa.timestamp("ns"))),
        ):
            column = table[name].cast(kind.value_type).dictionary_encode() if pa.types.is_dictionary(kind) else None
            changed = table.set_column(table.column_names.index(name), name, column or table[name].cast(kind))
            reply = client.post("/decide", stream(changed), content_type=ARROW)
            assert reply.status == 200, (kind, reply.content)
            expected = expected or reply.json
            assert reply.json["decisions"] == expected["decisions"], kind
            assert reply.json["rows"][0].startswith("2026-01-01"), kind
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 1000), pa.array(["x" * 100_000]))
    with pytest.raises(ValueError, match="stands for more than"):
        read_stream(arrow(a=long), 1000)
    with served(MODEL, summary=NAMED) as client:
        odd = {"heat": pa.array([1, 2], pa.timestamp("ns")), "wind": [1.0, 2.0], "hour": [1.0, 2.0]}
        reply = client.post("/predict", arrow(**odd), content_type=ARROW)
        assert (reply.status, reply.json["error"]) == (422, "row 0: 'heat' must be a number.")


def test_half_sent_headers_keep_nobody_out():
    service = create_app(MODEL, ModelSummary.of(MODEL, {}, {}))
    protocol = patient_for(seconds=0.5, most=3)
    with running(service, http=protocol, limit_concurrency=6) as client:
        half = [socket.create_connection(("127.0.0.1", client.port), timeout=30) for _ in range(20)]
        kept = http.client.HTTPConnection("127.0.0.1", client.port, timeout=30)
        kept.request("GET", "/health")
        assert kept.getresponse().read()
        for connection in half[-3:]:
            connection.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\n")
        assert client.get("/health").status == 200
        assert client.post("/predict", {"X": [[1, 2, 3]]}).status == 200
        for connection in half:  # those that were too many, and those that waited too long
            with connection, contextlib.suppress(ConnectionError):
                assert connection.recv(1) == b""
        kept.close()


def test_what_does_not_fit_is_said_at_the_start(served, tmp_path, of_hours):
    path = tmp_path / "problem.toml"
    path.write_text('kind = "top_k"\nn = 5\nk = 2\n')
    with pytest.raises(InputError, match=r"the model predicts 4 costs, and the problem of .* has 5"):
        served(MODEL, ProblemFile.read(path))
    result = CliRunner().invoke(app, ["serve", str(of_hours[1]), "--problem", str(path), "--port", "0"])
    assert (result.exit_code, "the model predicts 4 costs" in result.stderr) == (2, True)
    path.write_text('kind = "top_k"\nn = 4\nk = 2\nknown = [1, 2, 3, 4]\n')
    with pytest.raises(InputError, match=r"predicts directions|lifted"):
        served(MODEL, ProblemFile.read(path))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no Ctrl-C to one process")
def test_the_command_serves_until_it_is_stopped(tmp_path, top_two):
    save_model(MODEL, tmp_path / "model.dw")
    command = [sys.executable, "-m", "decidewise", "serve", "model.dw", "--problem", "problem.toml", "--port", "0"]
    environment = {**os.environ, "DECIDEWISE_TOKEN": "secret"}
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        line = process.stderr.readline()
        port = int(re.fullmatch(r"Serving model.dw at http://127.0.0.1:(\d+); Ctrl-C stops.\n", line)[1])
        client = Client(port, authorization="Bearer secret")
        assert client.post("/decide", {"X": [[1, 2, 3]]}).status == 200
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130
    assert rest == "Error: stopped.\n"
    assert sorted(os.listdir(tmp_path)) == ["model.dw", "problem.toml"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.dw"], "cannot read the model none.dw"),
        (["model.dw", "--problem", "none.toml"], "cannot read the problem none.toml"),
        (["model.dw", "--token", "a\nb"], "the token must be printable"),
        (["model.dw", "--host", "no such host"], "."),
        (["model.dw", "--host", ""], "the host must be an address"),
        (["model.dw", "--max-megabytes", "inf"], "--max-megabytes must be a number above 0; got --max-megabytes=inf"),
        (["model.dw", "--seconds", "inf"], "seconds must be a number above 0"),
    ],
)
def test_bad_commands_are_one_line(arguments, words, tmp_path, monkeypatch):
    save_model(MODEL, tmp_path / "model.dw")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["serve", *arguments])
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
