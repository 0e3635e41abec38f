"""What one request may ask of the server."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from decidewise.kit.checks import as_integer, as_positive


@dataclass(frozen=True)
class Limits:
    """What one request may ask of the server, and how many are computed at a time.

    Parameters
    ----------
    max_bytes : int
        The largest body.
    max_rows : int
        The largest number of rows in a body.
    seconds : float
        The time for reading a body, and the time from there to the answer.
    jobs : int
        How many requests are computed at a time; others wait. By default the number of processors.
    """

    max_bytes: int = 16 * 2**20
    max_rows: int = 10_000
    seconds: float = 30.0
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)

    def __post_init__(self) -> None:
        for name in ("max_bytes", "max_rows", "jobs"):
            as_integer(getattr(self, name), name=name)
        as_positive(self.seconds, name="seconds")


class RefusedError(Exception):
    """A request that the server does not answer, with the status and the sentence that say why."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def too_many_rows(max_rows: int) -> RefusedError:
    """Return the refusal of a body with too many rows."""
    return RefusedError(413, f"the body has more than {max_rows:,} rows. Send them in parts.")
