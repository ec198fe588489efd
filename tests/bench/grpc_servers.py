"""`python -m tests.bench.grpc_servers`: what an empty call costs in gRPC's servers for Python, and in ours.

    aio             grpc.aio.server on uvloop
    threads         grpc.server
    threads-loop    grpc.server, whose threads hand each call to an event loop and wait
    onnxla          onnxla.serving.grpc.server, answering on its own thread
    onnxla-loop     the same, answering on uvloop

All read a `ModelInferRequest` and answer with a `ModelInferResponse` of the same size. Each is a process of its own,
the client is this one; they are measured in turns, and figures are medians over the rounds.
"""

import argparse
import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import grpc
import numpy as np
import uvloop
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc.service_pb2_grpc import (
    GRPCInferenceServiceServicer,
    add_GRPCInferenceServiceServicer_to_server,
)

from onnxla.serving.grpc.gate import Gate
from onnxla.serving.grpc.server import Server
from tests.bench.load import Load, grpc_load, grpc_request

ROOT = Path(__file__).parents[2]
OPTIONS = [("grpc.so_reuseport", 0)]
ADDRESS = "127.0.0.1:0"


def echoed(request: pb.ModelInferRequest) -> pb.ModelInferResponse:
    answer = pb.ModelInferResponse(model_name=request.model_name, model_version="1", id=request.id)
    for tensor in request.inputs:
        answer.outputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
    answer.raw_output_contents.extend(request.raw_input_contents)
    return answer


class OnLoop(GRPCInferenceServiceServicer):  # type: ignore[misc]
    async def ModelInfer(self, request: Any, context: Any) -> Any:
        return echoed(request)


class AtOnce(GRPCInferenceServiceServicer):  # type: ignore[misc]
    def ModelInfer(self, request: Any, context: Any) -> Any:
        return echoed(request)


class HandingOver(GRPCInferenceServiceServicer):  # type: ignore[misc]
    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def ModelInfer(self, request: Any, context: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(OnLoop().ModelInfer(request, context), self._loop).result()


def serve_threads(service: Any) -> None:
    server = grpc.server(ThreadPoolExecutor(16), options=OPTIONS)
    add_GRPCInferenceServiceServicer_to_server(service, server)
    print(server.add_insecure_port(ADDRESS), flush=True)
    server.start()
    server.wait_for_termination()


async def serve_aio() -> None:
    server = grpc.aio.server(options=OPTIONS)
    add_GRPCInferenceServiceServicer_to_server(OnLoop(), server)
    print(server.add_insecure_port(ADDRESS), flush=True)
    await server.start()
    await server.wait_for_termination()


async def serve_ours(service: Any) -> None:
    server = Server(OPTIONS, Gate())
    add_GRPCInferenceServiceServicer_to_server(service, server)
    print(server.add_port(ADDRESS), flush=True)
    server.start()
    await asyncio.Event().wait()


SERVERS = {
    "aio": lambda: uvloop.run(serve_aio()),
    "threads": lambda: serve_threads(AtOnce()),
    "threads-loop": lambda: serve_threads(HandingOver()),
    "onnxla": lambda: uvloop.run(serve_ours(AtOnce())),
    "onnxla-loop": lambda: uvloop.run(serve_ours(OnLoop())),
}


def cpu(process: int) -> float:
    """Seconds of CPU time of a process so far."""
    times = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(one.read_text().split()[0]) for one in times) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at-once", type=int, nargs="*", default=[1, 8, 16])
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--servers", nargs="*", default=list(SERVERS), choices=list(SERVERS))
    parser.add_argument("--child", choices=list(SERVERS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        SERVERS[arguments.child]()
        return
    request = grpc_request("m", {"x": np.zeros((1, 1, 8, 8), np.float32)})
    found: dict[str, tuple[subprocess.Popen[str], int]] = {}
    try:
        for name in arguments.servers:
            command = [sys.executable, "-m", "tests.bench.grpc_servers", "--child", name]
            process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            found[name] = process, int(process.stdout.readline())
        for at_once in arguments.at_once:
            loads: dict[str, list[Load]] = {name: [] for name in found}
            spent: dict[str, list[float]] = {name: [] for name in found}
            for turn in range(arguments.rounds + 1):
                for name, (process, port) in found.items():
                    before = cpu(process.pid)
                    load = grpc_load(port, request, at_once, arguments.seconds)
                    if turn:
                        loads[name].append(load)
                        spent[name].append((cpu(process.pid) - before) / len(load.seconds))
            for name, rows in loads.items():
                p50, p99 = (median(load.quantile(q) for load in rows) * 1e6 for q in (0.5, 0.99))
                print(
                    f"x{at_once:<3} {name:<13} {median(load.rate for load in rows):7.0f}/s  p50 {p50:6.0f} us  "
                    f"p99 {p99:6.0f} us  CPU time of the server {median(spent[name]) * 1e6:4.0f} us a call",
                    flush=True,
                )
    finally:
        for process, _ in found.values():
            process.kill()


if __name__ == "__main__":
    main()
