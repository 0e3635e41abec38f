"""Change model files at random, read them, and predict if they are read: `fuzzer.py damaged|hostile ROUNDS FOLDER`.

Runs in a process of its own, in which every import, every file opened for writing, every compilation and every started
program ends in an error, and in which time and memory are limited.
"""

import json
import random
import signal
import sys
import warnings
from hashlib import sha256
from pathlib import Path

import numpy as np
from lightgbm import LGBMRegressor
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from decidewise import (
    DecisionRegressor,
    GeneralizedLinear,
    InputError,
    WiseRegressor,
    load_model,
    read_model_summary,
    save_model,
)
from decidewise.app.tables.features import TableFeatures
from decidewise.app.tables.table_model import TableModel
from decidewise.model_file.container import _START, SIGNATURE
from decidewise.models import AveragedRegressor, ClippedWise, CorrectedRegressor, GivenForecast, default_candidates
from decidewise.problems import TopK

SECONDS, MEGABYTES = 5, 200
FORBIDDEN = ("exec", "compile", "subprocess", "os.", "socket", "shutil", "ctypes.dlopen", "import", "pickle", "marshal")
ALLOWED = {"os.listdir", "os.scandir"}
STRANGE = [
    None, True, 0, -1, 2**31, 2**63, 10**30, 1e308, -0.0, "", "x", "\x1b[2J", "../../etc/passwd", "os.system", [], {},
    [[]], {"array": 0}, {"array": 10**9}, {"float": "nan"}, {"tuple": []}, {"dict": [[[], 1]]}, {"slice": [0, 1, 0]},
    {"type": "<f8"}, {"type": "|O"}, {"function": "numpy.exp"}, {"function": "os.system"}, {"skops": 0},
    {"lightgbm": 0},
    {"object": ["Pipeline", {"steps": []}]}, {"object": ["os.system", {}]}, {"object": ["GeneralizedLinear", {}]},
    {"object": ["FunctionTransformer", {"func": {"function": "numpy.exp"}}]}, {"loss": ["spo+", {}]},
    {"loss": ["pfy", {"n_samples": 10**9}]}, {"object": ["WiseRegressor", {"predict": 1}]}, {"objects": [[10**9], []]},
    {"texts": [[2], ["a", "b" * 1000]]},
]  # fmt: skip
TYPES = ["<f8", "<i8", "|b1", "|u1", "<f4", "|O", "<M8[s]", "<U9", "", None, 3]


def models():
    """Return fitted models of every kind, and features for each."""
    rng = np.random.default_rng(0)
    X, costs, items = rng.normal(size=(40, 4)), rng.uniform(1, 2, size=(40, 3)), rng.normal(size=(40, 3, 2))
    mixed = make_column_transformer((StandardScaler(), [0, 1]), (OneHotEncoder(), [2]))
    few = np.column_stack([X[:, :2], rng.integers(0, 3, 40)])
    boosted = LGBMRegressor(n_estimators=2, verbosity=-1, n_jobs=1)
    candidates = default_candidates(X, costs)
    linear = [GeneralizedLinear(), WiseRegressor(scale="iterated"), WiseRegressor(lifted=True), ClippedWise()]
    rows = [*linear, GivenForecast([0, 1, 2]), DecisionRegressor(TopK(3, 1), epochs=1), candidates["logarithms"]]
    rows += [make_pipeline(StandardScaler(), WiseRegressor()), AveragedRegressor([("a", linear[0]), ("b", linear[1])])]
    rows += [WiseRegressor(boosted), WiseRegressor(CorrectedRegressor(linear[0], boosted)), RandomForestRegressor(2)]
    shared = [GeneralizedLinear("gamma"), WiseRegressor(lifted=True), GeneralizedLinear(per_item="coefficients")]
    yield from ((model.fit(X, costs), X[:3]) for model in rows)
    yield from ((model.fit(items, costs), items[:3]) for model in shared)
    yield make_pipeline(mixed, WiseRegressor()).fit(few, costs), few[:3]
    days = np.datetime64("2024-01-01") + 20 * np.arange(40)
    table = {
        "x": X[:, 0],
        "gaps": np.where(X[:, 1] > 1, np.nan, X[:, 1]),
        "day": days,
        "kind": rng.choice(["a", "b"], 40),
    }
    prepared = TableFeatures(list(table)).fit(table)
    fitted = GeneralizedLinear().fit(prepared.transform(table), costs)
    yield TableModel(fitted, prepared, {"costs": ["c_*"]}, ["a", "b", "c"]), {k: v[:3] for k, v in table.items()}


def damaged(content, rng):
    """Return other bytes: flipped, cut, doubled, moved or overwritten."""
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 3, 20])):
        place = rng.randrange(len(changed) + 1) if rng.random() < 0.5 else rng.randrange(min(len(changed), 60) + 1)
        other = rng.randrange(len(content))
        match rng.randrange(5):
            case 0 if place < len(changed):
                changed[place] ^= 1 << rng.randrange(8)
            case 1:
                del changed[place:]
            case 2:
                changed[place:place] = content[other : other + rng.randrange(1, 100)]
            case 3:
                changed[place : place + 8] = rng.randbytes(8)
            case 4:
                del changed[place : place + rng.randrange(1, 50)]
    return bytes(changed)


