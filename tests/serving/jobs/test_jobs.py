"""Compile jobs over HTTP: from a model to its artifact, and every way in which that ends otherwise."""

import asyncio
import hashlib
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnxla
from onnxla.error_json import error_json, error_of_json
from onnxla.errors import InputError
from onnxla.serving.jobs.outcome import Outcome
from tests.serving.jobs import models
from tests.serving.jobs.running import JobServer
from tests.serving.jobs.test_child import becomes_true, children


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobServer]:
    with JobServer(folder=tmp_path_factory.mktemp("jobs")) as running:
        yield running


@pytest.fixture(scope="module")
def job(server: JobServer, tmp_path_factory: pytest.TempPathFactory) -> object:
    """A job that has succeeded."""
    return server.finished(server.submit(models.small(tmp_path_factory.mktemp("model") / "model.onnx")))


def test_a_model_becomes_an_artifact(server: JobServer, job: Any, tmp_path: Path) -> None:
    assert job["state"] == "SUCCEEDED" and job["progress"] == 1 and job["error"] is None
    status, headers, data = server.ask("GET", job["artifact"]["url"])
    assert status == 200 and headers["etag"] == f'"{job["artifact"]["sha256"]}"'
    assert hashlib.sha256(data).hexdigest() == job["artifact"]["sha256"] and len(data) == job["artifact"]["bytes"]
    (tmp_path / "a.onnxla").write_bytes(data)
    (y,) = onnxla.load_compiled(tmp_path / "a.onnxla").run(None, {"x": np.ones((1, 8), np.float32)})
    assert np.array_equal(y, np.full((1, 8), 8, np.float32))
    onnxla.compile(models.small(tmp_path / "model.onnx")).save(tmp_path / "here.onnxla")
    assert (tmp_path / "here.onnxla").read_bytes() == data


def test_ranges_and_tags_of_an_artifact(server: JobServer, job: Any) -> None:
    url, tag = job["artifact"]["url"], f'"{job["artifact"]["sha256"]}"'
    whole = server.ask("GET", url)[2]
    status, headers, part = server.ask("GET", url, Range="bytes=100-199")
    assert status == 206 and part == whole[100:200] and headers["content-range"] == f"bytes 100-199/{len(whole)}"
    assert server.ask("GET", url, Range="bytes=100-199", If_Range='"another"')[2] == whole
    assert server.ask("GET", url, Range=f"bytes={len(whole)}-")[0] == 416
    assert server.ask("GET", url, If_None_Match=tag)[::2] == (304, b"")
    assert server.ask("GET", url, If_None_Match='"another"')[0] == 200
    assert server.ask("HEAD", url)[::2] == (200, b"")


def test_the_report_is_there_for_programs_and_for_people(server: JobServer, job: Any) -> None:
    result = server.json("GET", f"/v2/compile/{job['id']}/result")
    assert result["programs"] == 1 and result["explain"]["operators"] == {"MatMul": 1, "Relu": 1}
    assert result["explain"]["compiles"] is True and result["reports"][0]["nodes"] == 2
    text = server.ask("GET", f"/v2/compile/{job['id']}/result?format=text")[2].decode()
    assert "every node can be imported" in text and "2 nodes -> " in text


def test_what_was_compiled_before_is_there_at_once(server: JobServer, job: Any, tmp_path: Path) -> None:
    again = server.submit(models.small(tmp_path / "model.onnx"))
    assert again["state"] == "SUCCEEDED" and again["cached"] is True and again["id"] != job["id"]
    assert again["artifact"] == job["artifact"]
    other = server.submit(tmp_path / "model.onnx", "?option=opt_level=1")
    assert other["cached"] is False and other["key"] != job["key"]
    server.json("DELETE", f"/v2/compile/{other['id']}")


def test_every_problem_of_a_model_is_told(server: JobServer, tmp_path: Path) -> None:
    model = models.unsupported(tmp_path / "model.onnx")
    failed = server.finished(server.submit(model))
    assert failed["state"] == "FAILED" and failed["artifact"] is None
    with pytest.raises(onnxla.UnsupportedOpError) as here:
        onnxla.compile(model)
    assert str(error_of_json(failed["error"])) == str(here.value)
    result = server.json("GET", f"/v2/compile/{failed['id']}/result")
    assert [p["kind"] for p in result["explain"]["problems"]] == ["UnsupportedOpError"] * 2
    text = server.ask("GET", f"/v2/compile/{failed['id']}/result?format=text")[2].decode()
    assert "of.nobody.Unheard" in text and "of.nobody.Unseen" in text


