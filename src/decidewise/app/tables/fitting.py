"""A model chosen and fitted on a table: in memory, or chosen on a part of the rows and fitted block by block.

Fits in blocks take constant memory. What is done to a block is an object that can be sent to a worker: `spread` decides
whether threads of this process or the workers of a cluster do it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from decidewise.app.tables.blocks import PreparedRows, RandomPart, Spread, TableBlocks, random_part
from decidewise.app.tables.choice import CHOICE, WHOLE, Choice, choose
from decidewise.app.tables.columns import Reading, TableOptions
from decidewise.app.tables.comparison import compare_samples
from decidewise.app.tables.features import TableFeatures
from decidewise.app.tables.headline import explanation, headline
from decidewise.app.tables.samples import NO_COSTS, TableSamples, as_gap, shown_key
from decidewise.app.tables.table_model import TableModel
from decidewise.evaluate import Interval
from decidewise.kit.errors import InputError
from decidewise.kit.interrupts import attempt, reason_of
from decidewise.kit.machine import map_in_order
from decidewise.models import AveragedRegressor
from decidewise.models.selection.sums import fit_on_rows
from decidewise.problems import ProblemFile
from decidewise.rows.checkpoint import Checkpoint


@dataclass(frozen=True)
class Advice:
    """Which model to fit, by its name, and if a comparison chose it those to take if it fails, the best first.

    The notes are the verdict, and what failed, in sentences; the regrets, in percent, those of the models that were
    measured.
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


def fit_table(
    estimator: Any,
    features: TableFeatures,
    blocks: TableBlocks,
    cost_names: tuple[str, ...],
    *,
    checkpoint: Checkpoint | None = None,
    spread: Spread = map_in_order,
) -> tuple[TableModel, PreparedRows]:
    """Fit a model on all rows of a table, block by block; return it, and the rows that it was fitted on.

    The estimator must be a sum over rows (`decidewise.models.selection.sums.is_sum_over_rows`). The features are fitted
    on a part of the rows. The checkpoint keeps what an earlier, killed call has finished; it is not deleted.
    """
    reading = Reading(blocks.options, like=cost_names, needed=features.needed)
    rows = PreparedRows(blocks, reading, features, spread, checkpoint)
    fitted = fit_on_rows(estimator, rows)
    return TableModel(fitted, features, blocks.options.as_dict(), list(cost_names)), rows


@dataclass(frozen=True)
class FittedTable:
    """A model chosen and fitted on a table.

    Attributes
    ----------
    samples : TableSamples
        Those that the model was chosen on; it was fitted on `n_rows`.
    notes : tuple of str
        What was done to the table, why this model was chosen, and which ones failed, in sentences.
    regret : Interval or None
        Its regret in percent on the rows that the comparison held out, if it was chosen by one.
    checkpoint : Checkpoint, optional
        From which a fit that is killed would continue.
    """

    model: TableModel
    choice: Choice
    samples: TableSamples
    n_rows: int
    notes: tuple[str, ...]
    regret: Interval | None = None
    checkpoint: Checkpoint | None = None

    @property
    def name(self) -> str:
        """The candidate that was fitted, or how many are averaged."""
        weights = self.choice.weights
        return f"average of {len(weights)} models" if len(weights) > 1 else next(iter(weights))

    def written(self) -> None:
        """Delete the checkpoint, since the model is in its file."""
        if self.checkpoint is not None:
            self.checkpoint.remove()

    def summary(self, options: TableOptions, problem: str) -> dict[str, Any]:
        """Return what a model file says of its training; `problem` is the name of the problem file."""
        samples, choice = self.samples, self.choice
        summary: dict[str, Any] = {
            "candidate": self.name,
            "feature_names": list(choice.prepared.feature_names_),
            "cost_names": list(samples.cost_names),
            "rows": self.n_rows,
            "problem": problem,
            "table": self.model.options,
            "notes": list(self.notes),
        }
        if len(choice.weights) > 1:
            summary["weights"] = choice.weights
        if len(samples) == self.n_rows:
            summary |= {"first": shown_key(samples.keys[0]), "last": shown_key(samples.keys[-1])}
        else:
            summary["chosen on"] = len(samples)
        if options.unit:
            summary["units"] = options.unit
        if self.regret is not None:
            summary["regret percent"] = self.regret._asdict()
        return summary


