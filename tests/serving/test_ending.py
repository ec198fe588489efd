"""A server that is told to end under load: every request is answered, or refused so that it may be sent again."""

import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
from tritonclient.utils import InferenceServerException

from tests.cli.command import DIGITS, DIGITS_INPUT
from tests.serving.running import Running, eventually
from tests.serving.small_engine import SmallEngine
from tests.serving.test_grpc import infer_input
from tests.serving.test_operations import INFER, ONE
from tests.serving.wire import Wire, request


def ending(server: Running) -> threading.Thread:
    thread = threading.Thread(target=lambda: server.do(server.server.stop()))
    thread.start()
    assert eventually(lambda: server.server._listeners[0].connections.ending)  # type: ignore[union-attr]
    return thread


def refuses(server: Running) -> bool:
    """Whether the port is closed."""
    try:
        with Wire(server):
            return False
    except ConnectionRefusedError:
        return True


def test_connections_end_with_an_answer() -> None:
    with Running(SmallEngine, grpc_port=-1) as server:
        with Wire(server) as idle, Wire(server) as begun, Wire(server) as behind:
            head, body = request("POST", INFER, ONE)[:20], request("POST", INFER, ONE)[20:]
            begun.send(head)
            behind.send(request("POST", "/v2/models/slow/infer", ONE) + request("POST", INFER, ONE))
            assert eventually(lambda: server.server.calls.in_flight("http") == 1)
            thread = ending(server)
            assert eventually(lambda: refuses(server))
            idle.send(request("POST", INFER, ONE))
            answer = idle.answer()
            assert (answer.status, answer.headers["connection"]) == (200, "close") and idle.is_closed()
            time.sleep(0.8)
            begun.send(body)
            answer = begun.answer()
            assert (answer.status, answer.headers["connection"]) == (200, "close") and begun.is_closed()
            server.call(server.engine.release.set)
            first, last = behind.answer(), behind.answer()
            assert first.status == last.status == 200
            assert "connection" not in first.headers and last.headers["connection"] == "close"
            thread.join(20)


def test_a_connection_that_was_made_and_not_yet_taken_is_answered() -> None:
    with Running(SmallEngine, grpc_port=-1) as server:

        async def connect_and_stop() -> Wire:
            wire = Wire(server)  # which the system does: the loop is busy here
            wire.send(request("POST", INFER, ONE))
            await server.server._listeners[0].stop()
            return wire

        with server.do(connect_and_stop()) as wire:
            answer = wire.answer()
            assert (answer.status, answer.headers["connection"]) == (200, "close") and wire.is_closed()


def test_calls_that_do_not_end_in_time_may_be_made_again() -> None:
    with Running(SmallEngine, drain_seconds=0.5) as server, triton_grpc.InferenceServerClient(server.grpc) as client:
        errors: list[Any] = []
        client.async_infer(
            "slow", [infer_input("x", np.ones(1, np.float32))], callback=lambda result, error: errors.append(error)
        )
        assert eventually(lambda: server.server.calls.in_flight("grpc") == 1)
        server.do(server.server.stop())
        assert eventually(lambda: len(errors) == 1) and errors[0].status() == "StatusCode.UNAVAILABLE"


def test_an_answer_is_not_reset_by_bytes_that_were_not_read() -> None:
    with Running(SmallEngine, grpc_port=-1, max_request_bytes=1024) as server:
        with Wire(server) as wire:
            wire.send(request("POST", INFER, b"x" * 2_000_000)[:1_000_000])
            time.sleep(0.1)
            wire.send(b"x" * 1000)
            assert wire.answer().status == 413 and wire.is_closed()


class Clients:
    """Tight clients that ask again only where a request was refused before it began."""

    def __init__(self, http: str, grpc: str, each: int) -> None:
        self.http, self.grpc = http.partition(":")[2], grpc
        self.images = np.load(DIGITS_INPUT)["image"]
        self.counts: Counter[str] = Counter()
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=one) for one in (self._ask_http, self._ask_grpc) for _ in range(each)]

    def __enter__(self) -> "Clients":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(30)

    def _check(self, kind: str, digits: Any) -> None:
        self.counts[f"{kind} {'right' if np.array_equal(digits, np.arange(10)) else 'wrong'}"] += 1

    def _ask_http(self) -> None:
        tensor = {"name": "image", "datatype": "FP32", "shape": [10, 1, 8, 8], "data": self.images.ravel().tolist()}
        data = request("POST", "/v2/models/digits/infer", {"inputs": [tensor], "outputs": [{"name": "digit"}]})
        wire: Any = None
        while not self._ended.is_set():
            try:
                wire = wire or Wire(None, int(self.http))  # type: ignore[arg-type]
            except ConnectionRefusedError:
                self.counts["http refused"] += 1
                return
            try:
                wire.send(data)
                answer = wire.answer()
                self._check("http", answer.json["outputs"][0]["data"])
            except Exception as error:
                self.counts[f"http {type(error).__name__}: {error}"] += 1
                return
            if answer.headers.get("connection") == "close":
                wire.socket.close()
                wire = None

    def _ask_grpc(self) -> None:
        with triton_grpc.InferenceServerClient(self.grpc) as client:
            while not self._ended.is_set():
                try:
                    self._check("grpc", client.infer("digits", [infer_input("image", self.images)]).as_numpy("digit"))
                except InferenceServerException as error:
                    self.counts[f"grpc {error.status()}"] += 1
                    return


def test_no_request_is_lost_when_the_process_is_told_to_end(tmp_path: Path) -> None:
    place = tmp_path / "models" / "digits" / "1"
    place.mkdir(parents=True)
    shutil.copy(DIGITS, place / "model.onnx")
    (place.parent / "config.pbtxt").write_text('parameters { key: "dims" value { string_value: "batch=10" } }')
    command = [sys.executable, "-m", "onnxla", "serve", "-r", str(tmp_path / "models"), "--log", "json"]
    command += ["--http-port", "0", "--grpc-port", "0", "--set", "engine.compile_in=thread"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            told = json.loads(process.stderr.readline())
            http, grpc = (told[name].partition("://")[2] for name in ("http", "grpc"))
            with triton_grpc.InferenceServerClient(grpc) as client:
                assert eventually(client.is_server_ready)
            with Clients(http, grpc, 4) as clients:
                assert eventually(lambda: clients.counts["http right"] > 50 and clients.counts["grpc right"] > 50)
                process.send_signal(signal.SIGTERM)
                assert process.wait(30) == 0
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", int(clients.http)), 5)
        finally:
            process.kill()
    ended = {name: count for name, count in clients.counts.items() if not name.endswith("right")}
    assert ended == {"http refused": 4, "grpc StatusCode.UNAVAILABLE": 4}
