"""Batches of sizes that nobody compiled for, padded to the next: values, `out=`, artifacts, threads, refusals."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import onnxla
from onnxla.errors import ArtifactError, InputError
from onnxla.runtime.artifact_reading import read_artifact
from onnxla.runtime.padding import Padding
from onnxla.runtime.tensors import Array

WEIGHTS = np.random.default_rng(0).standard_normal((12, 5)).astype(np.float32)


def two_outputs() -> ModelProto:
    """[batch, 3, 4] and words [batch] -> probabilities [batch, 5], and [3, batch, 4] with the rows in the middle."""
    nodes = [
        helper.make_node("Flatten", ["x"], ["f"]),
        helper.make_node("Gemm", ["f", "w"], ["g"]),
        helper.make_node("Gather", ["table", "word"], ["e"]),
        helper.make_node("Add", ["g", "e"], ["a"]),
        helper.make_node("Softmax", ["a"], ["p"], axis=-1),
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "two outputs",
        [info("x", TensorProto.FLOAT, ["batch", 3, 4]), info("word", TensorProto.INT64, ["batch"])],
        [info("p", TensorProto.FLOAT, ["batch", 5]), info("t", TensorProto.FLOAT, [3, "batch", 4])],
        [numpy_helper.from_array(WEIGHTS, "w"), numpy_helper.from_array(WEIGHTS[:7], "table")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def feeds(rows: int, seed: int = 0) -> dict[str, Array]:
    random = np.random.default_rng([seed, rows])
    return {"x": random.standard_normal((rows, 3, 4)).astype(np.float32), "word": random.integers(0, 7, rows)}


@pytest.fixture(scope="module")
def model() -> onnxla.CompiledModel:
    return onnxla.compile(two_outputs(), dims={"batch": [1, 4, 9]}, options={"pad_to_bucket": "batch"})


@pytest.fixture(scope="module")
def reference() -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(two_outputs().SerializeToString())


def require_close(ours: Sequence[Array], theirs: Sequence[Array]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype and a.flags.c_contiguous
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_every_size_up_to_the_largest_runs(
    model: onnxla.CompiledModel, reference: onnxruntime.InferenceSession
) -> None:
    for rows in (5, 1, 2, 9, 3, 4, 6, 7, 8):
        require_close(model.run(None, feeds(rows)), reference.run(None, feeds(rows)))
    assert sorted(p.padding.rows for p in model.programs if p.padding) == [4, 9]


def test_the_rows_are_those_of_the_padded_program_whatever_is_beside_them(model: onnxla.CompiledModel) -> None:
    """Bit for bit."""
    for rows in (2, 3, 5, 8):
        bucket = 4 if rows < 4 else 9
        for seed in range(3):
            whole = feeds(bucket, seed)
            whole["x"][rows:] = [np.nan, np.inf, 1e30][seed]
            kept = {name: array[:rows] for name, array in whole.items()}
            p, t = model.run(None, kept)
            full_p, full_t = model.run(None, whole)
            assert p.tobytes() == full_p[:rows].tobytes()
            assert t.tobytes() == np.ascontiguousarray(full_t[:, :rows]).tobytes()


def test_sizes_beyond_the_largest_and_no_rows_are_refused(model: onnxla.CompiledModel) -> None:
    for rows in (0, 10):
        with pytest.raises(InputError, match=rf"no code for x \[{rows}, 3, 4\]") as caught:
            model.run(None, feeds(rows))
        assert "x [9, 3, 4], word [9], padded from batch=5 to 8" in str(caught.value)
    with pytest.raises(InputError, match="no code for"):
        model.run(None, {"x": feeds(3)["x"], "word": feeds(2)["word"]})


def test_out_receives_the_kept_rows(model: onnxla.CompiledModel) -> None:
    expected = model.run(None, feeds(3))
    p, t = np.empty((3, 5), np.float32), np.empty((4, 3, 3), np.float32).transpose(1, 2, 0)
    results = model.run(None, feeds(3), out=[p, t])
    assert results[0] is p and results[1] is t
    np.testing.assert_array_equal(p, expected[0])
    np.testing.assert_array_equal(t, expected[1])
    (only,) = model.run(["t"], feeds(3), out={"t": t})
    assert only is t
    with pytest.raises(InputError, match=r"p: out has shape \[4, 5\], the model gives \[3, 5\]"):
        model.run(None, feeds(3), out={"p": np.empty((4, 5), np.float32)})
    with pytest.raises(InputError, match="p: out must be an array, not list"):
        model.run(None, feeds(3), out={"p": [1.0]})
    memory = np.empty(50, np.float32)
    with pytest.raises(InputError, match="p, t: their out arrays overlap"):
        model.run(None, feeds(3), out=[memory[:15].reshape(3, 5), memory[14:50].reshape(3, 3, 4)])


def test_saved_and_loaded(model: onnxla.CompiledModel, tmp_path: Path) -> None:
    model.save(tmp_path / "m.onnxla")
    loaded = onnxla.load_compiled(tmp_path / "m.onnxla")
    for rows in (2, 7):
        for ours, again in zip(model.run(None, feeds(rows)), loaded.run(None, feeds(rows)), strict=True):
            np.testing.assert_array_equal(ours, again)
    loaded.save(tmp_path / "again.onnxla")
    assert (tmp_path / "again.onnxla").read_bytes() == (tmp_path / "m.onnxla").read_bytes()
    assert {p.padding for p in read_artifact(tmp_path / "m.onnxla").programs if p.padding is None} == {None}


def test_padding_that_does_not_fit_its_program_is_refused(model: onnxla.CompiledModel) -> None:
    program = next(p for p in model.programs if p.padding is not None and p.padding.rows == 9)
    good = program.padding
    assert good is not None and good.fits(program.inputs, program.outputs)
    stored = good.to_json()
    changes: list[dict[str, object]] = [
        {"rows": 8},
        {"least": 0},
        {"least": 10},
        {"inputs": {}},
        {"inputs": {"z": 0}},
        {"inputs": {"x": 1}},
        {"inputs": {"x": 7}},
        {"outputs": [None]},
        {"outputs": [[0, 1, 2], None]},
        {"outputs": [[9, 1, 1], None]},
    ]
    for change in changes:
        assert not Padding.from_json({**stored, **change}).fits(program.inputs, program.outputs), change
    changes = [{"rows": "9"}, {"least": -1}, {"inputs": {"x": True}}, {"outputs": [[0, 1, 1.5]]}, {"name": 3}]
    for change in changes:
        with pytest.raises(ArtifactError, match="padding that is no padding"):
            Padding.from_json({**stored, **change})


def test_threads_of_different_sizes_at_once(
    model: onnxla.CompiledModel, reference: onnxruntime.InferenceSession
) -> None:
    expected = {rows: reference.run(None, feeds(rows)) for rows in range(1, 10)}
    failures: list[object] = []

    def work(first: int) -> None:
        try:
            for k in range(60):
                rows = 1 + (first + k) % 9
                require_close(model.run(None, feeds(rows)), expected[rows])
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_a_single_size_takes_everything_below(tmp_path: Path, reference: onnxruntime.InferenceSession) -> None:
    single = onnxla.compile(two_outputs(), dims={"batch": 3}, options={"pad_to_bucket": "batch"})
    assert [t.shape for t in single.get_inputs()] == [["batch", 3, 4], ["batch"]]
    single.save(tmp_path / "m.onnxla")
    for model in (single, onnxla.load_compiled(tmp_path / "m.onnxla")):
        for rows in (1, 3, 2):
            require_close(model.run(None, feeds(rows)), reference.run(None, feeds(rows)))
        with pytest.raises(InputError, match=r"no code for x \[4, 3, 4\]"):
            model.run(None, feeds(4))


def test_a_profile_of_a_padded_run(model: onnxla.CompiledModel) -> None:
    assert model.profile(feeds(3)).seconds > 0


@pytest.mark.parametrize(
    ("dims", "options", "message"),
    [
        ({}, {"pad_to_bucket": "batch"}, "give it sizes, such as dims={'batch': \\[1, 8, 32\\]}"),
        ({"batch": [1, 4]}, {"pad_to_bucket": "rows"}, "give it sizes, such as dims={'rows'"),
    ],
)
def test_wrong_usage(dims: dict[str, list[int]], options: dict[str, str], message: str) -> None:
    shapes = {} if dims else {"x": (2, 3, 4), "word": (2,)}
    with pytest.raises(InputError, match=message):
        onnxla.compile(two_outputs(), dims=dims, shapes=shapes, options=options)


def combining(model: ModelProto, sizes: list[int]) -> dict[int, bool | None]:
    """By rows, whether runs may be put together; None without a proof."""
    compiled = onnxla.compile(model, dims={"batch": sizes}, options={"pad_to_bucket": "batch"})
    programs = {p.inputs[0].shape[0]: p.padding for p in compiled.programs}
    return {rows: None if padding is None else padding.combines for rows, padding in programs.items()}


def rows_model(*nodes: tuple[str, list[str], str, dict[str, Any]], rank: int = 1) -> ModelProto:
    """x [batch, 3] -> y, with c [1, 3] and k [5] constants."""
    graph = helper.make_graph(
        [helper.make_node(op, inputs, [output], **attributes) for op, inputs, output, attributes in nodes],
        "rows",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [f"d{k}" for k in range(rank)])],
        [
            numpy_helper.from_array(WEIGHTS[:1, :3], "c"),
            numpy_helper.from_array(np.array([1]), "axis"),
            numpy_helper.from_array(np.array(1), "one"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def test_runs_are_put_together_where_all_sizes_give_the_same_rows() -> None:
    assert combining(two_outputs(), [1, 4, 9]) == {1: None, 4: True, 9: True}
    # with one row c is not repeated
    repeating = rows_model(("Add", ["x", "c"], "a", {}), ("ReduceSum", ["a", "axis"], "y", {"keepdims": 0}))
    assert combining(repeating, [1, 2]) == {1: None, 2: True}
    assert combining(repeating, [1, 2, 5]) == {1: None, 2: True, 5: True}


def test_runs_are_not_put_together_where_one_row_is_something_else() -> None:
    """Squeeze without axes takes the rows away where there is one; a shape decides what is computed."""
    squeezed = rows_model(("Relu", ["x"], "r", {}), ("Squeeze", ["r"], "y", {}), rank=2)
    assert combining(squeezed, [1, 3]) == {1: None, 3: False}
    choosing = rows_model(
        ("Shape", ["x"], "s", {"start": 0, "end": 1}),
        ("Equal", ["s", "axis"], "is_one", {}),
        ("Cast", ["is_one"], "n", {"to": TensorProto.FLOAT}),
        ("Sin", ["x"], "sin", {}),
        ("Cos", ["x"], "cos", {}),
        ("Where", ["is_one", "sin", "cos"], "y", {}),
        rank=2,
    )
    assert combining(choosing, [1, 2]) == {1: None, 2: None}
