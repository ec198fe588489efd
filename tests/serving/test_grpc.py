"""gRPC as its clients use it: Triton's own, blocking, on asyncio, in streams and from many threads; typed contents."""

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import Queue
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc
from tritonclient.utils import InferenceServerException

from onnxla.serving.tensors import DTYPES
from tests.serving.running import Running, eventually
from tests.serving.small_engine import SmallEngine, doubled
from tests.serving.test_tensors import example


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with Running(lambda: SmallEngine(doubled=doubled), http_port=-1) as running:
        yield running


@pytest.fixture
def client(server: Running) -> Iterator[Any]:
    with triton.InferenceServerClient(server.grpc) as one:
        yield one


@pytest.fixture
def stub(server: Running) -> Iterator[Any]:
    with grpc.insecure_channel(server.grpc) as channel:
        yield service_pb2_grpc.GRPCInferenceServiceStub(channel)


def infer_input(name: str, array: np.ndarray[Any, Any]) -> Any:
    datatype = next(name for name, dtype in DTYPES.items() if dtype == array.dtype)
    one = triton.InferInput(name, list(array.shape), datatype)
    one.set_data_from_numpy(array)
    return one


def test_the_server_tells_about_itself_and_its_models(client: Any) -> None:
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("echo", "1") and not client.is_model_ready("echo", "2")
    assert client.get_server_metadata().name == "onnxla"
    about = client.get_model_metadata("echo")
    assert [(t.name, t.datatype, list(t.shape)) for t in about.inputs] == [("x", "FP32", [-1, 3])]
    config = client.get_model_config("echo").config
    assert config.max_batch_size == 8 and list(config.input[0].dims) == [-1, 3]
    assert ("echo", "1", "READY") in [(m.name, m.version, m.state) for m in client.get_model_repository_index().models]


@pytest.mark.parametrize("name", [name for name in DTYPES if name != "BF16"])
def test_every_datatype_goes_there_and_back(client: Any, name: str) -> None:
    array = example(name, (2, 3))
    result = client.infer("echo", [infer_input("x", array)], request_id="seven")
    assert result.get_response().id == "seven"
    assert np.array_equal(result.as_numpy("x"), array)


@pytest.mark.parametrize(
    ("datatype", "field", "values"),
    [
        ("BOOL", "bool_contents", [True, False]),
        ("INT8", "int_contents", [-128, 127]),
        ("INT32", "int_contents", [-(2**31), 2**31 - 1]),
        ("INT64", "int64_contents", [-(2**63), 2**63 - 1]),
        ("UINT16", "uint_contents", [0, 65535]),
        ("UINT64", "uint64_contents", [0, 2**64 - 1]),
        ("FP32", "fp32_contents", [1.5, float("-inf")]),
        ("FP64", "fp64_contents", [1e300, -1.0]),
        ("BYTES", "bytes_contents", [b"a", b""]),
    ],
)
def test_typed_contents(stub: Any, datatype: str, field: str, values: list[Any]) -> None:
    request = pb.ModelInferRequest(model_name="echo")
    request.inputs.add(name="x", datatype=datatype, shape=[2], contents=pb.InferTensorContents(**{field: values}))
    answer = stub.ModelInfer(request)
    if datatype == "BYTES":
        assert answer.raw_output_contents[0] == b"\x01\x00\x00\x00a\x00\x00\x00\x00"
    else:
        assert np.frombuffer(answer.raw_output_contents[0], DTYPES[datatype]).tolist() == values


def wrong(stub: Any, request: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as found:
        stub.ModelInfer(request)
    return found.value.code(), found.value.details()


def test_what_does_not_fit_is_refused(stub: Any) -> None:
    request = pb.ModelInferRequest(model_name="echo", raw_input_contents=[b"123"])
    request.inputs.add(name="x", datatype="FP32", shape=[1])
    assert wrong(stub, request) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "input 'x': FP32 of shape [1] takes 4 bytes, and 3 were sent",
    )
    request.raw_input_contents.append(b"")
    assert "there are 1 inputs and 2 raw_input_contents" in wrong(stub, request)[1]
    request = pb.ModelInferRequest(model_name="echo")
    request.inputs.add(name="x", datatype="INT8", shape=[1], contents=pb.InferTensorContents(int_contents=[300]))
    request.inputs.add(name="x", datatype="INT8", shape=[1])
    request.inputs.add(name="y", datatype="FP16", shape=[1])
    request.inputs.add(name="z", datatype="FP32", shape=[1], contents=pb.InferTensorContents(int_contents=[3]))
    request.inputs.add(name="w", datatype="FP32", shape=[-1], contents=pb.InferTensorContents(fp32_contents=[3]))
    assert wrong(stub, request)[1].splitlines() == [
        "input 'x': INT8 cannot hold a number among its data: it is out of range",
        "input 'x' is given twice",
        "input 'y': FP16 is sent as raw_input_contents",
        "input 'z': FP32 is sent in fp32_contents, and int_contents was",
        "input 'w': shape [-1] has a negative size: a request names the size of every dimension",
    ]
    assert wrong(stub, pb.ModelInferRequest(model_name="none")) == (
        grpc.StatusCode.NOT_FOUND,
        "there is no model 'none'",
    )
    code, text = wrong(stub, pb.ModelInferRequest(model_name="broken"))
    assert code is grpc.StatusCode.INTERNAL and "secret" not in text


