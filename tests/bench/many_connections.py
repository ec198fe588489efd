"""`python -m tests.bench.many_connections`: clients that only hold connections, or send slowly, beside one that works.

Prints the working client's latencies without and with them, the server's memory, and how many connections it kept.
"""

import argparse
import json
import resource
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import uvloop

from onnxla.serving.logs import start_logging
from onnxla.serving.server import Server
from onnxla.serving.server_settings import ServerSettings
from tests.bench.load import Load, http_load, http_request
from tests.serving.small_engine import SmallEngine

ROOT = Path(__file__).parents[2]
REQUEST = http_request("echo", {"x": np.zeros((4, 3), np.float32)})


async def serve(connections: int) -> None:
    start_logging("text")
    server = Server(SmallEngine(), ServerSettings(http_port=0, grpc_port=-1, max_connections=connections))
    await server.start()
    print(json.dumps(server.http_port), flush=True)
    await server.serve()


def memory(pid: int) -> float:
    """MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def told(name: str, load: Load, pid: int) -> None:
    p50, p99 = (load.quantile(share) * 1e3 for share in (0.5, 0.99))
    wrong = f", {load.wrong} WRONG" * bool(load.wrong)
    print(f"  {name:<34} p50 {p50:.2f} ms  p99 {p99:.2f} ms  server {memory(pid):.0f} MiB{wrong}", flush=True)


def crowd(port: int, clients: int, stop: threading.Event) -> None:
    """So many connections: every other one sends the head of a request, a byte a second; closed ones come again."""

    def one() -> socket.socket:
        made = socket.create_connection(("127.0.0.1", port), 30)
        made.setblocking(False)
        return made

    held = [one() for _ in range(clients)]
    head = b"POST /v2/models/echo/infer HTTP/1.1\r\nhost: slow\r\nx: " + b"a" * 1000
    sent = [False] * clients
    turn = 0
    while not stop.wait(1.0):
        for place in range(0, clients, 2):
            try:
                held[place].send(head[turn : turn + 1] if sent[place] else head[: turn + 1])
                sent[place] = True
            except OSError:
                held[place].close()
                held[place], sent[place] = one(), False
        turn += 1
    for client in held:
        client.close()


def measure(clients: int, bound: int) -> None:
    command = [sys.executable, "-m", "tests.bench.many_connections", "--child", str(bound)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        port = json.loads(child.stdout.readline())
        print(f"{clients} connections, max_connections {bound}:")
        http_load(port, REQUEST, 1, 1.0)
        told("one client alone", http_load(port, REQUEST, 1, 3.0), child.pid)
        stop = threading.Event()
        thread = threading.Thread(target=crowd, args=(port, clients, stop))
        thread.start()
        time.sleep(4)
        told("the same beside the others", http_load(port, REQUEST, 1, 15.0), child.pid)
        stop.set()
        thread.join()
        told("after they have gone", http_load(port, REQUEST, 1, 3.0), child.pid)
        child.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=10_000)
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        uvloop.run(serve(arguments.child))
        return
    for bound in (arguments.clients + 1000, 4096):
        measure(arguments.clients, bound)


if __name__ == "__main__":
    main()
