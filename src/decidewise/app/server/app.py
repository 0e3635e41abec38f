"""The application: what comes over HTTP, checked, and what goes back; and the server that runs it."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import os
import socket
import sys
from collections.abc import Callable, Collection
from functools import partial
from time import perf_counter
from typing import Annotated, Any

import anyio
import anyio.to_thread
import msgspec
import numpy as np
import uvicorn
from fastapi import Depends, FastAPI, Request, Response
from fastapi.responses import HTMLResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from uvicorn.protocols.http.auto import AutoHTTPProtocol

import decidewise
from decidewise.app.server.bodies import ARROW, JSON, Body, Limits, RefusedError, read_body, write_stream
from decidewise.app.server.service import Answer, Service, page, refusals, request_body, responses
from decidewise.kit.batches import check_time, time_limit
from decidewise.kit.errors import InputError, SolverError, TimeLimitReached
from decidewise.model_file import ModelSummary, load_model, read_model_summary
from decidewise.problems import ProblemFile

_BEARER = HTTPBearer(auto_error=False)


def create_app(
    model: Any,
    summary: ModelSummary,
    problem: ProblemFile | None = None,
    *,
    limits: Limits | None = None,
    token: str | None = None,
) -> FastAPI:
    """Return an ASGI application that predicts and decides with a model.

    Parameters
    ----------
    model : fitted estimator
    summary : ModelSummary
        What the file of the model says, `read_model_summary(path)`.
    problem : ProblemFile, optional
        Without it, the application has no `/decide`.
    limits : Limits, optional
    token : str, optional
        If given, every request except `/health` needs the header `Authorization: Bearer TOKEN`.

    Examples
    --------
    >>> from decidewise import WiseRegressor
    >>> model = WiseRegressor().fit([[0.0], [1.0], [2.0]], [[1.0, 3.0], [2.0, 2.5], [3.0, 2.0]])
    >>> app = create_app(model, ModelSummary.of(model, {}, {}))
    >>> sorted(app.openapi()["paths"])  # without a problem there is no /decide
    ['/health', '/model', '/predict']
    """
    service = Service(model, summary, problem)
    computing = _Computing(service, limits or Limits())
    app = FastAPI(
        title="decidewise",
        version=decidewise.__version__,
        description="Predicted costs and decisions for rows of features.",
        openapi_url=None,  # it needs the token too, and the pages of FastAPI that show it load scripts from elsewhere
    )
    app.add_exception_handler(HTTPException, _as_sentence)
    app.add_exception_handler(RefusedError, _as_sentence)
    app.add_exception_handler(Exception, _as_fault)
    guard = [] if token is None else [Depends(_guard(token))]
    listed = refusals(401) if token is not None else {}

    @app.get("/health", summary="Whether the server is up.")
    def health() -> dict[str, str]:
        return {"status": "ok", "decidewise": decidewise.__version__}

    @app.get("/model", summary="What the file of the model says.", dependencies=guard, responses=listed)
    def about() -> dict[str, Any]:
        return summary.as_dict()

    @app.get("/openapi.json", include_in_schema=False, dependencies=guard)
    def description() -> dict[str, Any]:
        return app.openapi()

    @app.get("/", include_in_schema=False, dependencies=guard)
    def front_page(request: Request) -> HTMLResponse:
        host, port = request.scope.get("server") or ("127.0.0.1", 8000)
        url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        return HTMLResponse(page(service, computing.limits, app.openapi(), url, token=token is not None))

    def offer(path: str, compute: Callable[[Body], Answer], summary: str, *, decides: bool) -> None:
        @app.post(
            path,
            summary=summary,
            dependencies=guard,
            response_class=Response,
            responses=responses(service, decides=decides, token=token is not None),
            openapi_extra={"requestBody": request_body(service, computing.limits, decides=decides)},
            operation_id=path[1:],
        )
        async def answer(request: Request) -> Response:
            return await computing.answer(request, compute)

    offer("/predict", service.predict, "Predict the costs of each row.", decides=False)
    if problem is not None:
        offer("/decide", service.decide, "Decide for each row.", decides=True)
    return app


class _Computing:
    """Bodies read within limits, and computed in a limited number of threads."""

    def __init__(self, service: Service, limits: Limits) -> None:
        self.service, self.limits = service, limits
        self._places: anyio.CapacityLimiter | None = None

    async def answer(self, request: Request, compute: Callable[[Body], Answer]) -> Response:
        """Return the answer to a request, in the form that its header asks for."""
        content = await self._content(request)
        if self._places is None:  # which needs a running event loop
            self._places = anyio.CapacityLimiter(self.limits.jobs)
        deadline = perf_counter() + self.limits.seconds
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        as_arrow = ARROW in request.headers.get("accept", "")
        work = partial(self._compute, content, kind, compute, deadline, as_arrow)
        return await anyio.to_thread.run_sync(work, limiter=self._places)

    async def _content(self, request: Request) -> bytes:
        too_large = RefusedError(413, f"the body is larger than {self.limits.max_bytes:,} bytes. Send it in parts.")
        length = request.headers.get("content-length", "0")
        if length.isdigit() and int(length) > self.limits.max_bytes:
            raise too_large
        if request.headers.get("content-encoding", "identity") != "identity":
            raise RefusedError(415, "the body must not be compressed.")
        chunks, size = [], 0
        try:
            async with asyncio.timeout(self.limits.seconds):
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > self.limits.max_bytes:
                        raise too_large
                    chunks.append(chunk)
        except TimeoutError:
            raise RefusedError(408, f"the body did not arrive within {self.limits.seconds:g} seconds.") from None
        except ClientDisconnect:
            raise RefusedError(400, "the connection was closed before the body was complete.") from None
        return b"".join(chunks)

    def _compute(
        self, content: bytes, kind: str, compute: Callable[[Body], Answer], deadline: float, as_arrow: bool
    ) -> Response:
        try:
            # What overflows is refused as not finite.
            with time_limit(deadline), np.errstate(over="ignore", invalid="ignore"):
                check_time()  # it may have waited for other requests
                body = read_body(content, kind, per_item=self.service.per_item, max_rows=self.limits.max_rows)
                return _response(compute(body), self.service.cost_names, as_arrow=as_arrow)
        except TimeLimitReached:
            raise RefusedError(503, f"no answer within {self.limits.seconds:g} seconds. Send fewer rows.") from None
        except SolverError as error:
            raise RefusedError(422, str(error)) from error
        except (ValueError, TypeError, OverflowError) as error:  # rows that the model or the problem refuses
            raise RefusedError(422, str(error)) from error
        except MemoryError as error:
            raise RefusedError(503, "there is not enough memory for these rows. Send fewer.") from error


def _response(answer: Answer, names: tuple[str, ...], *, as_arrow: bool) -> Response:
    decides = answer.objective is not None
    if as_arrow:
        prefix = "decision" if decides else "cost"
        columns: dict[str, Any] = {} if answer.keys is None else {"row": answer.keys}
        columns |= {f"{prefix}_{name}": column for name, column in zip(names, answer.values.T, strict=True)}
        if decides:
            columns["predicted_objective"] = answer.objective
        return Response(write_stream(columns, answer.warnings), media_type=ARROW)
    said: dict[str, Any] = {"names": names, "decisions" if decides else "costs": answer.values.tolist()}
    if answer.objective is not None:
        said["predicted_objective"] = answer.objective.tolist()
    if answer.keys is not None:
        said["rows"] = answer.keys
    if answer.warnings is not None:
        said["warnings"] = answer.warnings
    return Response(msgspec.json.encode(said), media_type=JSON)


def _guard(token: str) -> Callable[..., None]:
    def check(given: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]) -> None:
        # Bytes, because digests of text must be ASCII; in constant time, so that the time tells nothing.
        if given is None or not hmac.compare_digest(given.credentials.encode(), token.encode()):
            raise HTTPException(401, "the token is missing or wrong.", headers={"WWW-Authenticate": "Bearer"})

    return check


async def _as_sentence(request: Request, error: Exception) -> Response:
    """Return a refusal as one sentence, whoever refused."""
    status = getattr(error, "status", getattr(error, "status_code", 500))
    sentence = getattr(error, "detail", str(error))
    content = msgspec.json.encode({"error": " ".join(str(sentence).split())})
    return Response(content, status_code=status, media_type=JSON, headers=getattr(error, "headers", None))


async def _as_fault(request: Request, error: Exception) -> Response:
    """Return a fault of the server itself; the log has the traceback."""
    content = msgspec.json.encode({"error": "the server failed; its log says where."})
    return Response(content, status_code=500, media_type=JSON)


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
    others. Here such a connection is closed after some `seconds`, whatever arrives of its header; there may be `most`,
    and a further one closes the oldest.
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
