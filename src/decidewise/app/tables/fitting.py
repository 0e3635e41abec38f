"""A model chosen and fitted on a table: in memory, or chosen on a part of the rows and fitted block by block.

Fits in blocks take constant memory. What is done to a block is an object that can be sent to a worker: `spread` decides
whether threads of this process or the workers of a cluster do it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from decidewise.app.tables.advice import Advice, KeptChoice, identity
from decidewise.app.tables.blocks import Spread, TableBlocks, random_part, read_block
from decidewise.app.tables.choice import Choice, choose
from decidewise.app.tables.columns import Reading, TableOptions
from decidewise.app.tables.features import TableFeatures
from decidewise.app.tables.headline import explanation
from decidewise.app.tables.held_out import as_gap
from decidewise.app.tables.read import NO_COSTS
from decidewise.app.tables.samples import TableSamples, shown_key
from decidewise.app.tables.table_model import TableModel
from decidewise.evaluate import Interval
from decidewise.kit.errors import InputError
from decidewise.kit.interrupts import attempt
from decidewise.kit.machine import map_in_order
from decidewise.models import AveragedRegressor
from decidewise.models.selection.sums import fit_on_rows
from decidewise.problems import ProblemFile
from decidewise.rows.checkpoint import Checkpoint
from decidewise.rows.file_blocks import FileBlock
from decidewise.rows.source import FIRST_ROWS, Place, Rows, RowSource, located
from decidewise.rows.tree import Sums


class PreparedRows(RowSource):
    """The samples of a table that have costs, with their features prepared, as a source for fits.

    Parameters
    ----------
    blocks : TableBlocks
    reading : Reading
        With costs.
    features : TableFeatures
        Fitted, on these rows or on some of them.
    spread : callable
        See `Spread`.
    """

    def __init__(
        self,
        blocks: TableBlocks,
        reading: Reading,
        features: TableFeatures,
        spread: Spread = map_in_order,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.table, self.reading, self.features, self.spread = blocks, reading, features, spread
        self.checkpoint = checkpoint

    def close(self) -> None:
        """Write the checkpoint: whoever writes the model deletes it afterwards."""
        if self.checkpoint is not None:
            with suppress(OSError):  # an earlier one is still whole, and the error that ended a pass says more
                self.checkpoint.write()

    def first(self) -> Rows:
        """Return some of the first rows."""
        return self._first

    def map(
        self, function: Callable[[Rows], Any], begin: Place = (0, 0, 0)
    ) -> Generator[tuple[FileBlock, Any, Place], None, None]:
        """Yield the blocks with the results of a function, in order, and the place after each."""
        _, line, n_rows = begin
        work = partial(_on_rows, self.reading, self.features, function)
        try:
            with closing(self.table.map(work, f"Fitting, pass {self.pass_number}", self.spread, line)) as results:
                for block, (result, n_with) in results:
                    n_rows += n_with
                    yield block, result, (0, block.first + block.table.num_rows, n_rows)
        except BaseException:  # Ctrl-C, or a cluster that goes away
            self.close()
            raise

    @cached_property
    def _first(self) -> Rows:
        with closing(self.table.after()) as blocks:
            for block in blocks:
                samples = read_block(self.reading, block)
                if len(samples):
                    return _as_rows(samples.take(slice(0, FIRST_ROWS)), self.features, block)
        raise InputError(NO_COSTS)


def _on_rows(
    reading: Reading, features: TableFeatures, function: Callable[[Rows], Sums], block: FileBlock
) -> tuple[Sums | None, int]:
    """Return the sums over the rows of a block, None if it has none, and the number of its rows."""
    samples = read_block(reading, block)
    if not len(samples):
        return None, 0
    rows = _as_rows(samples, features, block)
    with located(rows):
        return function(rows), len(rows)


def _as_rows(samples: TableSamples, features: TableFeatures, block: FileBlock) -> Rows:
    return Rows(samples.features(features), samples.costs, None, block.origin, block.line)


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

    Parameters
    ----------
    estimator : estimator
        A sum over rows; see `decidewise.models.selection.sums.is_sum_over_rows`.
    features : TableFeatures
        Fitted on a part of the rows.
    blocks : TableBlocks
    cost_names : tuple of str
        In the order of the problem.
    checkpoint : Checkpoint, optional
        What an earlier, killed call has finished, and where this one keeps what it finishes. It is not deleted.
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
    model : TableModel
    choice : Choice
    samples : TableSamples
        Those that the model was chosen on.
    n_rows : int
        The rows that it was fitted on.
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
    table = TableModel(model, choice.prepared, samples.timed(options).as_dict(), list(samples.cost_names))
    return FittedTable(table, choice, samples, len(samples), notes, advice.regrets.get(choice.name))


def _fitted(choice: Choice, samples: TableSamples) -> Any:
    """Return the model of a choice on all samples; that of a search is fitted already."""
    if choice.search is not None:
        best = choice.search.best_estimator_
        if isinstance(best, AveragedRegressor):
            best.n_jobs = None  # that of this machine, or of its cluster: no part of the model
        return best
    return choice.model(choice.name).fit(samples.features(choice.prepared), samples.costs)


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

    Parameters
    ----------
    blocks : TableBlocks
    file : ProblemFile
    n_sampled : int
        The largest number of samples to choose on, and to learn from how features are prepared.
    checkpoint : path, optional
        A file for what is finished: the random part, the choice and the sums of the fit. The same call continues from
        it; `FittedTable.written` deletes it.
    name : str, optional
    jobs, settings
        As for `compare_samples`.
    """
    options = blocks.options
    what = {"sampled": n_sampled, "gap": gap, "name": name, **settings}
    kept = KeptChoice(None if checkpoint is None else Checkpoint.at(checkpoint, identity(blocks, file, what)))
    part = kept.part(lambda: random_part(blocks, n_sampled, np.random.default_rng(settings.get("seed", 0))))
    samples = part.read(options, file, as_listed=blocks.items(), whole=False)
    if not len(samples):
        raise InputError(NO_COSTS)
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