def hostile(content, rng):
    """Return a file with another header and other arrays, and checksums that fit."""
    length = _START.unpack(content[: _START.size])[2]
    header = json.loads(content[_START.size : _START.size + length])
    bodies, place = [], _START.size + length
    for part in header["parts"]:
        size = int(np.prod(part["shape"], dtype=int)) * np.dtype(part["type"]).itemsize
        bodies.append(content[place : place + size])
        place += size
    for _ in range(rng.choice([1, 1, 2, 5]) if header else 0):
        if rng.random() < 0.8 or not bodies:
            inner = header.get("model")
            change(inner if isinstance(inner, dict) and inner and rng.random() < 0.7 else header, rng)
        else:
            number = rng.randrange(len(bodies))
            bodies[number] = rng.randbytes(len(bodies[number]))
    parts = header.get("parts")
    for part, body in zip(parts if isinstance(parts, list) else [], bodies, strict=False):
        if isinstance(part, dict):
            part["sha256"] = sha256(body).hexdigest()
    encoded = json.dumps(header).encode()
    start = _START.pack(SIGNATURE, 1, len(encoded), sha256(encoded).digest())
    return b"".join([start, encoded, *bodies])


def change(tree, rng):
    """Change one random entry of a tree of JSON in place."""
    node = tree
    for _ in range(rng.randrange(14)):
        inner = [part for part in (node.values() if isinstance(node, dict) else node) if isinstance(part, dict | list)]
        node = rng.choice([part for part in inner if part] or [node])
    strange = json.loads(json.dumps(rng.choice(STRANGE)))
    key = rng.choice(list(node) if isinstance(node, dict) else range(len(node)))
    match rng.randrange(6):
        case 0:
            del node[key]
        case 1 if isinstance(node, dict):
            node[rng.choice(["coef_", "predict", "__class__", "estimator_", "steps", "x", ""])] = strange
        case 2 if isinstance(node, list):
            node.insert(rng.randrange(len(node) + 1), strange)
        case 3 if isinstance(node[key], int | float) and not isinstance(node[key], bool):
            node[key] = node[key] * rng.choice([-1, 2, 0.5, 10**6]) + rng.choice([0, 1])
        case 4 if key == "type":
            node[key] = rng.choice(TYPES)
        case _:
            node[key] = strange


def watch(event, arguments):
    """Raise if something happens that reading a model never needs."""
    if not watching or event in ALLOWED:
        return
    harmful = event.startswith(FORBIDDEN) and not (event == "import" and arguments[0] in sys.modules)
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        harmful = True
    if harmful:
        sys.stderr.write(f"forbidden: {event} {arguments!r:.300}\n")
        seen.append(event)


def peak_kilobytes():
    """Return the most memory of this process, where Linux tells it; `ru_maxrss` begins at the size of its parent."""
    status = Path("/proc/self/status")
    return int(status.read_text().partition("VmHWM:")[2].split()[0]) if status.exists() else 0


def main(kind, rounds, folder):
    global watching  # noqa: PLW0603

    rng, path = random.Random(0), Path(folder, "changed.dw")
    files = []
    warnings.simplefilter("ignore")
    for model, X in models():
        save_model(model, path)
        files.append((path.read_bytes(), X))
        load_model(path, trusted=read_model_summary(path).types).predict(X)  # imports what it needs
    counts = {"refused": 0, "read": 0, "predicted": 0}
    before = peak_kilobytes()
    signal.signal(signal.SIGALRM, lambda *_: sys.exit("a file took too long"))
    sys.addaudithook(watch)
    for number in range(rounds):
        content, X = rng.choice(files)
        path.write_bytes({"damaged": damaged, "hostile": hostile}[kind](content, rng))
        same = path.read_bytes() == content
        watching = True
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            model = load_model(path)
            counts["read"] += 1
            if kind == "damaged" and not same:
                sys.exit(f"round {number}: a damaged file was read")
            try:
                model.predict(X)
                counts["predicted"] += 1
            except Exception:  # a valid file of a model that does not fit together: any error of Python will do
                pass
        except InputError as refusal:
            counts["refused"] += 1
            if "\n" in str(refusal) or not str(refusal).isprintable() or len(str(refusal)) > 2000:
                sys.exit(f"round {number}: not one sentence: {refusal!r}")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            watching = False
        if seen:
            sys.exit(f"round {number}: {seen}")
    grown = (peak_kilobytes() - before) / 1024
    if grown > MEGABYTES:
        sys.exit(f"memory grew by {grown:.0f} MB")
    print(*(f"{key}: {count}" for key, count in counts.items()), sep="\n")


watching, seen = False, []
if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
