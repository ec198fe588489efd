"""Whose matter it is that a model does not load: what clients and administrators are told."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from tritonclient.utils import InferenceServerException

from onnxla.errors import FileError, InputError, InternalError, OnnxlaError, ResourceLimitError, UnsupportedOpError
from onnxla.serving.compiling import CompileService
from onnxla.serving.engine import ServingEngine
from onnxla.serving.errors import InvalidRequestError, NotReadyError, ServingError, worst_kind
from onnxla.serving.repository import Repository
from onnxla.serving.settings import EngineSettings
from tests.serving.repositories import ask, dense, in_loop, put, random_rows, serving
from tests.serving.running import Running


def failing(monkeypatch: pytest.MonkeyPatch, *errors: Exception) -> list[Path]:
    """Let compiles fail, each with the next of these errors and the last ones with the last; the list grows by each."""
    compiled: list[Path] = []

    async def compile(self: CompileService, path: Path, *arguments: Any) -> Any:
        compiled.append(path)
        raise errors[min(len(compiled), len(errors)) - 1]

    monkeypatch.setattr(CompileService, "compile", compile)
    return compiled


@pytest.mark.parametrize(
    ("error", "kind", "http", "grpc"),
    [
        (UnsupportedOpError("no rule for it"), InvalidRequestError, "400", "INVALID_ARGUMENT"),
        (InputError("no such option"), InvalidRequestError, "400", "INVALID_ARGUMENT"),
        (ResourceLimitError("compiling takes too long"), NotReadyError, "503", "UNAVAILABLE"),
        (InternalError("the process that compiles crashed"), ServingError, "500", "INTERNAL"),
        (FileError("no room on the disk"), ServingError, "500", "INTERNAL"),
        (ZeroDivisionError("a fault"), ServingError, "500", "INTERNAL"),
    ],
)
def test_a_failed_load_says_whose_fault_it_is(
    error: Exception, kind: type[ServingError], http: str, grpc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "m", dense(rows=2))
    failing(monkeypatch, error)
    with Running(lambda: ServingEngine(EngineSettings(tmp_path, control="explicit"))) as server:
        with pytest.raises(ServingError, match="^model m is not loaded: version 1: ") as found:
            server.do(server.engine.load("m"))
        assert type(found.value) is kind
        with (
            triton_http.InferenceServerClient(server.http) as by_http,
            triton_grpc.InferenceServerClient(server.grpc) as by_grpc,
        ):
            for client, status in ((by_http, http), (by_grpc, f"StatusCode.{grpc}")):
                with pytest.raises(InferenceServerException, match="^.*model m is not loaded") as told:
                    client.load_model("m")
                assert told.value.status() == status


def test_of_several_versions_our_fault_comes_first() -> None:
    ours, later, theirs = ServingError("x"), NotReadyError("x"), InvalidRequestError("x")
    assert worst_kind([theirs, later, ours]) is ServingError
    assert worst_kind([theirs, later]) is NotReadyError
    assert worst_kind([theirs]) is InvalidRequestError


@pytest.mark.parametrize("error", [InternalError("crashed"), ResourceLimitError("killed by the system")])
def test_a_repository_that_is_polled_tries_again_what_another_try_may_mend(
    error: OnnxlaError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "m", dense(rows=2), config='default_model_filename: "model.onnx"')

    async def work() -> None:
        with monkeypatch.context() as patch:
            compiled = failing(patch, error, error, UnsupportedOpError("no rule"))
            async with serving(tmp_path, control="poll", poll_seconds=0.01) as engine:
                while len(compiled) < 3:
                    await asyncio.sleep(0.01)
                await asyncio.sleep(0.2)
                assert len(compiled) == 3 and "no rule" in engine.index()[0].reason
        async with serving(tmp_path, control="poll") as engine:
            await ask(engine, "m", {"x": random_rows(2)})

    in_loop(work)


def test_a_model_that_does_not_compile_is_not_tried_again_whatever_its_file_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = put(tmp_path, "m", dense(rows=2), config='default_model_filename: "net.onnx"')
    (folder / "model.onnx").rename(folder / "net.onnx")
    compiled = failing(monkeypatch, UnsupportedOpError("no rule"))

    async def work() -> None:
        async with serving(tmp_path, control="poll", poll_seconds=60) as engine:
            for _ in range(3):
                await engine._look()
            assert compiled == [folder / "net.onnx"]
            (folder / "net.onnx").write_bytes(dense(2.0, rows=2).SerializeToString())
            await engine._look()
            assert len(compiled) == 2

    in_loop(work)


def test_a_folder_that_cannot_be_read_is_a_fault_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "m", dense())
    put(tmp_path, "other", dense(rows=2))
    places = Repository._places

    def refusing(self: Repository, folder: Path, file_name: str) -> Any:
        if folder.name == "m":
            raise PermissionError(13, "Permission denied", str(folder))
        return places(self, folder, file_name)

    async def work() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Repository, "_places", refusing)
            async with serving(tmp_path, control="poll", poll_seconds=60) as engine:
                assert engine.model_ready("other")
                assert "m cannot be read: Permission denied" in engine.index()[0].reason
                await engine._look()
                patch.undo()
                await engine._look()
                assert engine.model_ready("m")

    in_loop(work)


def test_a_compile_for_new_shapes_that_crashes_is_our_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "m", dense())

    async def work() -> None:
        async with serving(tmp_path) as engine:
            with monkeypatch.context() as patch:
                compiled = failing(patch, InternalError("the process that compiles crashed"))
                for _ in range(2):
                    with pytest.raises(ServingError, match=r"shapes \[\[2, 4\]\] cannot be compiled") as found:
                        await ask(engine, "m", {"x": random_rows(2)})
                    assert type(found.value) is ServingError
                assert len(compiled) == 1  # it is remembered for a while
            got = await ask(engine, "m", {"x": random_rows(3)})
            np.testing.assert_allclose(got["s"], random_rows(3).sum(1), rtol=1e-5)

    in_loop(work)
