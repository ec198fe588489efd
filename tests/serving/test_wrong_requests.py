"""Requests that are wrong: each is refused with a status, its faults and the way out, and the server lives on."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.serving.running import Running
from tests.serving.small_engine import SmallEngine
from tests.serving.wire import Wire, ask, request

INFER = "/v2/models/echo/infer"
X = {"name": "x", "datatype": "FP32", "shape": [1], "data": [1.0]}


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with Running(SmallEngine, grpc_port=-1, max_request_bytes=100_000, max_json_bytes=50_000) as running:
        yield running


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "the request is not JSON"),
        (b"{", "the request is not JSON"),
        (b"\xff\xfe", "the request is not JSON"),
        (b"[1]", "the request is not a JSON object"),
        (b'{"inputs": ' + b"[" * 20_000, "the request is"),
        (b'{"id": ' + b"1" * 5000 + b"}", "the request is not JSON"),
        ({}, "inputs is not a list of tensors"),
        ({"inputs": {}}, "inputs is not a list of tensors"),
        ({"inputs": [7]}, "input number 0 has no name"),
        ({"inputs": [{"name": 3}]}, "input number 0 has no name"),
        ({"inputs": [X], "id": 5}, "id is not a string"),
        ({"inputs": [X], "parameters": []}, "the request's parameters are not a JSON object"),
        ({"inputs": [X], "parameters": {"timeout": -1}}, "timeout is not a number of microseconds"),
        ({"inputs": [X], "parameters": {"timeout": True}}, "timeout is not a number of microseconds"),
        ({"inputs": [X], "parameters": {"wait_for_compile": 1}}, "wait_for_compile is neither true nor false"),
        ({"inputs": [X], "outputs": "x"}, "outputs is not a list"),
        ({"inputs": [X], "outputs": [{}]}, "output number 0 has no name"),
        ({"inputs": [X], "outputs": [{"name": "x"}, {"name": "x"}]}, "output 'x' is asked for twice"),
        (
            {"inputs": [X], "outputs": [{"name": "x", "parameters": {"binary_data": 1}}]},
            "output 'x': binary_data is neither true nor false",
        ),
        ({"inputs": [X, X]}, "input 'x' is given twice"),
        ({"inputs": [{**X, "shape": [2]}]}, "input 'x': shape [2] has 2 elements, and data has 1"),
        ({"inputs": [{**X, "shape": [-1]}]}, "input 'x': shape [-1] has a negative size"),
        ({"inputs": [{**X, "shape": [2**62]}]}, "input 'x': shape [4611686018427387904] has more elements"),
        ({"inputs": [{**X, "datatype": "FP31"}]}, "input 'x': datatype 'FP31' is not one of"),
        ({"inputs": [{**X, "name": "\x1b[2J"}] * 2}, "input '\\x1b[2J' is given twice"),
        ({"inputs": [X], "outputs": [{"name": "none"}]}, "model 'echo' has no output 'none'"),
    ],
)
def test_wrong_json(server: Running, body: Any, text: str) -> None:
    answer = ask(server, "POST", INFER, body)
    assert answer.status == 400 and text in answer.error


def test_all_faults_are_in_one_answer(server: Running) -> None:
    inputs = [{**X, "shape": [2]}, {**X, "name": "y", "datatype": "INT8"}, {"name": "z"}]
    answer = ask(server, "POST", INFER, {"id": 3, "inputs": inputs})
    assert answer.error.splitlines() == [
        "id is not a string",
        "input 'x': shape [2] has 2 elements, and data has 1",
        "input 'y': INT8 takes whole numbers, and 1.0 is among its data",
        "input 'z': datatype None is not one of BOOL, UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64, FP16, "
        "BF16, FP32, FP64, BYTES; shape None is not a list of whole numbers",
    ]


def binary(sizes: list[Any], raw: bytes, length: object = None, **more: Any) -> tuple[bytes, dict[str, object]]:
    inputs = [
        {"name": f"x{n}", "datatype": "FP32", "shape": [1], "parameters": {"binary_data_size": size}, **more}
        for n, size in enumerate(sizes)
    ]
    text = json.dumps({"inputs": inputs}).encode()
    return text + raw, {"inference_header_content_length": len(text) if length is None else length}


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (binary([4, 4], bytes(7)), "input 'x1': binary_data_size is 4, and 3 bytes are left"),
        (binary([8, 4], bytes(8)), "input 'x0': FP32 of shape [1] takes 4 bytes, and 8 were sent"),
        (binary([4], bytes(8)), "4 bytes behind the request belong to no input"),
        (binary([-4], bytes(4)), "input 'x0': binary_data_size is not a number of bytes"),
        (binary([True], bytes(4)), "input 'x0': binary_data_size is not a number of bytes"),
        (binary([2**70], bytes(4)), "input 'x0': binary_data_size is 1180591620717411303424, and 4 bytes are left"),
        (binary([4], bytes(4), data=[1.0]), "input 'x0' has both data and binary_data_size"),
        (binary([4], bytes(4), length=10**6), "Inference-Header-Content-Length is 1000000, and the body has"),
        (binary([4], bytes(4), length=-1), "Inference-Header-Content-Length is not a number of bytes"),
        (binary([4], bytes(4), length="1e3"), "Inference-Header-Content-Length is not a number of bytes"),
        (binary([4], bytes(4), length=5), "the request is not JSON"),
    ],
)
def test_wrong_binary_data(server: Running, parts: tuple[bytes, dict[str, object]], text: str) -> None:
    answer = ask(server, "POST", INFER, parts[0], **parts[1])
    assert answer.status == 400 and text in answer.error


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ({"parameters": {"shared_memory_region": "r", "shared_memory_byte_size": 4}}, "shared memory is not supported"),
        ({"sequence": 4}, "sequence_id"),
    ],
)
def test_what_is_not_here_is_told(server: Running, inputs: dict[str, Any], text: str) -> None:
    message = {"inputs": [{**X, **inputs}], "parameters": {"sequence_id": inputs.get("sequence", 0)}}
    answer = ask(server, "POST", INFER, message)
    assert answer.status == 501 and text in answer.error


def test_what_is_not_here_is_told_with_all_else_that_is_wrong(server: Running) -> None:
    shared = {"name": "s", "datatype": "FP32", "shape": [1], "parameters": {"shared_memory_region": "r"}}
    message = {
        "inputs": [X, shared],
        "outputs": [{"name": "x", "parameters": {"classification": 3}}],
        "parameters": {"sequence_id": 4},
    }
    not_here = [
        "input 's': shared memory is not supported; send and ask for data or binary data",
        "output 'x': classification is not supported; sort the output on your side",
        "sequence_id: requests of one sequence are not kept together by this server; send the state as inputs",
    ]
    answer = ask(server, "POST", INFER, message)
    assert (answer.status, answer.error.splitlines()) == (501, not_here)
    answer = ask(server, "POST", INFER, {**message, "id": 5})
    assert (answer.status, answer.error.splitlines()) == (400, ["id is not a string", *not_here])


def test_paths_and_methods_that_are_not_there(server: Running) -> None:
    for method in ("GET", "PUT", "DELETE"):
        for path in (INFER, "/v2/models/echo/versions/1/infer"):
            answer = ask(server, method, path)
            assert (answer.status, answer.error) == (405, f"{method} is no method of {path}")
    assert ask(server, "POST", "/v2/models//infer", {}).status == 404
    assert ask(server, "POST", "/v2/models/echo/versions/1/2/infer", {}).status == 404
    assert "is no method of /v2/health/live" in ask(server, "POST", "/v2/health/live").error
    answer = ask(server, "POST", "/v2/models/..%2Fecho/infer", {"inputs": [X]})
    assert answer.status == 404 and "there is no /v2/models/../echo/infer here" in answer.error
    answer = ask(server, "POST", "/v2/models/%252e/infer", {"inputs": [X]})
    assert (answer.status, answer.error) == (404, "there is no model '%2e'")
    answer = ask(server, "POST", "/v2/models/echo/versions/9/infer", {"inputs": [X]})
    assert (answer.status, answer.error) == (404, "model 'echo' has no version '9'")
    assert ask(server, "GET", "/v2/models/none").status == 404
    assert ask(server, "GET", "/v2/trace/setting").status == 501


def test_a_fault_of_the_server_tells_nothing_of_it(server: Running) -> None:
    answer = ask(server, "POST", "/v2/models/broken/infer", {"inputs": [X]})
    assert answer.status == 500 and "secret" not in answer.error and "the server's log has more" in answer.error


def test_sizes_beyond_the_limits(server: Running) -> None:
    with Wire(server) as wire:
        wire.send(b"POST /v2/models/echo/infer HTTP/1.1\r\nhost: localhost\r\ncontent-length: 999999999999\r\n\r\n")
        answer = wire.answer()
        assert answer.status == 413
        assert answer.error == (
            "the request has 999999999999 bytes, more than the 100000 that this server takes (--max-request-bytes)"
        )
        assert wire.is_closed()
    with Wire(server) as wire:
        wire.send(b"POST /v2/models/echo/infer HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in range(11):
            wire.send(b"2710\r\n" + bytes(10_000) + b"\r\n")
        assert wire.answer().status == 413
    answer = ask(server, "POST", INFER, b" " * 60_000 + b"{}")
    assert answer.status == 413 and "send tensors as binary data" in answer.error
    assert server.server._bodies.in_flight == 0


@pytest.mark.parametrize(
    "head",
    [
        b"x: " + b"a" * 20_000 + b"\r\n\r\n",
        b"".join(b"h%d: %s\r\n" % (n, b"b" * 100) for n in range(300)) + b"\r\n",
        b"y: " + b"a" * 200_000,
    ],
)
def test_heads_beyond_the_limit(server: Running, head: bytes) -> None:
    with Wire(server) as wire:
        wire.send(b"GET /v2/health/live HTTP/1.1\r\nhost: a\r\n" + head)
        answer = wire.answer()
        assert answer.status == 400 and b"more than 16384 bytes" in answer.body
        assert wire.is_closed()


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"GET /\x00 HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_not_http(server: Running, data: bytes) -> None:
    with Wire(server) as wire:
        wire.send(data)
        assert wire.answer().status == 400
        assert wire.is_closed()


def test_compression_that_is_damaged_or_unknown(server: Running) -> None:
    for encoding, body, status, text in (
        ("gzip", b"no", 400, "compression is damaged"),
        ("deflate", b"\x78\x9c\x03", 400, "it ends too early"),
        ("br", b"x", 415, "Content-Encoding br is not supported"),
    ):
        answer = ask(server, "POST", INFER, body, content_encoding=encoding)
        assert answer.status == status and text in answer.error
    assert server.server._bodies.in_flight == 0


def test_requests_one_behind_another_are_answered_in_order(server: Running) -> None:
    with Wire(server) as wire:
        messages = [{"id": str(n), "inputs": [{**X, "data": [float(n)]}]} for n in range(20)]
        wire.send(b"".join(request("POST", INFER, message) for message in messages))
        for n in range(20):
            answer = wire.answer().json
            assert answer["id"] == str(n) and answer["outputs"][0]["data"] == [float(n)]
