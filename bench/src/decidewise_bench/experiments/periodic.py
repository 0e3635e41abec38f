"""Call a function periodically in a background thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

from decidewise.kit.errors import InputError


@contextmanager
def repeated(act: Callable[[], object], *, seconds: float) -> Iterator[None]:
    """Call a function every `seconds` in a background thread until the block ends."""
    ended = Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            with suppress(InputError):  # the block gets the same error from the store, and raises it
                act()

    thread = Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
