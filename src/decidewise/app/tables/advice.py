"""Which model to fit on a table: the verdict of a comparison on it, or a name."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from decidewise.app.tables.comparison import compare_samples
from decidewise.app.tables.headline import headline
from decidewise.app.tables.samples import TableSamples
from decidewise.evaluate import Interval
from decidewise.kit.interrupts import reason_of


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
