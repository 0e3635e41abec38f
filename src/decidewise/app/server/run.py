"""Run the server, with little patience for connections that ask for nothing."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import sys
from collections.abc import Callable, Collection
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from decidewise.app.server.app import create_app
from decidewise.app.server.bodies import Limits
from decidewise.kit.errors import InputError
from decidewise.model_file import load_model, read_model_summary
from decidewise.problems import ProblemFile

# Beyond this many open connections, further ones are told that the server is busy.
_CONNECTIONS = 512
#: Seconds for a whole header, and how many connections may wait for theirs at a time.
_SECONDS, _MOST = 5.0, 256


def serve(
    model: str | os.PathLike[str],
    problem: str | os.PathLike[str] | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    limits: Limits | None = None,
    token: str | None = None,
    trusted: Collection[str] | None = None,
    say: Callable[[str], object] = lambda line: sys.stderr.write(f"{line}\n"),
) -> None:
    """Answer requests until interrupted.

    Parameters
    ----------
    model, problem : paths of a model file and of a problem file
    host, port : str, int
        Where to listen; only this machine can reach the default. Port 0 picks a free one.
    limits : Limits, optional
    token : str, optional
        What requests must show, as `Authorization: Bearer TOKEN`.
    trusted : collection of str, optional
        Types that the model file may build; see `load_model`.
    say : callable
        Called with one line when the server is ready to listen, and with a warning before if anyone may ask.
    """
    if not host.strip():  # a variable that is not set; sockets would take it as all addresses
        raise InputError("the host must be an address to listen on: 127.0.0.1 for this machine, 0.0.0.0 for all.")
    app = create_app(
        load_model(model, trusted=trusted),
        read_model_summary(model),
        None if problem is None else ProblemFile.read(problem),
        limits=limits,
        token=token,
    )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listening:
        # Inherited by all connections. Without it, an answer in two packets waits 40 ms for the client's confirmation.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        address = listening.getsockname()
        if token is None and not ipaddress.ip_address(address[0]).is_loopback:
            say(f"Warning: any machine that reaches {host} may ask, since there is no token.")
        named = f"[{address[0]}]" if family == socket.AF_INET6 else address[0]
        say(f"Serving {os.fspath(model)} at http://{named}:{address[1]}; Ctrl-C stops.")
        settings = uvicorn.Config(
            app,
            http=patient_for(),
            log_level="warning",
            access_log=False,
            server_header=False,
            limit_concurrency=_CONNECTIONS,
        )
        uvicorn.Server(settings).run(sockets=[listening])


def patient_for(seconds: float = _SECONDS, most: int = _MOST) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol with limits on connections that have no request: of one server each.

    It waits for ever for the rest of a header, so a few hundred clients that send half of one would keep out all
    others.

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
