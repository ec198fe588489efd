"""Tokens, TLS, rates, slow and many clients, back-pressure, metrics, logs, traces and the way a server ends."""

import asyncio
import io
import json
import logging
import re
import ssl
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from tritonclient.utils import InferenceServerException

from onnxla.errors import FileError, InputError
from onnxla.serving.access import Access, Kind, read_tokens
from onnxla.serving.engine import ServingEngine
from onnxla.serving.errors import ForbiddenError, OverloadedError, UnauthenticatedError
from onnxla.serving.logs import start_logging
from onnxla.serving.rates import Rates
from onnxla.serving.server_settings import ServerSettings, table
from onnxla.serving.settings import EngineSettings
from tests.serving.running import Running, eventually
from tests.serving.small_engine import SmallEngine
from tests.serving.test_grpc import infer_input
from tests.serving.wire import Wire, ask, request

INFER = "/v2/models/echo/infer"
ONE = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1.0]}]}
TOKEN, ADMIN = "a-token-of-a-client", "a-token-of-an-admin"


@pytest.fixture
def tokens(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "tokens").write_text(f"# clients\n{TOKEN}\n\nanother-token-of-one\n")
    (tmp_path / "admin").write_text(f"{ADMIN}\n")
    return {"token_file": tmp_path / "tokens", "admin_token_file": tmp_path / "admin"}


def test_calls_of_each_kind_need_their_token(tokens: dict[str, Any]) -> None:
    load = "/v2/repository/models/echo/load"
    with Running(SmallEngine, **tokens) as server:
        for path in ("/v2/health/live", "/v2/health/ready"):
            assert ask(server, "GET", path).status == 200
        for method, path in (("GET", "/v2"), ("GET", "/metrics"), ("GET", "/v2/models/echo"), ("POST", INFER)):
            answer = ask(server, method, path, ONE)
            assert answer.status == 401 and answer.headers["www-authenticate"] == 'Bearer realm="onnxla"'
            assert ask(server, method, path, ONE, authorization="Bearer wrong-wrong-wrong").status == 401
            for token in (TOKEN, "another-token-of-one", ADMIN):
                assert ask(server, method, path, ONE, authorization=f"Bearer {token}").status == 200
        assert ask(server, "POST", load).status == 401
        answer = ask(server, "POST", load, authorization=f"Bearer {TOKEN}")
        assert (answer.status, answer.error) == (403, "this token is not for admin calls")
        assert ask(server, "POST", load, authorization=f"Bearer {ADMIN}").status == 200
        assert ask(server, "GET", "/").headers["www-authenticate"].startswith("Basic ")
        assert ask(server, "GET", "/", authorization="Basic bmFtZTphLXRva2VuLW9mLWEtY2xpZW50").status == 200

        with triton_grpc.InferenceServerClient(server.grpc) as client:
            inputs = [infer_input("x", np.zeros(1, np.float32))]
            assert client.is_server_live()
            with pytest.raises(InferenceServerException, match="need a token") as found:
                client.infer("echo", inputs)
            assert found.value.status() == "StatusCode.UNAUTHENTICATED"
            bearer = {"authorization": f"Bearer {TOKEN}"}
            client.infer("echo", inputs, headers=bearer)
            with pytest.raises(InferenceServerException) as found:
                client.unload_model("echo", headers=bearer)
            assert found.value.status() == "StatusCode.PERMISSION_DENIED"
            client.load_model("echo", headers={"authorization": f"Bearer {ADMIN}"})


def test_admin_calls_without_a_token_are_for_this_machine_alone(tmp_path: Path) -> None:
    assert Access.of(ServerSettings()).check(Kind.ADMIN, None) == ""
    with pytest.raises(ForbiddenError, match="--admin-token-file"):
        Access.of(ServerSettings(host="0.0.0.0")).check(Kind.ADMIN, None)
    (tmp_path / "t").write_text(TOKEN)
    with pytest.raises(ForbiddenError, match="--admin-token-file"):
        Access.of(ServerSettings(token_file=tmp_path / "t")).check(Kind.ADMIN, f"Bearer {TOKEN}")
    with pytest.raises(UnauthenticatedError):
        Access([TOKEN]).check(Kind.INFERENCE, f"bearer {TOKEN}x")
    assert Access([TOKEN]).check(Kind.INFERENCE, f"bearer {TOKEN}") != ""