def test_what_is_not_here_is_told(stub: Any, client: Any) -> None:
    for method, request in (
        (stub.TraceSetting, pb.TraceSettingRequest()),
        (stub.SystemSharedMemoryStatus, pb.SystemSharedMemoryStatusRequest()),
    ):
        with pytest.raises(grpc.RpcError) as found:
            method(request)
        assert found.value.code() is grpc.StatusCode.UNIMPLEMENTED
    one = triton.InferInput("x", [1], "FP32")
    one.set_shared_memory("region", 4)
    with pytest.raises(InferenceServerException, match="shared memory is not supported"):
        client.infer("echo", [one])
    with pytest.raises(InferenceServerException, match="sequence_id"):
        client.infer("echo", [infer_input("x", np.zeros(1, np.float32))], sequence_id=3, sequence_start=True)


def test_streams_answer_in_order(client: Any) -> None:
    answers: Queue[tuple[Any, Any]] = Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    for number in range(40):
        model = "none" if number == 20 else "doubled"
        array = np.full((1, 3), number, np.float32)
        client.async_stream_infer(model, [infer_input("x", array)], request_id=str(number))
    found = [answers.get(timeout=20) for _ in range(40)]
    client.stop_stream()
    for number, (result, error) in enumerate(found):
        if number == 20:
            assert "there is no model 'none'" in str(error.message())
        else:
            assert result.get_response().id == str(number)
            assert result.as_numpy("y").tolist() == [[2.0 * number] * 3]


def test_many_threads_share_one_client(client: Any) -> None:
    def ask(number: int) -> bool:
        for turn in range(20):
            array = np.full((number % 5 + 1, 3), number * 100 + turn, np.float32)
            assert np.array_equal(client.infer("doubled", [infer_input("x", array)]).as_numpy("y"), array * 2)
        return True

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(ask, range(8)))


def test_the_client_on_asyncio(server: Running) -> None:
    async def ask() -> None:
        async with triton_aio.InferenceServerClient(server.grpc) as client:
            assert await client.is_server_ready()
            arrays = [np.full((2, 3), number, np.float32) for number in range(30)]
            results = await asyncio.gather(*(client.infer("doubled", [infer_input("x", array)]) for array in arrays))
            for array, result in zip(arrays, results, strict=True):
                assert np.array_equal(result.as_numpy("y"), array * 2)

    asyncio.run(ask())


def test_deadlines_of_both_kinds_end_a_request(client: Any) -> None:
    inputs = [infer_input("x", np.zeros(1, np.float32))]
    for how in ({"timeout": 20_000}, {"client_timeout": 0.05}):
        with pytest.raises(InferenceServerException) as found:
            client.infer("slow", inputs, **how)
        assert found.value.status() == "StatusCode.DEADLINE_EXCEEDED"


def test_a_client_that_cancels_ends_its_request() -> None:
    with Running(SmallEngine) as server, triton.InferenceServerClient(server.grpc) as client:
        ended = threading.Event()
        call = client.async_infer(
            "slow", [infer_input("x", np.zeros(1, np.float32))], callback=lambda result, error: ended.set()
        )
        server.do(server.engine.started.wait())
        call.cancel()
        for _ in range(200):
            if server.engine.cancelled:
                break
            threading.Event().wait(0.02)
        assert server.engine.cancelled == 1 and ended.wait(20)


def test_a_message_that_is_too_large_even_when_it_is_compressed() -> None:
    with Running(SmallEngine, max_request_bytes=100_000) as server:
        with triton.InferenceServerClient(server.grpc) as client:
            large = [infer_input("x", np.zeros(1_000_000, np.float32))]
            for compression in (None, "gzip"):
                with pytest.raises(InferenceServerException) as found:
                    client.infer("echo", large, compression_algorithm=compression)
                assert found.value.status() == "StatusCode.RESOURCE_EXHAUSTED"
            assert client.is_server_live()


