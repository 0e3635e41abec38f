"""Run the server."""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from collections.abc import Callable, Collection

import uvicorn

from decidewise.app.server.app import create_app
from decidewise.app.server.connections import patient_for
from decidewise.app.server.limits import Limits
from decidewise.model_file import load_model, read_model_summary
from decidewise.problems import ProblemFile

# Beyond this many open connections, further ones are told that the server is busy.
_CONNECTIONS = 512


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
        Where to listen; only this machine can reach the default. Port Port to listen on; 0 picks a free one.
    limits : Limits, optional
    token : str, optional
        What requests must show, as `Authorization: Bearer TOKEN`.
    trusted : collection of str, optional
        Types that the model file may build; see `load_model`.
    say : callable
        Called with one line when the server is ready to listen, and with a warning before if anyone may ask.
    """
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
