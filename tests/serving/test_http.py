"""HTTP as its clients use it: Triton's own, blocking, on asyncio and from many threads, and plain JSON."""

import asyncio
import gzip
import json
import socket
import threading
import urllib.request
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from tritonclient.utils import InferenceServerException

from onnxla.serving.tensors import DTYPES
from tests.serving.running import Running
from tests.serving.small_engine import SmallEngine, doubled
from tests.serving.test_tensors import example
from tests.serving.wire import Wire, request


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with Running(lambda: SmallEngine(doubled=doubled), grpc_port=-1) as running:
        yield running


def post(server: Running, path: str, message: object, **headers: str) -> Any:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(f"http://{server.http}{path}", body, names)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.loads(answer.read())


def tensor(name: str, array: np.ndarray[Any, Any], binary: bool = True, module: Any = triton) -> Any:
    made = module.InferInput(name, list(array.shape), datatype(array))
    made.set_data_from_numpy(array, binary_data=binary)
    return made


def datatype(array: np.ndarray[Any, Any]) -> str:
    return next(name for name, dtype in DTYPES.items() if dtype == array.dtype)


def test_the_server_tells_about_itself_and_its_models(server: Running) -> None:
    with triton.InferenceServerClient(server.http) as client:
        assert client.is_server_live() and client.is_server_ready()
        assert client.is_model_ready("echo") and client.is_model_ready("echo", "1")
        assert not client.is_model_ready("echo", "2") and not client.is_model_ready("none")
        about = client.get_server_metadata()
        assert about["name"] == "onnxla" and "binary_tensor_data" in about["extensions"]
        model = client.get_model_metadata("echo", "1")
        assert model["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}]
        assert client.get_model_config("echo")["max_batch_size"] == 8
        assert {"name": "echo", "version": "1", "state": "READY", "reason": ""} in client.get_model_repository_index()


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("name", [name for name in DTYPES if name not in ("BF16",)])
def test_every_datatype_goes_there_and_back(server: Running, name: str, binary: bool) -> None:
    array = example(name, (2, 3))
    if name == "BYTES" and not binary:
        array = np.array([b"a", b"", "ä".encode()], object)
    with triton.InferenceServerClient(server.http) as client:
        outputs = [triton.InferRequestedOutput("x", binary_data=binary)]
        result = client.infer("echo", [tensor("x", array, binary)], outputs=outputs, request_id="seven")
    assert result.get_response()["id"] == "seven"
    back = result.as_numpy("x")
    assert back is not None
    texts = [t.encode() if isinstance(t, str) else t for t in back.ravel()]
    assert (texts == array.ravel().tolist()) if name == "BYTES" else np.array_equal(back, array)


def test_outputs_are_those_asked_for_in_their_order(server: Running) -> None:
    inputs = [tensor(name, np.array([float(ord(name))], np.float32)) for name in "abc"]
    with triton.InferenceServerClient(server.http) as client:
        outputs = [triton.InferRequestedOutput("c", binary_data=False), triton.InferRequestedOutput("a")]
        response = client.infer("echo", inputs, outputs=outputs).get_response()
        assert [one["name"] for one in response["outputs"]] == ["c", "a"]
        assert response["outputs"][0]["data"] == [99.0]
        with pytest.raises(InferenceServerException, match="has no output 'z'"):
            client.infer("echo", inputs, outputs=[triton.InferRequestedOutput("z")])


@pytest.mark.parametrize("compression", ["gzip", "deflate"])
@pytest.mark.parametrize("size", [3, 100_000])
def test_compressed_requests(server: Running, compression: str, size: int) -> None:
    array = np.random.default_rng(1).random(size, np.float32)
    with triton.InferenceServerClient(server.http) as client:
        result = client.infer(
            "echo",
            [tensor("x", array)],
            request_compression_algorithm=compression,
            response_compression_algorithm=compression,
        )
    assert np.array_equal(result.as_numpy("x"), array)


def test_plain_json_of_any_client(server: Running) -> None:
    message = {"inputs": [{"name": "x", "shape": [2, 2], "datatype": "FP32", "data": [[1, 2], [3, 4]]}]}
    answer = post(server, "/v2/models/doubled/versions/1/infer", message)
    assert answer == {
        "model_name": "doubled",
        "model_version": "1",
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [2, 2], "data": [2.0, 4.0, 6.0, 8.0]}],
    }
    special = {"inputs": [{"name": "x", "shape": [3], "datatype": "FP32", "data": [np.nan, np.inf, -np.inf]}]}
    data = post(server, "/v2/models/doubled/infer", special)["outputs"][0]["data"]
    assert np.isnan(data[0]) and data[1:] == [np.inf, -np.inf]


