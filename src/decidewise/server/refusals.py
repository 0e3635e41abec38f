"""Requests that the server does not answer."""

from __future__ import annotations


class RefusedError(Exception):
    """A request that the server does not answer, with the status and the sentence that say why."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def too_many_rows(max_rows: int) -> RefusedError:
    """Return the refusal of a body with too many rows."""
    return RefusedError(413, f"the body has more than {max_rows:,} rows. Send them in parts.")
