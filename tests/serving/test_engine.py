"""The engine against `run` of the same model: values, strings, artifacts, and what wrong requests are told."""

from pathlib import Path

import numpy as np
import pytest

import onnxla
from onnxla.serving.errors import InvalidRequestError, UnknownModelError
from onnxla.serving.requests import InferRequest, ModelStatus
from tests.serving.repositories import ask, dense, echo_words, in_loop, put, random_rows, serving, words


def test_a_model_gives_what_run_gives(tmp_path: Path) -> None:
    put(tmp_path, "m", dense())
    expected = onnxla.compile(dense()).run(None, {"x": random_rows(3)})

    async def work() -> None:
        async with serving(tmp_path) as engine:
            assert engine.ready() and engine.model_ready("m") and engine.model_ready("m", "1")
            response = await engine.infer(InferRequest("m", {"x": random_rows(3)}, id="7"))
            assert (response.model, response.version, response.id) == ("m", "1", "7")
            assert list(response.outputs) == ["y", "s"]
            for ours, theirs in zip(response.outputs.values(), expected, strict=True):
                np.testing.assert_array_equal(ours, theirs)
            only = await ask(engine, "m", {"x": random_rows(3)}, outputs=("s",))
            assert list(only) == ["s"]

    in_loop(work)


def test_it_says_what_it_is(tmp_path: Path) -> None:
    put(tmp_path, "m", dense(), config="max_batch_size: 2 instance_group { count: 2 }")
    put(tmp_path, "m", dense(), 2)

    async def work() -> None:
        async with serving(tmp_path) as engine:
            about = engine.metadata("m")
            assert (about.versions, about.platform) == (("2",), "onnxla")
            assert [(t.name, t.datatype, t.shape) for t in about.inputs] == [("x", "FP32", (-1, 4))]
            assert [(t.name, t.datatype, t.shape) for t in about.outputs] == [
                ("y", "FP32", (-1, 3)),
                ("s", "FP32", (-1,)),
            ]
            config = engine.config("m")
            assert config["max_batch_size"] == 2 and config["input"][0]["dims"] == [4]
            assert config["instance_group"] == [{"count": 2}]
            assert engine.index() == [ModelStatus("m", "2", "READY")]
            assert "<html" in await engine.explain("m")

    in_loop(work)


def test_wrong_requests_are_told_all_that_is_wrong(tmp_path: Path) -> None:
    put(tmp_path, "m", dense(), config="max_batch_size: 4")

    async def work() -> None:
        async with serving(tmp_path) as engine:
            for inputs, said in [
                ({}, "missing: x FP32"),
                (
                    {"x": random_rows(2).astype(np.float64), "z": random_rows(1)},
                    "model: z\nx: datatype FP64",
                ),
                ({"x": random_rows(2, 5)}, r"x: shape \[2, 5\], the model takes x FP32 \[-1, 4\]"),
                ({"x": random_rows(2)[0]}, r"x: shape \[4\]"),
                ({"x": random_rows(5)}, "5 rows, and 1 to 4 are served"),
                ({"x": random_rows(0)}, "0 rows"),
            ]:
                with pytest.raises(InvalidRequestError, match=said):
                    await ask(engine, "m", inputs)
            with pytest.raises(InvalidRequestError, match="no outputs q; the model gives y, s"):
                await ask(engine, "m", {"x": random_rows(1)}, outputs=("q", "y"))
            with pytest.raises(InvalidRequestError, match="missing: x FP32 .*\nno outputs q; the model gives y, s"):
                await ask(engine, "m", {}, outputs=("q",))
            with pytest.raises(UnknownModelError, match="no model 'n'"):
                await ask(engine, "n", {})
            with pytest.raises(UnknownModelError, match="has no version '3'; there are 1"):
                await ask(engine, "m", {}, version="3")
            assert engine.measurements().models[0].failures == {"InvalidRequestError": 8}

    in_loop(work)


def test_strings_come_as_bytes(tmp_path: Path) -> None:
    put(tmp_path, "m", words())

    async def work() -> None:
        async with serving(tmp_path) as engine:
            assert engine.metadata("m").inputs[0].datatype == "BYTES"
            got = await ask(engine, "m", {"x": np.array([b"one", "zwei", b"x"], object)})
            np.testing.assert_array_equal(got["y"], [1, 2, -1])
            with pytest.raises(InvalidRequestError):
                await ask(engine, "m", {"x": np.array([b"\xff", b"", b""], object)})

    in_loop(work)


def test_an_artifact_is_served(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    model = onnxla.compile(dense(), dims={"batch": [1, 4]}, options={"pad_to_bucket": "batch"})
    model.save(tmp_path / "m" / "model.onnxla")

    async def work() -> None:
        async with serving(tmp_path) as engine:
            for rows in (1, 3, 4):
                got = await ask(engine, "m", {"x": random_rows(rows)})
                np.testing.assert_allclose(got["s"], random_rows(rows).sum(1), rtol=1e-5)
            with pytest.raises(InvalidRequestError, match="no code for"):
                await ask(engine, "m", {"x": random_rows(5)})

    in_loop(work)


def test_strings_are_text_in_any_letters(tmp_path: Path) -> None:
    put(tmp_path, "m", echo_words())

    async def work() -> None:
        async with serving(tmp_path) as engine:
            for word in ("é".encode(), "é", "日本".encode()):
                text = word if isinstance(word, str) else word.decode()
                assert (await ask(engine, "m", {"x": np.array([word], object)}))["y"].tolist() == [text]
            with pytest.raises(InvalidRequestError, match="x: bytes that are no text in UTF-8"):
                await ask(engine, "m", {"x": np.array([b"\xff"], object)})

    in_loop(work)