def test_tokens_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    for text, problem in (("# nothing\n", "has no token"), ("short\n", "fewer than 16 characters")):
        (tmp_path / "t").write_text(text)
        with pytest.raises(InputError, match=problem):
            read_tokens(tmp_path / "t")
    with pytest.raises(FileError, match="tokens cannot be read"):
        read_tokens(tmp_path / "none")


def test_pages_of_other_origins_cannot_act() -> None:
    unload = "/v2/repository/models/echo/unload"
    with Running(SmallEngine, grpc_port=-1) as server:
        for path in (unload, INFER, "/v2/repository/index"):
            for origin in ("http://evil.example", "null", "http://localhost.evil.example"):
                answer = ask(server, "POST", path, ONE, origin=origin)
                assert (answer.status, answer.error) == (403, "requests from pages of another origin are refused")
        assert ask(server, "POST", INFER, ONE, origin="http://localhost").status == 200
        assert ask(server, "POST", unload, origin="http://localhost").status == 200


def test_pages_whose_name_leads_here_are_refused() -> None:
    """DNS rebinding: the page and the server are of one origin to the browser."""
    evil = {"host": "evil.example:8000", "origin": "http://evil.example:8000"}
    with Running(SmallEngine, grpc_port=-1) as server:
        for method, path in (
            ("POST", INFER),
            ("POST", "/v2/repository/index"),
            ("GET", "/v2/models/echo"),
            ("GET", "/"),
        ):
            answer = ask(server, method, path, ONE, **evil)
            assert answer.status == 403 and "is not called by this name" in answer.error
        assert ask(server, "GET", "/v2/health/live", **evil).status == 200
        for host in ("localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000", "[::1]"):
            assert ask(server, "POST", INFER, ONE, host=host).status == 200
    with Running(SmallEngine, grpc_port=-1, hosts=("models.example",)) as server:
        assert ask(server, "POST", INFER, ONE, host="Models.example:443").status == 200
        assert ask(server, "POST", INFER, ONE, host="localhost").status == 403


def test_servers_with_tokens_have_any_name(tokens: dict[str, Any]) -> None:
    with Running(SmallEngine, grpc_port=-1, **tokens) as server:
        asked = {"host": "models.example", "authorization": f"Bearer {TOKEN}"}
        assert ask(server, "POST", INFER, ONE, **asked).status == 200


def test_further_admin_routes_are_admin_calls_too(tokens: dict[str, Any]) -> None:
    """Compile jobs are given to the server as routes; their bodies may take their time."""

    async def upload(request: Request) -> Response:
        return PlainTextResponse(str(len(await request.body())))

    routes = [Route("/v2/compile", upload, methods=["GET", "POST"])]
    given = {"admin_routes": routes, "admin_paths": ("/v2/compile",)}
    with Running(SmallEngine, given=given, body_seconds=0.3, grpc_port=-1, **tokens) as server:
        assert ask(server, "POST", "/v2/compile").status == 401
        assert ask(server, "POST", "/v2/compile", authorization=f"Bearer {TOKEN}").status == 403
        with Wire(server) as wire:
            data = request("POST", "/v2/compile", b"x" * 100, authorization=f"Bearer {ADMIN}")
            wire.send(data[:-50])
            time.sleep(0.8)
            wire.send(data[-50:])
            assert wire.answer().body == b"100"
    with Running(SmallEngine, given=given, grpc_port=-1, admin_port=0) as server:
        assert ask(server, "POST", "/v2/compile").status == 403
        assert ask(server, "POST", "/v2/compile", b"ab", port=server.server.admin_port).body == b"2"


def test_admin_calls_at_a_port_of_their_own() -> None:
    with Running(SmallEngine, admin_port=0) as server:
        load = "/v2/repository/models/echo/load"
        answer = ask(server, "POST", load)
        assert answer.status == 403 and "admin port" in answer.error
        assert ask(server, "POST", load, port=server.server.admin_port).status == 200
        with triton_grpc.InferenceServerClient(server.grpc) as client:
            with pytest.raises(InferenceServerException, match="admin port"):
                client.load_model("echo")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("tls")
    names = {"tls_cert": folder / "cert.pem", "tls_key": folder / "key.pem"}
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,DNS:compile.example,IP:127.0.0.1",
         "-keyout", names["tls_key"], "-out", names["tls_cert"]],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return names


