"""A server in a thread of the tests, on a port of its own."""

import http.client
import json
import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import sleep

import pytest
import uvicorn

from decidewise.app.server import create_app
from decidewise.model_file import ModelSummary


@dataclass
class Reply:
    status: int
    content: bytes
    headers: dict = field(default_factory=dict)

    @property
    def json(self):
        assert self.headers["content-type"] == "application/json"
        return json.loads(self.content)


class Client:
    def __init__(self, port, **headers):
        self.port, self.headers = port, headers

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method, path, content=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        named = {key.replace("_", "-"): value for key, value in {**self.headers, **headers}.items()}
        connection.request(method, path, content, named)
        reply = connection.getresponse()
        found = Reply(reply.status, reply.read(), {key.lower(): value for key, value in reply.getheaders()})
        connection.close()
        return found

    def get(self, path, **headers):
        return self.ask("GET", path, **headers)

    def post(self, path, body, **headers):
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.ask("POST", path, content, **{"content_type": "application/json", **headers})


@contextmanager
def running(app, **settings):
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", **settings))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        sleep(0.01)
    try:
        yield Client(listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def served():
    """Return a context of a client of a server with a given model."""

    def serve(model, problem=None, summary=None, **options):
        return running(create_app(model, ModelSummary.of(model, summary or {}, {}), problem, **options))

    return serve
