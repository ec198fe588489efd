"""`onnxla compile --server`: what comes back is what a compile here would give, files, text, errors and exit codes."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnxla
from onnxla.client import CompileServer
from onnxla.client.package import package
from onnxla.codegen.cpu.target import host_target, named_target
from onnxla.errors import ArtifactError, DeviceError, FileError, ModelFormatError, ServiceError
from tests.cli.command import Ended
from tests.cli.command import onnxla as command
from tests.serving.jobs import models
from tests.serving.jobs.running import JobServer
from tests.serving.jobs.test_child import ROOT, becomes_true, children
from tests.serving.jobs.test_jobs import Gate
from tests.serving.test_operations import certificate

TOKEN = "a token of administrators"
__all__ = ["certificate"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobServer]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "token").write_text(f"{TOKEN}\n")
    with JobServer(folder=folder / "jobs", server={"admin_token_file": folder / "token"}) as running:
        yield running


@pytest.fixture
def token(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text(f"# mine\n{TOKEN}\n")
    return tmp_path / "token"


def there(server: JobServer, token: Path, *arguments: object) -> Ended:
    return command("compile", *arguments, "--server", f"http://{server.http}", "--token-file", token)


def without_times(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.strip().startswith("time ")]


def test_a_compile_there_is_a_compile_here(server: JobServer, token: Path, tmp_path: Path) -> None:
    model = models.small(tmp_path / "model.onnx", rows="batch")
    ways = ("--dim", "batch=1,4", "-O", "precision=highest")
    ended = there(server, token, model, "-o", tmp_path / "there.onnxla", *ways)
    assert ended.code == 0, ended.err
    here = command("compile", model, "-o", tmp_path / "here.onnxla", *ways)
    assert without_times(ended.out.replace("there", "here"))[1:] == without_times(here.out)[1:]
    target = ("-O", f"target_cpu={host_target()}")
    command("compile", model, "-o", tmp_path / "here.onnxla", *ways, *target)
    assert (tmp_path / "there.onnxla").read_bytes() == (tmp_path / "here.onnxla").read_bytes()
    (y,) = onnxla.load_compiled(tmp_path / "there.onnxla").run(None, {"x": np.ones((4, 8), np.float32)})
    assert np.array_equal(y, np.full((4, 8), 8, np.float32))


def test_the_document_has_the_same_fields(server: JobServer, token: Path, tmp_path: Path) -> None:
    model = models.small(tmp_path / "model.onnx")
    found = there(server, token, model, "-o", tmp_path / "a.onnxla", "--json").json
    here = command("compile", model, "-o", tmp_path / "a.onnxla", "--json").json
    assert found.keys() == here.keys() and found["report"].keys() == here["report"].keys()
    assert found["inputs"] == here["inputs"] and found["report"]["kernels"] == here["report"]["kernels"]


def test_problems_are_printed_as_here_with_the_same_code(server: JobServer, token: Path, tmp_path: Path) -> None:
    broken, opened = models.unsupported(tmp_path / "model.onnx"), models.small(tmp_path / "open.onnx", rows="batch")
    (tmp_path / "none.onnx").write_bytes(b"\xff" * 100)
    for model, code in ((broken, 3), (opened, 2), (tmp_path / "none.onnx", 2), (tmp_path / "missing.onnx", 2)):
        found = there(server, token, model, "-o", tmp_path / "a.onnxla")
        here = command("compile", model, "-o", tmp_path / "a.onnxla")
        assert (found.code, found.err) == (here.code, here.err) and found.code == code
        assert not (tmp_path / "a.onnxla").exists()


def test_the_code_fits_the_machine_that_is_named(server: JobServer, token: Path, tmp_path: Path) -> None:
    model = models.small(tmp_path / "model.onnx")
    ended = there(server, token, model, "-o", tmp_path / "a.onnxla", "-O", "target_cpu=x86-64-v2")
    assert ended.code == 0, ended.err
    assert {p.cpu for p in onnxla.load_compiled(tmp_path / "a.onnxla").programs} == {"x86-64-v2"}
    other = "x86_64-unknown-linux-gnu cpu=haswell l1=32768 l2=262144 l3=8388608 features=avx,avx2,fma,sse2"
    ended = there(server, token, model, "-o", tmp_path / "a.onnxla", "-O", f"target_cpu={other}")
    assert ended.code == 0, ended.err
    (program,) = onnxla.load_compiled(tmp_path / "a.onnxla").programs
    assert program.cpu == "haswell" and program.features == ("avx", "avx2", "fma", "sse2")


@pytest.mark.parametrize(
    "text",
    [
        "x86_64-linux cpu=any features=avx",
        "z80-none cpu=any l1=1 l2=1 l3=1 features=",
        "x86_64-linux cpu=a;b l1=1 l2=1 l3=1 features=",
        "x86_64-linux cpu=any l1=-1 l2=1 l3=1 features=",
        f"x86_64-linux cpu=any l1=1 l2=1 l3=1 features={','.join(map(str, range(600)))}",
    ],
)
def test_a_text_that_is_no_machine_is_refused(text: str) -> None:
    with pytest.raises(DeviceError, match="not the text of a target"):
        named_target(text)


def test_constants_and_inputs_reach_the_server(server: JobServer, token: Path, tmp_path: Path) -> None:
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 6])
    shape = onnx.helper.make_tensor_value_info("shape", onnx.TensorProto.INT64, [2])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = onnx.helper.make_graph([onnx.helper.make_node("Reshape", ["x", "shape"], ["y"])], "g", [x, shape], [y])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    arguments = (tmp_path / "model.onnx", "-o", tmp_path / "a.onnxla", "--constant", "shape=[3,4]")
    ended = there(server, token, *arguments)
    assert ended.code == 0, ended.err
    (y_of,) = onnxla.load_compiled(tmp_path / "a.onnxla").run(
        None, {"x": np.arange(12, dtype=np.float32).reshape(2, 6)}
    )
    assert y_of.shape == (3, 4)
    assert "no such input" in there(server, token, *arguments, "--constant", "other=1").err


def test_external_data_and_folders_are_sent(server: JobServer, tmp_path: Path) -> None:
    model = models.with_external_data(tmp_path / "my model (1).onnx", 4096)
    (tmp_path / "weights.bin").write_bytes(np.arange(1024, dtype=np.float32).tobytes())
    (tmp_path / "secret.txt").write_text("not part of the model")
    sent = package(model, {})
    assert sent.options is None and sent.size == sum(map(len, sent.chunks()))
    assert b"not part" not in b"".join(sent.chunks())
    client = CompileServer(f"http://{server.http}", token=TOKEN)
    told: list[tuple[str, float]] = []
    outcome = client.compile(model, tmp_path / "a.onnxla", progress=lambda *what: told.append(what))
    assert outcome.document["explain"]["model"] == "my model (1).onnx"
    assert [part for _, part in told] == sorted(part for _, part in told) and told[-1] == ("done", 1.0)
    assert {"sending the model", "fetching the artifact"} <= {stage for stage, _ in told}
    (y,) = onnxla.load_compiled(tmp_path / "a.onnxla").run(None, {"x": np.ones(1, np.float32)})
    assert np.array_equal(y, np.arange(1, 1025, dtype=np.float32))


def test_what_lies_outside_of_the_models_folder_is_not_sent(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    model = models.with_external_data(tmp_path / "model" / "model.onnx", 64)
    (tmp_path / "model" / "weights.bin").unlink()
    os.symlink("/etc/hostname", tmp_path / "model" / "weights.bin")
    with pytest.raises(ModelFormatError, match="outside of the model's folder"):
        package(model, {})


def test_a_token_that_is_not_the_servers_is_2(server: JobServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("another token, of nobody\n")
    ended = there(server, tmp_path / "token", models.small(tmp_path / "model.onnx"), "-o", tmp_path / "a.onnxla")
    assert ended.code == 2 and "answers 401: this token is not known here" in ended.err
    assert "another token" not in ended.err
    (tmp_path / "token").write_text("")
    assert "has no token" in there(server, tmp_path / "token", tmp_path / "model.onnx").err


@pytest.mark.parametrize("option", [("--dump-to", "dump"), ("--tune=1",)])
def test_what_is_for_this_machine_is_refused(
    option: tuple[str, ...], server: JobServer, token: Path, tmp_path: Path
) -> None:
    ended = there(server, token, models.small(tmp_path / "model.onnx"), "-o", tmp_path / "a.onnxla", *option)
    assert ended.code == 2 and "leave it out with --server" in ended.err


def test_servers_that_are_not_there_are_7(tmp_path: Path) -> None:
    model = models.small(tmp_path / "model.onnx")
    ended = command("compile", model, "-o", tmp_path / "a.onnxla", "--server", "http://127.0.0.1:9")
    assert ended.code == 7 and "http://127.0.0.1:9 cannot be reached" in ended.err
    ended = command("compile", model, "--server", "ftp://x")
    assert ended.code == 2 and "is no address of a server" in ended.err
    ended = command("compile", model, "--token-file", "x")
    assert ended.code == 2 and "go with --server" in ended.err


class Liar(BaseHTTPRequestHandler):
    """A server whose answers are wrong, in the way that `lies` says."""

    lies = ""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        artifact = {"sha256": hashlib.sha256(b"hello").hexdigest(), "bytes": 5, "url": "/v2/artifacts/x"}
        job = {"id": "1", "state": "SUCCEEDED", "revision": 1, "progress": 1, "stage": "", "error": None}
        self._answer({"nothing": 1} if self.lies == "job" else job | {"artifact": artifact})

    def do_GET(self) -> None:
        if self.path == "/v2/artifacts/x":
            self._send_artifact()
        else:
            outcome = {"inputs": [], "outputs": [], "programs": 1, "reports": [], "text": "", "state": {}}
            self._answer({"inputs": 7} if self.lies == "outcome" else outcome)

    def _send_artifact(self) -> None:
        """Of `breaks` two bytes at a time come, and of `starves` none."""
        begin = int(self.headers.get("range", "bytes=0-")[6:-1])
        if self.lies not in ("breaks", "starves"):
            self._send(b"holla" if self.lies == "artifact" else b"hello")
            return
        self.send_response(206 if begin else 200)
        self.send_header("content-length", str(5 - begin))
        self.end_headers()
        self.wfile.write(b"hello"[begin : begin + 2 * (self.lies == "breaks")])

    def do_DELETE(self) -> None:
        self._answer({})

    def _answer(self, document: object) -> None:
        self._send(b"{" if self.lies == "json" else json.dumps(document).encode())

    def _send(self, data: bytes) -> None:
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def liar(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], CompileServer]]:
    """Gives a client of a server that lies in some way."""
    with HTTPServer(("127.0.0.1", 0), Liar) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()

        def lying(lies: str) -> CompileServer:
            monkeypatch.setattr(Liar, "lies", lies)
            return CompileServer(f"http://127.0.0.1:{server.server_port}")

        yield lying
        server.shutdown()


@pytest.mark.parametrize(
    ("lies", "kind", "message"),
    [
        ("json", ServiceError, "answers what nobody understands"),
        ("job", ServiceError, "no compile job"),
        ("outcome", onnxla.InputError, "not what comes of a compile"),
        ("artifact", ArtifactError, "it is damaged"),
        ("starves", ArtifactError, "it is damaged"),
    ],
)
def test_answers_of_a_server_that_lies_are_errors(
    lies: str, kind: type[Exception], message: str, tmp_path: Path, liar: Callable[[str], CompileServer]
) -> None:
    with pytest.raises(kind, match=message):
        liar(lies).compile(models.small(tmp_path / "model.onnx"), tmp_path / "a.onnxla")
    assert not (tmp_path / "a.onnxla").exists()


def test_a_download_that_breaks_goes_on(tmp_path: Path, liar: Callable[[str], CompileServer]) -> None:
    liar("breaks").compile(models.small(tmp_path / "model.onnx"), tmp_path / "a.onnxla")
    assert (tmp_path / "a.onnxla").read_bytes() == b"hello"


def test_an_artifact_that_cannot_be_written_is_an_error_of_the_file(
    tmp_path: Path, liar: Callable[[str], CompileServer]
) -> None:
    with pytest.raises(FileError, match="cannot write .*Not a directory"):
        liar("").compile(models.small(tmp_path / "model.onnx"), tmp_path / "model.onnx" / "a.onnxla")


def test_folders_and_other_formats_are_compiled(server: JobServer, tmp_path: Path) -> None:
    client = CompileServer(f"http://{server.http}", token=TOKEN)
    saved = ROOT / "tests" / "frontends" / "tensorflow" / "saved_models" / "classifier"
    stablehlo = ROOT / "tests" / "frontends" / "hlo" / "programs" / "argmax_and_argmin.mlir"
    outcome = client.compile(saved, tmp_path / "a.onnxla", signature="predict", dims={"images.0": 2})
    assert outcome.document["explain"]["model"] == "classifier"
    outcome = client.compile(stablehlo, tmp_path / "b.onnxla")
    assert outcome.document["explain"]["language"] == "StableHLO"
    assert onnxla.load_compiled(tmp_path / "b.onnxla").programs


def test_over_tls_with_certificates_that_are_trusted(
    certificate: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Gate(monkeypatch).open()
    model = models.small(tmp_path / "model.onnx")
    with JobServer(folder=tmp_path / "jobs", server=certificate) as server:
        trusting = CompileServer(f"https://{server.http}", ca_file=certificate["tls_cert"])
        with pytest.raises(onnxla.InputError, match="^no compile$"):
            trusting.compile(model, tmp_path / "a.onnxla")
        with pytest.raises(ServiceError, match="certificate verify failed"):
            CompileServer(f"https://{server.http}").compile(model, tmp_path / "a.onnxla")


def test_ctrl_c_cancels_the_job(server: JobServer, token: Path, tmp_path: Path) -> None:
    model = models.slow(tmp_path / "model.onnx", 116)
    arguments = ("compile", model, "-o", tmp_path / "a.onnxla", "--server", f"http://{server.http}")
    # Shells start what runs in the background with SIGINT ignored, and so what that starts.
    default = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"{default}; from onnxla.__main__ import main; main()",
            *map(str, arguments),
            "--token-file",
            str(token),
        ],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    ) as client:
        assert becomes_true(lambda: any(pid != client.pid for pid in children()))
        assert becomes_true(lambda: any(one.state.value == "RUNNING" for one in server.jobs.jobs()))
        client.send_signal(signal.SIGINT)
        _, errors = client.communicate(timeout=60)
    assert client.returncode == 130 and "stopped from the keyboard" in errors
    assert becomes_true(lambda: not children())
    assert server.jobs.jobs()[0].state.value == "CANCELLED"


def test_a_file_of_certificates_that_has_none(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("none")
    with pytest.raises(onnxla.InputError, match="holds no certificates"):
        CompileServer("https://127.0.0.1:1", ca_file=tmp_path / "ca.pem")