def fit_in_memory(
    samples: TableSamples, options: TableOptions, *, gap: str | None, name: str | None = None, **settings: Any
) -> FittedTable:
    """Fit the named model on all samples, or that which a comparison on them recommends.

    `settings` are those of `compare_samples`.
    """
    settings |= {"categories": options.categories, "gap": as_gap(gap, samples.times)}
    advice = Advice.on(samples, name=name, **settings)
    while True:
        choice = choose(samples, name=advice.order[0], **settings)
        model = attempt(partial(_fitted, choice, samples))
        if not isinstance(model, Exception):
            break
        if isinstance(model, MemoryError):
            raise model  # the machine is at fault, not the model
        advice = advice.after(model)
    notes = (*samples.notes, *choice.prepared.notes_, *advice.notes, *filter(None, [explanation(choice)]))
    names, kept = list(samples.cost_names), samples.timed(options).as_dict()
    table = TableModel(model, choice.prepared, kept, names, samples.levels)
    return FittedTable(table, choice, samples, len(samples), notes, advice.regrets.get(choice.name))


def _fitted(choice: Choice, samples: TableSamples) -> Any:
    """Return the model of a choice on all samples; that of a search is fitted already."""
    if choice.search is not None:
        best = choice.search.best_estimator_
        if isinstance(best, AveragedRegressor):
            best.n_jobs = None  # that of this machine, or of its cluster: no part of the model
        return best
    return choice.model(choice.name).fit(samples.features(choice.prepared, of_levels=True), samples.costs)


def fit_in_blocks(
    blocks: TableBlocks,
    file: ProblemFile,
    *,
    n_sampled: int,
    gap: str | None,
    checkpoint: Any = None,
    spread: Spread = map_in_order,
    jobs: int | None = None,
    name: str | None = None,
    **settings: Any,
) -> FittedTable:
    """Choose a model on a random part of a table, unless one is named, then fit it on all rows, block by block.

    At most `n_sampled` samples are drawn, to choose on and to learn from how features are prepared. What is finished
    (they, the choice and the sums of the fit) is kept in a `checkpoint`, from which the same call continues, and which
    `FittedTable.written` deletes. `settings` are those of `compare_samples`.
    """
    options = blocks.options
    what = {"sampled": n_sampled, "gap": gap, "name": name, **settings}
    kept = KeptChoice(None if checkpoint is None else Checkpoint.at(checkpoint, identity(blocks, file, what)))
    part = kept.part(lambda: random_part(blocks, n_sampled, np.random.default_rng(settings.get("seed", 0))))
    samples = part.read(options, file, as_listed=blocks.items(), whole=False)
    if not len(samples):
        raise InputError(NO_COSTS)
    if samples.demand is not None:
        raise InputError(WHOLE)
    blocks = replace(blocks, options=samples.timed(options))
    choosing = {"categories": options.categories, "in_blocks": True, "gap": as_gap(gap, samples.times), **settings}
    advice = kept.advice(lambda: Advice.on(samples, name=name, jobs=jobs, **choosing))
    while True:
        choice = kept.choice(advice.order[0], samples, {"jobs": jobs, **choosing})
        found = attempt(
            lambda choice=choice: fit_table(  # type: ignore[misc]
                choice.model(choice.name),
                choice.prepared,
                blocks,
                samples.cost_names,
                checkpoint=kept.checkpoint,
                spread=spread,
            )
        )
        if not isinstance(found, Exception):
            break
        if isinstance(found, InputError) or not isinstance(found, ValueError | ArithmeticError):
            raise found  # the table, the machine or the cluster is at fault, not the model
        advice = kept.instead(advice.after(found))
    model, rows = found
    notes = (
        f"Features prepared and model chosen on {part.n_samples:,} random rows of {part.n_all:,}; fitted on all rows.",
        *samples.notes,
        *choice.prepared.notes_,
        *advice.notes,
        *filter(None, [explanation(choice)]),
    )
    n_rows = rows.n_counted or part.n_all  # a forecast is not fitted, so no pass has counted the rows
    if n_rows < part.n_all:
        notes = (*notes, f"{part.n_all - n_rows:,} of {part.n_all:,} rows have no costs yet, and are left out.")
    return FittedTable(model, choice, samples, n_rows, notes, advice.regrets.get(choice.name), kept.checkpoint)