def test_a_compressed_request(client: Any) -> None:
    array = np.zeros((100, 3), np.float32)
    for algorithm in ("gzip", "deflate"):
        result = client.infer("doubled", [infer_input("x", array)], compression_algorithm=algorithm)
        assert np.array_equal(result.as_numpy("y"), array)


def test_metadata_that_is_too_large(client: Any) -> None:
    inputs = [infer_input("x", np.zeros(1, np.float32))]
    client.infer("echo", inputs, headers={"x-large": "a" * 8000})
    with pytest.raises(InferenceServerException) as found:
        client.infer("echo", inputs, headers={"x-large": "a" * 40_000})
    assert found.value.status() == "StatusCode.RESOURCE_EXHAUSTED"
    assert client.is_server_live()


def test_clients_are_told_when_to_come_again(stub: Any, server: Running) -> None:
    server.engine.unloaded.add("doubled")
    try:
        with pytest.raises(grpc.RpcError) as found:
            stub.ModelInfer(pb.ModelInferRequest(model_name="doubled"))
    finally:
        server.engine.unloaded.discard("doubled")
    assert found.value.code() is grpc.StatusCode.UNAVAILABLE
    assert dict(found.value.trailing_metadata())["retry-after"] == "2"


def test_the_standard_health_service(server: Running) -> None:
    with grpc.insecure_channel(server.grpc) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        for service in ("", "inference.GRPCInferenceService"):
            answer = stub.Check(health_pb2.HealthCheckRequest(service=service))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_the_server_needs_no_messages_of_a_newer_protobuf_than_tritons_clients() -> None:
    code = "import sys, onnxla.serving.grpc.listener; sys.exit('grpc_health.v1' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_health_of_a_service_that_is_not_there(server: Running) -> None:
    unknown = health_pb2.HealthCheckRequest(service="unknown")
    with grpc.insecure_channel(server.grpc) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        with pytest.raises(grpc.RpcError) as found:
            stub.Check(unknown)
        assert found.value.code() is grpc.StatusCode.NOT_FOUND
        watch = stub.Watch(unknown, timeout=20)
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
        watch.cancel()


def test_one_who_watches_and_does_not_read_keeps_nobody_from_being_told() -> None:
    """A client of HTTP/2 that lets the server send no byte of data."""
    with Running(SmallEngine) as server:
        host, _, port = server.grpc.rpartition(":")
        with socket.create_connection((host, int(port))) as silent, grpc.insecure_channel(server.grpc) as channel:
            silent.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b"\0\4" + bytes(4)))
            names = {":method": "POST", ":scheme": "http", ":path": "/grpc.health.v1.Health/Watch", ":authority": "x"}
            names |= {"te": "trailers", "content-type": "application/grpc"}
            fields = [b"\0" + bytes([len(k)]) + k.encode() + bytes([len(v)]) + v.encode() for k, v in names.items()]
            silent.sendall(frame(HEADERS, 4, 1, b"".join(fields)) + frame(DATA, 1, 1, bytes(5)))
            with silent.makefile("rb") as answer:
                while (head := answer.read(9))[3] != HEADERS:
                    answer.read(int.from_bytes(head[:3]))
            answers = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(service=""), timeout=20)
            assert next(answers).status == health_pb2.HealthCheckResponse.SERVING
            server.engine.unloaded.add("echo")
            assert next(answers).status == health_pb2.HealthCheckResponse.NOT_SERVING
            answers.cancel()


