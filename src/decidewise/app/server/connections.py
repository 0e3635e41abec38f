"""Connections that ask for nothing: closed after a few seconds, and sooner if there are many.

uvicorn waits for ever for the rest of a header, so a few hundred clients that send half of one would keep out all
others.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

#: Seconds for a whole header, and how many connections may wait for theirs at a time.
SECONDS, MOST = 5.0, 256


def patient_for(seconds: float = SECONDS, most: int = MOST) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol with limits on connections that have no request: of one server each.

    Parameters
    ----------
    seconds : float
        After which such a connection is closed, whatever arrives of its header.
    most : int
        How many there may be; a further one closes the oldest.
    """
    idle: dict[Any, asyncio.TimerHandle] = {}  # from the oldest on

    class Protocol(AutoHTTPProtocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._note()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._note()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._note()

        def connection_lost(self, error: Exception | None) -> None:
            self._forget()
            super().connection_lost(error)

        def _note(self) -> None:
            if self.cycle is not None and not self.cycle.response_complete:
                self._forget()
            elif self not in idle and not self.transport.is_closing():
                if len(idle) >= most:
                    oldest = next(iter(idle))
                    oldest._forget()
                    oldest.transport.abort()
                idle[self] = self.loop.call_later(seconds, self.transport.abort)

        def _forget(self) -> None:
            if self in idle:
                idle.pop(self).cancel()

    return Protocol
