"""Which model to fit on a table: the verdict of a comparison, or a name; kept in the checkpoint of a long fit."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from decidewise.app.tables.blocks import RandomPart, TableBlocks
from decidewise.app.tables.choice import CHOICE, Choice, choose
from decidewise.app.tables.comparison import compare_samples
from decidewise.app.tables.headline import headline
from decidewise.app.tables.samples import TableSamples
from decidewise.evaluate import Interval
from decidewise.kit.interrupts import reason_of
from decidewise.problems import ProblemFile
from decidewise.rows.checkpoint import Checkpoint


@dataclass(frozen=True)
class Advice:
    """Which model to fit: the one that was named, or that of the verdict of a comparison.

    Attributes
    ----------
    order : tuple of str
        Its name, and if a comparison chose it those to take if it fails, the best first.
    notes : tuple of str
        The verdict, and what failed, in sentences.
    regrets : dict of str to Interval
        In percent, of the models that were measured.
    """

    order: tuple[str, ...]
    notes: tuple[str, ...] = ()
    regrets: dict[str, Interval] = field(default_factory=dict)

    @classmethod
    def on(cls, samples: TableSamples, *, name: str | None, **settings: Any) -> Advice:
        """Compare models on samples as `decidewise compare` does, unless a model is named."""
        if name is not None:
            return cls((name,))
        result = compare_samples(samples, **settings)
        prepared = result.choice.prepared.notes_
        notes = (headline(result), *(note for note in result.notes if note not in (*samples.notes, *prepared)))
        return cls(result.order, notes, {row.name: row.regret for row in result.table})

    def after(self, error: Exception) -> Advice:
        """Return the advice if the first model has failed; raise the error if no other is left."""
        name, *others = self.order
        if not others:
            raise error
        note = f"{name!r} failed on all rows ({reason_of(error).rstrip('.')}), and the next best is taken."
        return replace(self, order=tuple(others), notes=(*self.notes, note))


def identity(blocks: TableBlocks, file: ProblemFile, settings: Mapping[str, Any]) -> str:
    """Return all that determines a fit in blocks, as text: another one must not continue from its checkpoint."""
    files = blocks.files
    what = {
        "files": [[file.name, *file.stamp] for file in files.files],
        "text": [asdict(files.files[0].text), files.block_rows],
        "options": blocks.options.as_dict(),
        "problem": [file.path.read_text(), {name: _digest(value) for name, value in file.arguments.items()}],
        "settings": dict(settings),
    }
    return json.dumps(what, sort_keys=True)


def _digest(value: Any) -> str | None:
    """Return a hash of what a problem file takes from another file, a model or an array; None of anything else."""
    if isinstance(value, Path):
        return sha256(value.read_bytes()).hexdigest()
    return sha256(value.tobytes()).hexdigest() if isinstance(value, np.ndarray) else None


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

    def advice(self, make: Callable[[], Advice]) -> Advice:
        """Return which model to fit, found if the checkpoint does not know."""
        if self.checkpoint is None:
            return make()
        if "advice" not in self.checkpoint.found:
            self._keep_advice(make())
        kept = json.loads(str(self.checkpoint.found["advice"]))
        regrets = {name: Interval(*numbers) for name, numbers in kept["regrets"].items()}
        return Advice(tuple(kept["order"]), tuple(kept["notes"]), regrets)

    def instead(self, advice: Advice) -> Advice:
        """Keep other advice, since a model has failed, and forget its passes."""
        if self.checkpoint is not None:
            self.checkpoint.begin_again()
            self._keep_advice(advice)
        return advice

    def choice(self, name: str, samples: TableSamples, choosing: Mapping[str, Any]) -> Choice:
        """Return a model by its name; `choosing` are options of `choose`. The weights of the choice are kept."""
        if self.checkpoint is None or name != CHOICE:
            return choose(samples, name=name, **choosing)
        if "weights" not in self.checkpoint.found:
            choice = choose(samples, **choosing)
            self.checkpoint.keep(weights=np.array(json.dumps(choice.weights)))
            return choice
        return choose(samples, weights=json.loads(str(self.checkpoint.found["weights"])), **choosing)

    def _keep_advice(self, advice: Advice) -> None:
        assert self.checkpoint is not None
        self.checkpoint.keep(advice=np.array(json.dumps(asdict(advice))))


def _as_bytes(table: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - an optional dependency

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return np.frombuffer(sink.getvalue(), dtype=np.uint8)


def _from_bytes(content: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - an optional dependency

    return pa.ipc.open_stream(pa.py_buffer(content)).read_all()