def test_tls(certificate: dict[str, Any]) -> None:
    with Running(SmallEngine, **certificate) as server:
        trusted = ssl.create_default_context(cafile=str(certificate["tls_cert"]))
        with urllib.request.urlopen(f"https://{server.http}/v2/health/live", context=trusted, timeout=20) as answer:
            assert answer.status == 200
        with triton_grpc.InferenceServerClient(
            server.grpc, ssl=True, root_certificates=str(certificate["tls_cert"])
        ) as client:
            array = np.arange(3, dtype=np.float32)
            assert np.array_equal(client.infer("echo", [infer_input("x", array)]).as_numpy("x"), array)
        with Wire(server) as plain:
            plain.send(request("GET", "/v2/health/live"))
            assert plain.is_closed()


def test_certificates_that_are_none(tmp_path: Path, certificate: dict[str, Any]) -> None:
    (tmp_path / "no.pem").write_text("nothing")
    with pytest.raises(InputError, match="go together"):
        ServerSettings(tls_cert=tmp_path / "no.pem")
    with pytest.raises(InputError, match="no certificate and key"):
        Running(SmallEngine, tls_cert=tmp_path / "no.pem", tls_key=certificate["tls_key"]).__enter__()


def test_rates_of_each_client() -> None:
    rates = Rates(5, clients=2)
    for _ in range(5):
        rates.take("a")
    with pytest.raises(OverloadedError) as found:
        rates.take("a")
    assert 0 < (found.value.retry_after or 0) <= 0.2
    rates.take("b")
    rates.take("c")
    rates.take("a")  # forgotten, since two others came
    with Running(SmallEngine, rate=3) as server:
        answers = [ask(server, "POST", INFER, ONE) for _ in range(8)]
        refused = [answer for answer in answers if answer.status == 429]
        assert refused and refused[0].headers["retry-after"] == "1"
        assert ask(server, "GET", "/v2/health/live").status == 200


def test_more_requests_than_there_may_be_are_told_to_come_later() -> None:
    with Running(SmallEngine, max_requests=2) as server:
        slow = "/v2/models/slow/infer"
        with Wire(server) as first, Wire(server) as second:
            first.send(request("POST", slow, ONE))
            second.send(request("POST", slow, ONE))
            assert eventually(lambda: server.server.calls.in_flight("http") == 2)
            answer = ask(server, "POST", INFER, ONE)
            assert answer.status == 429 and answer.headers["retry-after"] == "1" and "--max-requests" in answer.error
            server.call(server.engine.release.set)
            assert first.answer().status == second.answer().status == 200
        assert ask(server, "POST", INFER, ONE).status == 200


def test_bytes_in_flight_are_bounded() -> None:
    with Running(SmallEngine, max_body_bytes_in_flight=5000) as server:
        large = {**ONE, "id": "a" * 4000}
        with Wire(server) as first:
            first.send(request("POST", "/v2/models/slow/infer", large))
            assert eventually(lambda: server.server._bodies.in_flight > 4000)
            answer = ask(server, "POST", INFER, large)
            assert answer.status == 429 and "--max-body-bytes-in-flight" in answer.error
            server.call(server.engine.release.set)
            assert first.answer().status == 200
        assert ask(server, "POST", INFER, large).status == 200


def test_slow_senders_are_ended_and_others_served() -> None:
    with Running(SmallEngine, head_seconds=0.3, body_seconds=0.4) as server:
        with Wire(server) as silent, Wire(server) as head, Wire(server) as body, Wire(server) as other:
            head.send(b"POST /v2/models/echo/infer HTTP/1.1\r\nho")
            body.send(request("POST", INFER, ONE)[:-5])
            for _ in range(3):
                other.send(request("POST", INFER, ONE))
                assert other.answer().status == 200
            assert silent.is_closed() and head.is_closed()
            answer = body.answer()
            assert (answer.status, answer.error) == (408, "the request's body did not arrive in time")
        metrics = server.server.calls.metrics.text().decode()
        assert 'onnxla_request_failures_total{code="DEADLINE_EXCEEDED",model="echo",protocol="http"} 1.0' in metrics


def test_a_client_that_reads_nothing_is_ended() -> None:
    with Running(SmallEngine, body_seconds=0.4, max_request_bytes=2**26) as server:
        array = np.zeros(8_000_000, np.float32)
        text = json.dumps(
            {
                "inputs": [
                    {
                        "name": "x",
                        "datatype": "FP32",
                        "shape": [array.size],
                        "parameters": {"binary_data_size": array.nbytes},
                    }
                ],
                "parameters": {"binary_data_output": True},
            }
        ).encode()
        with Wire(server) as deaf:
            deaf.send(request("POST", INFER, text + array.tobytes(), inference_header_content_length=len(text)))
            listener = server.server._listeners[0]
            assert eventually(lambda: not listener.connections.all)  # type: ignore[union-attr]