def test_many_threads_share_the_server(server: Running) -> None:
    def ask(number: int) -> bool:
        with triton.InferenceServerClient(server.http) as client:
            for turn in range(20):
                array = np.full((number % 5 + 1, 3), number * 100 + turn, np.float32)
                result = client.infer("doubled", [tensor("x", array)], request_id=f"{number}-{turn}")
                assert result.get_response()["id"] == f"{number}-{turn}"
                assert np.array_equal(result.as_numpy("y"), array * 2)
        return True

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(ask, range(8)))


def test_the_client_on_asyncio(server: Running) -> None:
    async def ask() -> None:
        async with triton_aio.InferenceServerClient(server.http) as client:
            assert await client.is_server_ready()
            arrays = [np.full((2, 3), number, np.float32) for number in range(30)]
            results = await asyncio.gather(*(client.infer("doubled", [tensor("x", array)]) for array in arrays))
            for array, result in zip(arrays, results, strict=True):
                assert np.array_equal(result.as_numpy("y"), array * 2)

    asyncio.run(ask())


def test_a_large_tensor(server: Running) -> None:
    array = np.random.default_rng(2).random((300, 3, 1000), np.float32)
    with triton.InferenceServerClient(server.http) as client:
        assert np.array_equal(client.infer("echo", [tensor("x", array)]).as_numpy("x"), array)
    assert server.server.calls.metrics.text().count(b"onnxla_http_requests 0.0") == 1


def test_repository_calls() -> None:
    with Running(SmallEngine) as server, triton.InferenceServerClient(server.http) as client:
        client.unload_model("echo")
        assert not client.is_model_ready("echo") and not client.is_server_ready() and client.is_server_live()
        with pytest.raises(InferenceServerException, match="model 'echo' is not loaded"):
            client.infer("echo", [tensor("x", np.zeros(1, np.float32))])
        client.load_model("echo", config='{"max_batch_size": 4}')
        assert client.is_model_ready("echo")
        assert server.engine.loads == [("echo", {"config": '{"max_batch_size": 4}'})]
        with pytest.raises(InferenceServerException, match="there is no model 'none'"):
            client.load_model("none")
        statistics = client.get_inference_statistics("echo")["model_stats"]
        assert [one["name"] for one in statistics] == ["echo"]


def test_a_deadline_ends_a_request(server: Running) -> None:
    with triton.InferenceServerClient(server.http) as client:
        with pytest.raises(InferenceServerException, match="deadline passed") as found:
            client.infer("slow", [tensor("x", np.zeros(1, np.float32))], timeout=20_000)
        assert found.value.status() == "504"


def test_a_client_that_goes_away_cancels_its_request() -> None:
    with Running(SmallEngine) as server:
        client = triton.InferenceServerClient(server.http, network_timeout=0.2)
        with pytest.raises(Exception, match="timed out"):
            client.infer("slow", [tensor("x", np.zeros(1, np.float32))])
        client.close()
        for _ in range(200):
            if server.engine.cancelled:
                break
            threading.Event().wait(0.02)
        assert server.engine.cancelled == 1
        assert b'onnxla_request_failures_total{code="CANCELLED",model="slow",protocol="http"} 1.0' in (
            server.server.calls.metrics.text()
        )


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_a_bomb_is_refused(pack: Any) -> None:
    with Running(SmallEngine, max_request_bytes=100_000) as server:
        with pytest.raises(urllib.error.HTTPError) as found:
            post(
                server,
                "/v2/models/echo/infer",
                pack(bytes(10_000_000)),
                content_encoding="gzip" if pack is gzip.compress else "deflate",
            )
        assert found.value.code == 413
        assert b"with its compression undone the request is longer" in found.value.read()


def test_answers_do_not_wait_for_acknowledgements(server: Running) -> None:
    """Head and body are two writes: with Nagle's algorithm the second waits 40 ms."""
    with Wire(server) as wire:
        wire.send(request("GET", "/v2"))
        assert wire.answer().status == 200
        (connection,) = [
            one
            for one in server.server._listeners[0].connections.all  # type: ignore[union-attr]
            if one.client == wire.socket.getsockname()
        ]
        assert connection.transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
