"""A client that costs little: so many connections, each with one request at a time, for so many seconds."""

import json
import selectors
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import grpc
import numpy as np
import numpy.typing as npt
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

from onnxla.serving.tensors import datatype_of

Arrays = Mapping[str, npt.NDArray[np.generic]]


@dataclass
class Load:
    """What came of it: seconds of each request, and of all."""

    seconds: list[float]
    wall: float
    wrong: int

    def quantile(self, share: float) -> float:
        return sorted(self.seconds)[min(len(self.seconds) - 1, int(len(self.seconds) * share))]

    @property
    def rate(self) -> float:
        return len(self.seconds) / self.wall


def http_request(model: str, arrays: Arrays) -> bytes:
    """An inference request with binary tensors in and out."""
    inputs = [
        {
            "name": name,
            "datatype": datatype_of(a.dtype),
            "shape": list(a.shape),
            "parameters": {"binary_data_size": a.nbytes},
        }
        for name, a in arrays.items()
    ]
    text = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
    data = b"".join(a.tobytes() for a in arrays.values())
    head = f"POST /v2/models/{model}/infer HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(text) + len(data)}\r\n"
    return f"{head}inference-header-content-length: {len(text)}\r\n\r\n".encode() + text + data


def http_load(port: int, request: bytes, connections: int, seconds: float) -> Load:
    """Wrong answers are those that are not 200."""
    found: list[float] = []
    wrong = 0
    begun: dict[socket.socket, float] = {}
    left: dict[socket.socket, tuple[int, bytes]] = {}
    with selectors.DefaultSelector() as selector:
        for _ in range(connections):
            one = socket.create_connection(("127.0.0.1", port))
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(one, selectors.EVENT_READ)
            left[one] = (0, b"")
        start = time.perf_counter()
        end = start + seconds
        for one in left:
            begun[one] = time.perf_counter()
            one.sendall(request)
        while begun:
            for key, _ in selector.select(10):
                one = key.fileobj  # type: ignore[assignment]
                missing, head = left[one]
                data = one.recv(1 << 20)
                if not missing:
                    head += data
                    if b"\r\n\r\n" not in head:
                        left[one] = (0, head)
                        continue
                    top, _, rest = head.partition(b"\r\n\r\n")
                    wrong += not top.startswith(b"HTTP/1.1 200")
                    missing = int(top.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]) - len(rest)
                else:
                    missing -= len(data)
                left[one] = (missing, b"")
                if missing:
                    continue
                now = time.perf_counter()
                found.append(now - begun[one])
                if now < end:
                    begun[one] = now
                    one.sendall(request)
                else:
                    del begun[one]
        wall = time.perf_counter() - start
    for one in left:
        one.close()
    return Load(found, wall, wrong)


def grpc_request(model: str, arrays: Arrays) -> pb.ModelInferRequest:
    request = pb.ModelInferRequest(model_name=model)
    for name, a in arrays.items():
        request.inputs.add(name=name, datatype=datatype_of(a.dtype), shape=a.shape)
        request.raw_input_contents.append(a.tobytes())
    return request


def grpc_load(port: int, request: pb.ModelInferRequest, connections: int, seconds: float) -> Load:
    """The blocking client for one connection; for several, as many futures of one channel."""
    found: list[float] = []
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        infer = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer
        infer(request)
        start = time.perf_counter()
        end = start + seconds
        if connections == 1:
            while (begin := time.perf_counter()) < end:
                infer(request)
                found.append(time.perf_counter() - begin)
        else:
            flying: Sequence[tuple[float, grpc.Future]] = []
            flying = [(time.perf_counter(), infer.future(request)) for _ in range(connections)]
            while flying:
                (begin, first), flying = flying[0], flying[1:]
                first.result()
                found.append(time.perf_counter() - begin)
                if time.perf_counter() < end:
                    flying = [*flying, (time.perf_counter(), infer.future(request))]
        return Load(found, time.perf_counter() - start, 0)