def test_more_connections_than_there_may_be() -> None:
    with Running(SmallEngine, max_connections=20) as server:
        with Wire(server) as busy:
            busy.send(request("POST", "/v2/models/slow/infer", ONE))
            assert eventually(lambda: server.server.calls.in_flight("http") == 1)
            idle = [Wire(server) for _ in range(100)]
            for _ in range(5):
                assert ask(server, "POST", INFER, ONE).status == 200
            listener = server.server._listeners[0]
            assert len(listener.connections.all) <= 20  # type: ignore[union-attr]
            server.call(server.engine.release.set)
            assert busy.answer().status == 200  # a request in flight is never ended for room
            for wire in idle:
                wire.socket.close()
    with Running(SmallEngine, max_connections_per_client=2) as server:
        with Wire(server), Wire(server):
            with Wire(server) as third:
                assert third.is_closed()


def test_metrics_are_those_of_known_models() -> None:
    with Running(SmallEngine) as server:
        for _ in range(3):
            assert ask(server, "POST", INFER, ONE).status == 200
        ask(server, "POST", "/v2/models/stranger/infer", ONE)
        with triton_grpc.InferenceServerClient(server.grpc) as client:
            client.infer("echo", [infer_input("x", np.zeros(1, np.float32))])
        server.engine.measured.models[0].queue.add(0.003)
        server.engine.measured.models[0].batch_rows.add(4)
        server.engine.measured.compile_seconds.add(1.5)
        server.engine.measured.cache_hits = 7
        answer = ask(server, "GET", "/metrics")
        text = answer.body.decode()
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    for line in (
        'onnxla_request_seconds_count{model="echo",protocol="http",version="1"} 3.0',
        'onnxla_request_seconds_count{model="echo",protocol="grpc",version="1"} 1.0',
        'onnxla_request_failures_total{code="NOT_FOUND",model="",protocol="http"} 1.0',
        'onnxla_queue_seconds_bucket{le="0.005",model="echo",version="1"} 1.0',
        'onnxla_batch_rows_sum{model="echo",version="1"} 4.0',
        "onnxla_compile_seconds_count 1.0",
        "onnxla_compile_cache_hits_total 7.0",
        'onnxla_model_ready{model="echo",version="1"} 1.0',
        "onnxla_http_requests 0.0",
    ):
        assert line in text.splitlines(), line
    assert "stranger" not in text
    assert re.search(r"^process_resident_memory_bytes \d", text, re.MULTILINE)


def test_every_request_is_a_line_of_json(loggers: None) -> None:
    stream = io.StringIO()
    with Running(SmallEngine, log_requests=True, log="json") as server:
        start_logging("json", stream)
        trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        ask(server, "POST", INFER, ONE, x_request_id="seven\x9b", traceparent=trace)
        ask(server, "POST", "/v2/models/none/infer", ONE)
        with triton_grpc.InferenceServerClient(server.grpc) as client:
            client.infer("echo", [infer_input("x", np.zeros(1, np.float32))], request_id="eight")
        start_logging("text")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    told = [(line["protocol"], line["model"], line["code"], line["request_id"]) for line in lines]
    assert told == [
        ("http", "echo", "OK", "seven\x9b"),
        ("http", "none", "NOT_FOUND", ""),
        ("grpc", "echo", "OK", "eight"),
    ]
    assert lines[0]["trace_id"] == "0af7651916cd43dd8448eb211c80319c" and lines[0]["milliseconds"] > 0
    assert lines[1]["level"] == "warning" and lines[1]["error"] == "there is no model 'none'"


@pytest.fixture
def loggers() -> Iterator[None]:
    """The loggers are as before, afterwards."""
    names = ("onnxla", "onnxla.serving", "uvicorn")
    kept = [(one, one.handlers, one.propagate, one.level) for one in map(logging.getLogger, names)]
    yield
    for one, handlers, propagate, level in kept:
        one.handlers, one.propagate = handlers, propagate
        one.setLevel(level)


