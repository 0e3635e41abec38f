"""The random part of a table and the choice made on it, kept in the checkpoint of a fit that may be killed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from decidewise.models.learners.averaged import AveragedRegressor
from decidewise.problems import ProblemFile
from decidewise.streams.checkpoint import Checkpoint
from decidewise.tables.blocks import RandomPart, TableBlocks
from decidewise.tables.comparison import AVERAGE, Choice, choose
from decidewise.tables.samples import TableSamples


def identity(blocks: TableBlocks, file: ProblemFile, settings: Mapping[str, Any]) -> str:
    """Return all that determines a fit in blocks, as text: another one must not continue from its checkpoint."""
    files = blocks.files
    what = {
        "files": [[str(path), *files.stamp(path)] for path in files.paths],
        "text": [files.separator, files.decimal, files.encoding, files.block_rows],
        "options": blocks.options.as_dict(),
        "problem": file.path.read_text(),
        "settings": dict(settings),
    }
    return json.dumps(what, sort_keys=True)


@dataclass(frozen=True)
class KeptChoice:
    """What a fit in blocks finds before its passes: read from a checkpoint, or found and kept there."""

    checkpoint: Checkpoint | None

    def part(self, draw: Callable[[], RandomPart]) -> RandomPart:
        """Return the random part of the table, drawn if the checkpoint has none."""
        found = {} if self.checkpoint is None else self.checkpoint.found
        if "table" in found:
            n_samples, n_all = found["sizes"].tolist()
            return RandomPart(_from_bytes(found["table"]), found["numbers"], n_samples, n_all)
        part = draw()
        if self.checkpoint is not None:
            sizes = np.array([part.n_samples, part.n_all])
            self.checkpoint.keep(table=_as_bytes(part.table), numbers=part.numbers, sizes=sizes)
        return part

    def choice(self, samples: TableSamples, choosing: Mapping[str, Any], make: Callable[[], Choice]) -> Choice:
        """Return the choice, made if the checkpoint has none; `choosing` are options of `choose`."""
        if self.checkpoint is None:
            return make()
        if "choice" in self.checkpoint.found:
            return _restored(json.loads(str(self.checkpoint.found["choice"])), samples, choosing)
        choice = make()
        self.checkpoint.keep(choice=np.array(json.dumps(_described(choice))))
        return choice


def _described(choice: Choice) -> dict[str, Any]:
    """Return a choice as plain values: the members of an average are candidates, which have names."""
    described: dict[str, Any] = {"name": choice.name, "members": [choice.name], "regret": choice.regret}
    if choice.name == AVERAGE:
        parameters = choice.estimators[AVERAGE].get_params(deep=False)
        described["members"] = [name for name, _ in parameters.pop("estimators")]
        described["average"] = parameters
    return described


def _restored(kept: Mapping[str, Any], samples: TableSamples, choosing: Mapping[str, Any]) -> Choice:
    choice = choose(samples, name=kept["members"][0], **choosing)
    estimators = dict(choice.estimators)
    if "average" in kept:
        members = [(name, estimators[name]) for name in kept["members"]]
        estimators[AVERAGE] = AveragedRegressor(members, **kept["average"])
    regret = None if kept["regret"] is None else (kept["regret"][0], kept["regret"][1])
    return replace(choice, name=kept["name"], estimators=estimators, regret=regret)


def _as_bytes(table: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - an optional dependency

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return np.frombuffer(sink.getvalue(), dtype=np.uint8)


def _from_bytes(content: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - an optional dependency

    return pa.ipc.open_stream(pa.py_buffer(content)).read_all()
