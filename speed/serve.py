"""Ask the server 2,000 times from a second process, beside a bare endpoint of the same framework.

Run: `python speed/serve.py`. Targets: no request lost, no status of 500 or above, memory flat (at most 10 MB more after
2,000 requests than after the first 500), and one row decided in at most three times the processor time of an endpoint
that only reads its body. Requests come from 8 connections at a time. Requests per second and the time within which 99 %
are answered are printed beside those of this endpoint.
"""

import http.client
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from benchmark import Bench, Measured, parser
from decidewise import WiseRegressor, save_model
from decidewise.data import make_shortest_path

N_REQUESTS, N_CONNECTIONS, N_FIRST = 2_000, 8, 500

BARE = """
import socket, sys
import uvicorn
from fastapi import FastAPI, Request, Response
app = FastAPI()
@app.post("/decide")
async def decide(request: Request):
    await request.body()
    return Response(b'{"decisions": []}', media_type="application/json")
with socket.create_server(("127.0.0.1", 0)) as listening:
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sys.stderr.write(f"at http://127.0.0.1:{listening.getsockname()[1]};\\n")
    sys.stderr.flush()
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[listening])
"""


class Server:
    """A server in a process of its own."""

    def __init__(self, command, folder):
        self.process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        if "127.0.0.1:" not in line:
            sys.exit(f"the server did not start: {line}")
        self.port = int(line.partition("127.0.0.1:")[2].partition(";")[0])

    def __enter__(self):
        return self

    def megabytes(self):
        """Return the memory that it holds."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))

    def processor_seconds(self):
        """Return the processor time that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate()


def ask(server, path, body, n_requests):
    """Return the statuses and the seconds of all requests."""
    statuses, seconds = Counter(), []
    todo = iter(range(n_requests))

    def work():
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        for _ in todo:
            start = perf_counter()
            try:
                connection.request("POST", path, body, {"Content-Type": "application/json"})
                reply = connection.getresponse()
                reply.read()
                statuses[reply.status] += 1
            except OSError as error:
                statuses[type(error).__name__] += 1
                connection.close()
            seconds.append(perf_counter() - start)
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(N_CONNECTIONS)]
    start = perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses, seconds, perf_counter() - start


def measure(server, path, body, n_requests):
    ask(server, path, body, N_FIRST)
    memory, used = server.megabytes(), server.processor_seconds()
    statuses, seconds, total = ask(server, path, body, n_requests)
    return {
        "statuses": statuses,
        "per second": n_requests / total,
        "p50": np.quantile(seconds, 0.5),
        "p99": np.quantile(seconds, 0.99),
        "processor": Measured((server.processor_seconds() - used) / n_requests, "processor"),
        "grown": server.megabytes() - memory,
    }


def main(arguments):
    n_requests = N_REQUESTS // 10 if arguments.quick else N_REQUESTS
    data = make_shortest_path(600, degree=4, seed=0)
    bodies = {n: json.dumps({"X": data.X[:n].tolist()}).encode() for n in (1, 100)}
    warm_up = f"{N_FIRST} requests of each kind"
    with TemporaryDirectory() as folder, Bench(__file__, "The server", arguments.quick, warm_up=warm_up) as bench:
        save_model(WiseRegressor().fit(data.X, data.costs), Path(folder, "model.dw"))
        Path(folder, "problem.toml").write_text('kind = "shortest_path"\nrows = 5\ncolumns = 5\n')
        command = [sys.executable, "-m", "decidewise", "serve", "model.dw", "--problem", "problem.toml", "--port", "0"]
        with Server([sys.executable, "-c", BARE], folder) as bare, Server(command, folder) as ours:
            limit = measure(bare, "/decide", bodies[1], n_requests)
            for path, n in (("/predict", 1), ("/decide", 1), ("/decide", 100)):
                report(
                    bench, f"{path}, rows: {n}", measure(ours, path, bodies[n], n_requests), limit, n_requests, n == 1
                )


def report(bench, name, found, limit, n_requests, one_row):
    """State what one kind of requests took."""
    answered = found["statuses"] == {200: n_requests}
    same = f"{found['statuses'][200]:,} of {n_requests:,} answered, {N_CONNECTIONS} at a time"
    target = {"at_most": 3} if one_row else {"limit": True}
    sides = found["processor"], limit["processor"]
    bench.claim(f"{name}, a request", *sides, peer="an endpoint that only reads", same=same, is_same=answered, **target)
    beside = {"peer": "an endpoint that only reads", "limit": True}
    for share, quantile in (("half", "p50"), ("99 %", "p99")):
        times = Measured(found[quantile], "wall"), Measured(limit[quantile], "wall")
        bench.claim(f"{name}, {share} of the answers within", *times, **beside)
    bench.claim(f"{name}, requests per second", found["per second"], limit["per second"], **beside)
    bench.claim(f"{name}, growth of memory", found["grown"], unit="MB", at_most=10)


if __name__ == "__main__":
    main(parser(__doc__).parse_args())
