"""What a killed run has finished, in one file, so that the next run continues with the same digits.

A fit is a fixed sequence of passes over the rows. The file holds the result of every finished pass, and of the current
one the partial sums and the place up to which rows were read; also what was found before the first pass, such as which
model to fit. A new run does the same steps; finished ones take their results from the file. The file holds numbers and
text only, and is written whole or not at all.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import numpy.typing as npt

from decidewise.kit.files import write_whole
from decidewise.rows.source import PairwiseTree, Sums


@dataclass
class Checkpoint:
    """The state of a fit in a file, which is written again after `every` so many seconds.

    The `identity` is everything that determines the numbers: model, files, columns. Another fit must not continue from
    the file. What was `found` before the first pass is added by `keep`; `n_rows` is that of a finished pass, if it was
    counted.
    """

    path: Path
    identity: str
    every: float = 30.0
    found: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    n_rows: int = 0
    finished: list[Sums] = field(default_factory=list)
    place: tuple[int, int, int] = (0, 0, 0)
    levels: list[int] = field(default_factory=list)
    partial: list[Sums] = field(default_factory=list)
    _next: int = 0
    _written: float = field(default_factory=monotonic)

    @classmethod
    def at(cls, path: Any, identity: str, *, every: float = 30.0) -> Checkpoint:
        """Return the state in a file, or that of a fit that has not begun if there is no such file."""
        checkpoint = cls(Path(path), identity, every)
        if checkpoint.path.exists():
            checkpoint._read()
        return checkpoint

    @classmethod
    def of(cls, path: Any, model: Any, *, every: float, **rows: Any) -> Checkpoint:
        """Return the state of the fit of a model; `rows` says on which."""
        parameters = {name: repr(value) for name, value in sorted(model.get_params().items())}
        return cls.at(path, json.dumps({"model": repr(model), "parameters": parameters, **rows}), every=every)

    def keep(self, **found: npt.NDArray[Any]) -> None:
        """Keep something that was found before the first pass, and write the file."""
        self.found |= found
        self.write()

    def begin_again(self) -> None:
        """Forget all passes, since another model is fitted."""
        self.finished, self.place, self.levels, self.partial, self._next = [], (0, 0, 0), [], [], 0

    def next_pass(self) -> Sums | None:
        """Return the result of the next pass, if it is finished."""
        self._next += 1
        return self.finished[self._next - 1] if self._next <= len(self.finished) else None

    def resume(self, tree: PairwiseTree) -> tuple[int, int, int]:
        """Put the partial sums of the current pass into the tree; return the file, its line and the rows so far."""
        tree.levels, tree.partial = list(self.levels), list(self.partial)
        return self.place

    def note(self, tree: PairwiseTree, place: tuple[int, int, int]) -> None:
        """Note how far the current pass is, and write the file if the last time is long ago."""
        self.levels, self.partial, self.place = list(tree.levels), list(tree.partial), place
        if monotonic() - self._written >= self.every:
            self.write()

    def finish(self, result: Sums, n_rows: int = 0) -> None:
        """Note the result of the current pass, and the number of its rows."""
        self.finished.append(result)
        self.n_rows = n_rows
        self.place, self.levels, self.partial = (0, 0, 0), [], []
        if monotonic() - self._written >= self.every:
            self.write()

    def write(self) -> None:
        """Write the file."""
        arrays: dict[str, Any] = {f"found_{name}": array for name, array in self.found.items()}
        shape = [[len(sums) for sums in group] for group in (self.finished, self.partial)]
        for prefix, group in (("finished", self.finished), ("partial", self.partial)):
            for place, sums in enumerate(group):
                arrays |= {f"{prefix}_{place}_{index}": array for index, array in enumerate(sums)}
        state = {
            "identity": self.identity,
            "shape": shape,
            "place": self.place,
            "levels": self.levels,
            "rows": self.n_rows,
            "found": list(self.found),
        }
        content = io.BytesIO()
        np.savez(content, state=np.array(json.dumps(state)), **arrays)
        try:
            write_whole({self.path: content.getvalue()})
        except OSError as reason:
            raise OSError(
                reason.errno,
                f"the checkpoint could not be written ({reason.strerror}); an earlier one, if there is any, is still "
                "whole. Make room, and the same call continues from it",
                str(self.path),
            ) from reason
        self._written = monotonic()

    def remove(self) -> None:
        """Delete the file, since the fit is done."""
        self.path.unlink(missing_ok=True)

    def _read(self) -> None:
        try:
            with np.load(self.path, allow_pickle=False) as stored:
                state = json.loads(str(stored["state"]))
                groups = [
                    [tuple(stored[f"{prefix}_{place}_{index}"] for index in range(n)) for place, n in enumerate(shape)]
                    for prefix, shape in zip(("finished", "partial"), state["shape"], strict=True)
                ]
                found = {name: stored[f"found_{name}"] for name in state["found"]}
                file, line, n_rows = state["place"]
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as reason:
            raise ValueError(
                f"{self.path} is not a checkpoint of a fit ({reason}). Name another file, or delete this one."
            ) from reason
        if state["identity"] != self.identity:
            raise ValueError(
                f"the checkpoint {self.path} belongs to another fit: the model, the files, their sizes or dates, or "
                "the columns are not the same. Name another file, or delete this one to start again."
            )
        self.finished, self.partial = groups
        self.found, self.n_rows = found, state["rows"]
        self.place, self.levels = (file, line, n_rows), state["levels"]