DATA, HEADERS, SETTINGS = 0, 1, 4


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Of HTTP/2 (RFC 9113, 4.1)."""
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def test_what_is_answered_at_once_takes_no_turn_of_the_event_loop() -> None:
    with Running(SmallEngine, max_requests=64) as server, triton.InferenceServerClient(server.grpc) as client:
        server.engine.short = {"echo", "broken"}
        busy, free = threading.Event(), threading.Event()

        def keep_busy() -> None:
            busy.set()
            free.wait(20)

        server.call(keep_busy)
        assert busy.wait(20)
        array = np.arange(3, dtype=np.float32)
        assert np.array_equal(client.infer("echo", [infer_input("x", array)]).as_numpy("x"), array)
        free.set()
        assert server.engine.threads == {"onnxla-grpc"} and server.server.calls.in_flight("grpc") == 0
        for model, asked, status, text in (
            ("echo", [triton.InferRequestedOutput("z")], "INVALID_ARGUMENT", "has no output 'z'"),
            ("broken", None, "INTERNAL", "a fault of onnxla"),
        ):
            with pytest.raises(InferenceServerException, match=text) as found:
                client.infer(model, [infer_input("x", array)], outputs=asked)
            assert found.value.status() == f"StatusCode.{status}" and "secret" not in str(found.value)
        counted = server.server.calls.metrics.text().decode()
        for line in (
            'onnxla_request_seconds_count{model="echo",protocol="grpc",version="1"} 1.0',
            'onnxla_request_failures_total{code="INVALID_ARGUMENT",model="echo",protocol="grpc"} 1.0',
            'onnxla_request_failures_total{code="INTERNAL",model="broken",protocol="grpc"} 1.0',
        ):
            assert line in counted.splitlines()


def test_health_is_told_when_it_changes() -> None:
    with Running(SmallEngine) as server, grpc.insecure_channel(server.grpc) as channel:
        answers = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(service=""), timeout=20)
        assert next(answers).status == health_pb2.HealthCheckResponse.SERVING
        server.engine.unloaded.add("echo")
        assert next(answers).status == health_pb2.HealthCheckResponse.NOT_SERVING
        answers.cancel()


SERVICE = "/inference.GRPCInferenceService"


@pytest.mark.parametrize(
    ("method", "data", "status", "text"),
    [
        (f"{SERVICE}/ModelInfer", b"\xff", grpc.StatusCode.INVALID_ARGUMENT, "a message cannot be read"),
        (f"{SERVICE}/ModelMetadata", b"\x0a\x05a", grpc.StatusCode.INVALID_ARGUMENT, "a message cannot be read"),
        (f"{SERVICE}/NoSuchMethod", b"", grpc.StatusCode.UNIMPLEMENTED, "there is no such method"),
        ("/no.Service/ModelInfer", b"", grpc.StatusCode.UNIMPLEMENTED, "there is no such method"),
        ("/\xc3\xa9", b"", grpc.StatusCode.UNIMPLEMENTED, "there is no such method"),
    ],
)
def test_bytes_that_are_no_call(server: Running, method: str, data: bytes, status: grpc.StatusCode, text: str) -> None:
    with grpc.insecure_channel(server.grpc) as channel:
        with pytest.raises(grpc.RpcError) as found:
            channel.unary_unary(method)(data, timeout=20)
        assert found.value.code() is status and text in found.value.details()
        with pytest.raises(grpc.RpcError) as found:
            list(channel.stream_stream(method)(iter([data]), timeout=20))
        assert found.value.code() is status and text in found.value.details()


def test_a_stream_to_a_method_of_one_message(server: Running) -> None:
    with grpc.insecure_channel(server.grpc) as channel:
        with pytest.raises(grpc.RpcError) as found:
            channel.stream_unary(f"{SERVICE}/ModelInfer")(iter([]), timeout=20)
        assert found.value.code() is grpc.StatusCode.UNIMPLEMENTED
        assert found.value.details() == "this method takes one message, and none was sent"


def test_a_stream_whose_message_cannot_be_read(server: Running) -> None:
    with grpc.insecure_channel(server.grpc) as channel:
        with pytest.raises(grpc.RpcError) as found:
            list(channel.stream_stream(f"{SERVICE}/ModelStreamInfer")(iter([b"\xff"]), timeout=20))
        assert found.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_a_stream_that_is_cancelled_ends_its_requests() -> None:
    with Running(SmallEngine) as server, triton.InferenceServerClient(server.grpc) as client:
        client.start_stream(lambda result, error: None)
        for _ in range(3):
            client.async_stream_infer("slow", [infer_input("x", np.zeros(1, np.float32))])
        assert eventually(lambda: server.server.calls.in_flight("grpc") == 3)
        client.stop_stream(cancel_requests=True)
        assert eventually(lambda: server.engine.cancelled == 3 and server.server.calls.in_flight("grpc") == 0)


def test_repository_calls() -> None:
    with Running(SmallEngine) as server, triton.InferenceServerClient(server.grpc) as client:
        client.unload_model("echo")
        assert not client.is_model_ready("echo")
        with pytest.raises(InferenceServerException, match="model 'echo' is not loaded") as found:
            client.infer("echo", [infer_input("x", np.zeros(1, np.float32))])
        assert found.value.status() == "StatusCode.UNAVAILABLE"
        client.load_model("echo", config='{"max_batch_size": 4}')
        assert server.engine.loads == [("echo", {"config": '{"max_batch_size": 4}'})]
        client.infer("echo", [infer_input("x", np.zeros(1, np.float32))])
        stats = client.get_inference_statistics("echo").model_stats
        assert [(one.name, one.inference_count) for one in stats] == [("echo", 1)]