def test_options_in_a_query_and_as_json(server: JobServer, tmp_path: Path) -> None:
    model = models.small(tmp_path / "model.onnx", rows="batch")
    by_name = server.submit(model, "?dim=batch=1,2&option=target_cpu=x86-64-v2")
    as_json = "%7B%22dims%22:%7B%22batch%22:[1,2]%7D,%22options%22:%7B%22target_cpu%22:%22x86-64-v2%22%7D%7D"
    assert server.submit(model, f"?options={as_json}")["key"] == by_name["key"]
    assert server.finished(by_name)["state"] == "SUCCEEDED"
    assert server.json("GET", f"/v2/compile/{by_name['id']}/result")["programs"] == 2


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?options=%7B", "options= is no JSON"),
        ("?options=[]", "options= is a JSON object"),
        ("?options=%7B%22what%22:1%7D", "no field 'what' of a compile"),
        ("?dim=batch", "dim=batch: write it as dim=NAME=VALUE"),
        ("?dim=batch=many", "dim=batch=many: a whole number is needed"),
        ("?option=dump_to=/tmp/x", "dump_to is the server's to choose"),
        ("?option=opt_level=9", "opt_level=9: choose 0, 1, 2 or 3"),
        ("?option=fast_math=maybe", "'maybe' is neither true nor false"),
        ("?name=../../etc/passwd", "name='../../etc/passwd': a file name"),
        ("?name=.hidden", "a file name"),
        ("?what=1", "no parameter 'what'"),
        ("?id=1", "id='1': 16 to 64 digits in hexadecimal"),
        ("?num_threads=0", "num_threads=0: at least 1 is needed"),
    ],
)
def test_options_that_are_none_are_refused(server: JobServer, query: str, message: str) -> None:
    assert message in server.json("POST", f"/v2/compile{query}", b"x", status=400)["error"]


def test_bodies_that_are_no_models(server: JobServer) -> None:
    assert "no body" in server.json("POST", "/v2/compile", b"", status=400)["error"]
    failed = server.finished(server.submit(b"\xff" * 1000))
    assert failed["state"] == "FAILED" and failed["error"]["kind"] == "ModelFormatError"
    assert server.json("GET", f"/v2/compile/{failed['id']}/result") == {"error": failed["error"]}


def test_what_there_is_not(server: JobServer) -> None:
    assert "no compile job '0'" in server.json("GET", "/v2/compile/0", status=404)["error"]
    assert server.json("DELETE", "/v2/compile/0", status=404)
    assert server.json("GET", f"/v2/artifacts/{'0' * 64}", status=404)
    assert server.json("GET", "/v2/artifacts/..%2f..%2fetc%2fpasswd", status=404)
    assert "wait=nan" in server.json("GET", f"/v2/compile/{server.submit(b'x')['id']}?wait=nan", status=400)["error"]


def test_progress_as_server_sent_events(server: JobServer, tmp_path: Path) -> None:
    made = server.submit(models.slow(tmp_path / "model.onnx", 20))
    _, headers, text = server.ask("GET", f"/v2/compile/{made['id']}/events")
    assert headers["content-type"].startswith("text/event-stream")
    events = [
        (lines[0].removeprefix("event: "), json.loads(lines[1].removeprefix("data: ")))
        for lines in (part.splitlines() for part in text.decode().split("\n\n"))
        if len(lines) == 2
    ]
    assert [kind for kind, _ in events[:-1]] == ["progress"] * (len(events) - 1) and events[-1][0] == "end"
    assert events[-1][1]["state"] == "SUCCEEDED" and len(events) > 2
    parts = [told["progress"] for _, told in events]
    assert parts == sorted(parts) and parts[-1] == 1
    assert any(told["stage"] for _, told in events)


def test_one_compile_for_equal_models_at_once(server: JobServer, tmp_path: Path) -> None:
    model = models.slow(tmp_path / "model.onnx", 21)
    first, second = server.submit(model), server.submit(model)
    assert first["id"] != second["id"] and first["key"] == second["key"]
    assert len(children()) <= 1 + 8  # one child and its workers
    assert server.json("DELETE", f"/v2/compile/{first['id']}")["state"] == "CANCELLED"
    assert server.json("GET", f"/v2/compile/{first['id']}")["state"] == "CANCELLED"
    done = server.finished(second)
    assert done["state"] == "SUCCEEDED" and done["cached"] is False
    assert "cancelled" in server.json("GET", f"/v2/compile/{first['id']}/result", status=409)["error"]


def test_cancelling_ends_the_compile(server: JobServer, tmp_path: Path) -> None:
    made = server.submit(models.slow(tmp_path / "model.onnx", 119))
    while not made["stage"]:
        made = server.json("GET", f"/v2/compile/{made['id']}?wait=10&revision={made['revision']}")
    assert children()
    assert server.json("DELETE", f"/v2/compile/{made['id']}")["state"] == "CANCELLED"
    assert becomes_true(lambda: not children())
    assert server.json("DELETE", f"/v2/compile/{made['id']}")["state"] == "CANCELLED"
    assert made["id"] in [one["id"] for one in server.json("GET", "/v2/compile")["jobs"]]


