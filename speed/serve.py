"""Ask the server 2,000 times from a second process, beside a bare endpoint of the same framework.

Run: `python speed/serve.py`. Targets: no request lost, no status of 500 or above, memory flat (at most 10 MB more after
2,000 requests than after the first 500), and one row decided in at most three times the processor time of an endpoint
that only reads its body. Requests come from 8 connections at a time.
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
from rich.console import Console
from rich.table import Table

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


def measure(server, path, body):
    ask(server, path, body, N_FIRST)
    memory, used = server.megabytes(), server.processor_seconds()
    statuses, seconds, total = ask(server, path, body, N_REQUESTS)
    return {
        "statuses": statuses,
        "per second": N_REQUESTS / total,
        "p50": 1000 * np.quantile(seconds, 0.5),
        "p99": 1000 * np.quantile(seconds, 0.99),
        "processor": 1000 * (server.processor_seconds() - used) / N_REQUESTS,
        "grown": server.megabytes() - memory,
    }


def main():
    data = make_shortest_path(600, degree=4, seed=0)
    bodies = {n: json.dumps({"X": data.X[:n].tolist()}).encode() for n in (1, 100)}
    with TemporaryDirectory() as folder:
        save_model(WiseRegressor().fit(data.X, data.costs), Path(folder, "model.dw"))
        Path(folder, "problem.toml").write_text('kind = "shortest_path"\nrows = 5\ncolumns = 5\n')
        command = [sys.executable, "-m", "decidewise", "serve", "model.dw", "--problem", "problem.toml", "--port", "0"]
        with Server([sys.executable, "-c", BARE], folder) as bare, Server(command, folder) as ours:
            found = {
                "bare endpoint": measure(bare, "/decide", bodies[1]),
                "/predict, 1 row": measure(ours, "/predict", bodies[1]),
                "/decide, 1 row": measure(ours, "/decide", bodies[1]),
                "/decide, 100 rows": measure(ours, "/decide", bodies[100]),
            }
    table = Table(title=f"{N_REQUESTS:,} requests, {N_CONNECTIONS} at a time; 5×5 shortest path, 40 costs")
    for heading in (
        "endpoint",
        "answered",
        "requests/s",
        "p50 ms",
        "p99 ms",
        "processor ms",
        "ratio",
        "memory MB",
        "met",
    ):
        table.add_column(heading, justify="left" if heading == "endpoint" else "right")
    for name, row in found.items():
        ratio = row["processor"] / found["bare endpoint"]["processor"]
        met = row["statuses"] == {200: N_REQUESTS} and row["grown"] <= 10 and (ratio <= 3 or not name.endswith("1 row"))
        numbers = [row["per second"], row["p50"], row["p99"], row["processor"]]
        cells = [f"{row['statuses'][200]:,}", f"{numbers[0]:,.0f}", *(f"{number:.2f}" for number in numbers[1:])]
        table.add_row(name, *cells, f"{ratio:.2f}", f"{row['grown']:+.1f}", "yes" if met else "NO")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
