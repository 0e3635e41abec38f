"""Something done again and again while a block lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

from decidewise.errors import InputError


@contextmanager
def repeated(act: Callable[[], object], *, seconds: float) -> Iterator[None]:
    """Call a function every so many seconds, in a thread of its own, until the block ends."""
    ended = Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            with suppress(InputError):  # a store that cannot be used: the block meets the same error, and raises it
                act()

    thread = Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