def test_what_the_engine_and_the_compiler_say_is_in_the_form_of_the_log(tmp_path: Path, loggers: None) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "1" / "model.onnx").write_bytes(b"no model")
    (tmp_path / "two" / "2").mkdir()
    (tmp_path / "two" / "2" / "model.onnx").write_bytes(b"neither")
    (tmp_path / "two" / "config.pbtxt").write_text("version_policy { all {} }")

    async def start() -> None:
        engine = ServingEngine(EngineSettings(tmp_path))
        await engine.start()
        await engine.close()

    for form in ("json", "text"):
        stream = io.StringIO()
        start_logging(form, stream)
        asyncio.run(start())
        logging.getLogger("onnxla").warning("of the compiler")
        lines = stream.getvalue().splitlines()
        if form == "json":
            told = [json.loads(line) for line in lines]
            assert [line["level"] for line in told] == ["error", "error", "warning"]
            assert told[0]["message"].startswith("model one is not loaded: version 1: ")
            assert told[1]["message"].startswith("model two is not loaded: version 1: ")
            assert "\nversion 2: " in told[1]["message"] and told[1]["message"].count("is not loaded") == 1
        else:
            entries = [line for line in lines if not line.startswith("    ")]
            assert len(entries) == 3 and len(lines) > 3
            assert all(re.match(r"\d{4}-\d\d-\d\d [\d:,]+ (ERROR|WARNING) ", line) for line in entries)


def test_a_server_that_ends_answers_what_it_has_begun() -> None:
    with Running(SmallEngine) as server:
        with Wire(server) as wire, triton_grpc.InferenceServerClient(server.grpc) as client:
            wire.send(request("POST", "/v2/models/slow/infer", ONE))
            done: list[Any] = []
            client.async_infer(
                "slow", [infer_input("x", np.ones(1, np.float32))], callback=lambda result, error: done.append(error)
            )
            calls = server.server.calls
            assert eventually(lambda: calls.in_flight("http") == 1 and calls.in_flight("grpc") == 1)
            stopping = threading.Thread(target=lambda: server.do(server.server.stop()))
            stopping.start()
            assert eventually(lambda: not calls.ready())
            server.call(server.engine.release.set)
            assert wire.answer().status == 200
            stopping.join(20)
            assert eventually(lambda: done == [None])
            assert server.engine.drained and server.engine.closed
        with pytest.raises(ConnectionError):
            ask(server, "GET", "/v2/health/live")


def test_a_server_that_ends_says_so_before() -> None:
    with Running(SmallEngine, announce_seconds=0.5) as server:
        stopping = threading.Thread(target=lambda: server.do(server.server.stop()))
        stopping.start()
        assert eventually(lambda: ask(server, "GET", "/v2/health/ready").status == 400)
        assert ask(server, "GET", "/v2/health/live").status == 200
        assert ask(server, "POST", INFER, ONE).status == 200
        stopping.join(20)


def test_a_request_that_never_ends_does_not_hold_the_server() -> None:
    with Running(SmallEngine, drain_seconds=1) as server:
        with Wire(server) as wire:
            wire.send(request("POST", "/v2/models/slow/infer", ONE))
            assert eventually(lambda: server.server.calls.in_flight("http") == 1)
            server.do(server.server.stop())
            answer = wire.answer()
            assert (answer.status, answer.error) == (503, "the server ended before the result was there")
            assert server.engine.closed and server.engine.cancelled == 1


def test_settings_that_make_no_sense() -> None:
    with pytest.raises(InputError) as found:
        ServerSettings(max_requests=0, head_seconds=0, log="xml", http_port=-1, grpc_port=-1)
    assert len(str(found.value).splitlines()) == 4
    with Running(SmallEngine, grpc_port=-1) as server:
        with pytest.raises(InputError, match="cannot be listened on"):
            Running(SmallEngine, http_port=server.server.http_port).__enter__()


def test_traces_go_on_from_the_clients() -> None:
    trace = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    from onnxla.serving.tracing import Tracer

    exporter = trace.InMemorySpanExporter()
    tracer = Tracer(exporter=exporter)
    with Running(SmallEngine, tracer=tracer) as server:
        parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        ask(server, "POST", INFER, ONE, traceparent=parent)
        with triton_grpc.InferenceServerClient(server.grpc) as client:
            client.infer("echo", [infer_input("x", np.zeros(1, np.float32))], headers={"traceparent": parent})
            with pytest.raises(InferenceServerException):
                client.infer("none", [infer_input("x", np.zeros(1, np.float32))])
    spans = exporter.get_finished_spans()
    assert [span.attributes["rpc.system"] for span in spans] == ["http", "grpc", "grpc"]
    assert [f"{span.context.trace_id:032x}" for span in spans[:2]] == ["0af7651916cd43dd8448eb211c80319c"] * 2
    assert f"{spans[0].parent.span_id:016x}" == "b7ad6b7169203331"
    assert [span.status.is_ok for span in spans] == [True, True, False]


def test_the_page_of_settings_is_printed_from_them() -> None:
    page = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()
    assert table() in page