def test_a_crash_fails_its_own_job_alone(server: JobServer, tmp_path: Path) -> None:
    crashed = server.submit(models.slow(tmp_path / "slow.onnx", 117))
    while not crashed["stage"]:
        crashed = server.json("GET", f"/v2/compile/{crashed['id']}?wait=10&revision={crashed['revision']}")
    for pid in children():
        os.kill(pid, signal.SIGSEGV)
    crashed = server.finished(crashed)
    assert crashed["state"] == "FAILED" and crashed["error"]["kind"] == "InternalError"
    assert "crashed (signal SIGSEGV)" in crashed["error"]["message"]
    assert "has no report" in server.json("GET", f"/v2/compile/{crashed['id']}/result", status=409)["error"]
    assert server.finished(server.submit(models.small(tmp_path / "small.onnx", scale=7)))["state"] == "SUCCEEDED"


class Gate:
    """In place of the child: compiles end, without an artifact, when the gate opens."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._is_open = threading.Event()
        monkeypatch.setattr("onnxla.serving.jobs.manager.run_in_child", self._run)

    def open(self) -> None:
        self._is_open.set()

    async def _run(self, *arguments: object, **named: object) -> Outcome:
        while not self._is_open.is_set():
            await asyncio.sleep(0.01)
        return Outcome({"error": error_json(InputError("no compile"))})


def test_the_queue_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    with JobServer(folder=tmp_path / "jobs", running=1, waiting=1) as server:
        first, second = server.submit(b"first"), server.submit(b"second")
        assert server.json("GET", f"/v2/compile/{first['id']}")["state"] == "RUNNING"
        assert second["state"] == "QUEUED"
        status, headers, text = server.ask("POST", "/v2/compile", b"another")
        assert status == 429 and headers["retry-after"] == "5" and b"2 models are being compiled" in text
        server.json("DELETE", f"/v2/compile/{first['id']}")
        gate.open()
        assert server.finished(second)["state"] == "FAILED"
        assert server.submit(b"another")


def test_a_model_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with JobServer(folder=tmp_path / "jobs", model_bytes=1000) as server:
        status, _, text = server.ask("POST", "/v2/compile", bytes(1001))
        assert status == 413 and b"larger than the 1000 bytes" in text
        assert not list((tmp_path / "jobs").glob("server-*/upload-*"))


def test_jobs_are_kept_for_a_bounded_time_and_in_a_bounded_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Gate(monkeypatch).open()
    with JobServer(folder=tmp_path / "jobs", kept_jobs=2) as server:
        made = [server.finished(server.submit(bytes([k]))) for k in range(3)]
        assert [one["id"] for one in server.json("GET", "/v2/compile")["jobs"]] == [made[2]["id"], made[1]["id"]]
    with JobServer(folder=tmp_path / "jobs", kept_seconds=0) as server:
        gone = server.submit(b"x")
        assert becomes_true(lambda: server.ask("GET", f"/v2/compile/{gone['id']}")[0] == 404)


def test_the_server_ends_with_compiles_under_way(tmp_path: Path) -> None:
    with JobServer(folder=tmp_path / "jobs") as server:
        made = server.submit(models.slow(tmp_path / "model.onnx"))
        while not made["stage"]:
            made = server.json("GET", f"/v2/compile/{made['id']}?wait=10&revision={made['revision']}")
    assert not children()
    assert sorted(path.name for path in (tmp_path / "jobs").iterdir()) == ["lock", "store"]


def test_what_a_killed_server_has_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Gate(monkeypatch).open()
    left = tmp_path / "jobs" / "server-gone" / "upload-x"
    left.mkdir(parents=True)
    (tmp_path / "jobs").chmod(0o700)
    with JobServer(folder=tmp_path / "jobs") as one, JobServer(folder=tmp_path / "jobs") as other:
        assert not left.parent.exists()
        assert len(list((tmp_path / "jobs").glob("server-*"))) == 2
        assert one.submit(b"x") and other.submit(b"x")


def test_jobs_take_the_admin_token(tmp_path: Path) -> None:
    for name in ("users", "admins"):
        (tmp_path / name).write_text(f"token-of-the-{name}\n")
    tokens = {"token_file": tmp_path / "users", "admin_token_file": tmp_path / "admins"}
    with JobServer(folder=tmp_path / "jobs", server=tokens) as server:
        for method, path in (("POST", "/v2/compile"), ("GET", "/v2/compile"), ("GET", f"/v2/artifacts/{'0' * 64}")):
            assert server.ask(method, path)[0] == 401
            assert server.ask(method, path, Authorization="Bearer token-of-the-users")[0] == 403
        assert server.ask("GET", "/v2/compile", Authorization="Bearer token-of-the-admins")[0] == 200
