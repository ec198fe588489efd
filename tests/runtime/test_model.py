"""CompiledModel over hand-written programs: names, specialisations, saving and loading."""

import threading
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import onnxla
from onnxla.errors import ArtifactError, InputError, ShapeError
from onnxla.runtime.loading import load_compiled
from onnxla.runtime.model import CompiledModel
from onnxla.runtime.program import Program
from onnxla.runtime.signature import ModelSignature, ModelTensor, model_tensor
from onnxla.runtime.tensors import Array
from tests.runtime.hand_written import expected, scale_and_add

ROWS = 4
X = np.arange(ROWS * 16, dtype=np.float32).reshape(ROWS, 16)
OPEN = ModelSignature(
    (ModelTensor("x", "tensor(float)", ["rows", 16]),), (ModelTensor("y", "tensor(float)", ["rows", 16]),)
)


def static_model() -> CompiledModel:
    program = scale_and_add(ROWS)
    return CompiledModel(
        ModelSignature((model_tensor(program.inputs[0]),), (model_tensor(program.outputs[0]),)), [program]
    )


class Compiler:
    """Compiles for any number of rows, and counts."""

    def __init__(self) -> None:
        self.compiled: list[int] = []

    def __call__(self, arrays: Mapping[str, Array]) -> Program:
        rows = arrays["x"].shape[0]
        if rows == 13:
            raise ShapeError("13 rows do not fit")
        self.compiled.append(rows)
        return scale_and_add(rows)


def rows_of(count: int) -> Array:
    return np.full((count, 16), count, np.float32)


def test_run_as_in_onnxruntime() -> None:
    model = static_model()
    (x,), (y,) = model.get_inputs(), model.get_outputs()
    assert (x.name, x.shape, x.type) == ("x", [ROWS, 16], "tensor(float)")
    assert (y.name, y.shape, y.type) == ("y", [ROWS, 16], "tensor(float)")
    for names in (None, ["y"]):
        (result,) = model.run(names, {"x": X})
        np.testing.assert_array_equal(result, expected(X, ROWS))
    assert model.run([], {"x": X}) == []
    assert len(model.run(["y", "y"], {"x": X})) == 2


def test_call_with_arrays() -> None:
    model = static_model()
    np.testing.assert_array_equal(model(X), expected(X, ROWS))
    np.testing.assert_array_equal(model(x=X), expected(X, ROWS))


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({}, "missing inputs: x\nthe model takes x tensor(float)[4,16]"),
        ({"z": X}, "missing inputs: x\nnot inputs of the model: z\nthe model takes x tensor(float)[4,16]"),
        ({"x": X, "z": X}, "not inputs of the model: z\nthe model takes x tensor(float)[4,16]"),
    ],
)
def test_wrong_names_are_refused(feeds: dict[str, Array], message: str) -> None:
    with pytest.raises(InputError) as caught:
        static_model().run(None, feeds)
    assert str(caught.value) == message


def test_wrong_calls_are_refused() -> None:
    model = static_model()
    with pytest.raises(InputError, match="2 arrays for 1 inputs: x"):
        model(X, X)
    with pytest.raises(InputError, match="given by position and by name: x"):
        model(X, x=X)
    with pytest.raises(InputError, match="not outputs of the model: z; it gives y"):
        model.run(["z"], {"x": X})
    with pytest.raises(InputError, match="not outputs of the model: z; it gives y"):
        model.run(None, {"x": X}, out={"z": X})
    with pytest.raises(InputError, match="2 arrays in out for 1 results"):
        model.run(None, {"x": X}, out=[X, X])
    with pytest.raises(InputError, match="num_threads=0"):
        CompiledModel(OPEN, [], num_threads=0)


def test_out_by_name_and_by_position() -> None:
    model = static_model()
    for out in ({"y": np.zeros_like(X)}, [np.zeros_like(X)]):
        (result,) = model.run(None, {"x": X}, out=out)
        assert result is (out["y"] if isinstance(out, dict) else out[0])
        np.testing.assert_array_equal(result, expected(X, ROWS))


def test_out_arrays_that_overlap_are_refused() -> None:
    """One result would be lost."""
    node = helper.make_node("Split", ["x"], ["a", "b"], num_outputs=2)
    tensors = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [n]) for name, n in (("x", 4), ("a", 2), ("b", 2))
    ]
    graph = helper.make_graph([node], "halves", tensors[:1], tensors[1:])
    model = onnxla.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))
    memory = np.zeros(4, np.float32)
    with pytest.raises(InputError, match="a, b: their out arrays overlap"):
        model.run(None, {"x": memory}, out=[memory[:2], memory[1:3]])
    with pytest.raises(InputError, match="a, b: their out arrays overlap"):
        model.run(None, {"x": memory}, out=[memory[::2], memory[2::-1][::2]])
    interleaved = model.run(None, {"x": np.arange(4, dtype=np.float32)}, out=[memory[::2], memory[1::2]])
    np.testing.assert_array_equal(interleaved, [[0, 1], [2, 3]])
    np.testing.assert_array_equal(model.run(None, {"x": np.ones(4, np.float32)}, out=[memory[:2], memory[2:]]), 1)


def test_open_shapes_compile_at_first_run() -> None:
    compiler = Compiler()
    model = CompiledModel(OPEN, [], specialise=compiler)
    for count in (3, 5, 3, 5, 3):
        np.testing.assert_array_equal(model(rows_of(count)), expected(rows_of(count), count))
    assert compiler.compiled == [3, 5]


def test_lists_and_other_byte_orders_find_their_specialisation() -> None:
    compiler = Compiler()
    model = CompiledModel(OPEN, [], specialise=compiler)
    for value in (rows_of(3), rows_of(3).tolist(), rows_of(3).astype(">f4"), np.asfortranarray(rows_of(3))):
        np.testing.assert_array_equal(model(value), expected(rows_of(3), 3))
    assert compiler.compiled == [3]


def test_specialisations_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNXLA_SPECIALISATIONS", "2")
    compiler = Compiler()
    model = CompiledModel(OPEN, [], specialise=compiler)
    for count in (1, 2, 1, 3, 1, 2):
        model(rows_of(count))
    assert compiler.compiled == [1, 2, 3, 2]
    assert [p.inputs[0].shape[0] for p in model.programs] == [2, 1]


def test_an_error_of_the_compiler_reaches_the_caller_and_nothing_is_kept() -> None:
    model = CompiledModel(OPEN, [], specialise=Compiler())
    with pytest.raises(ShapeError, match="13 rows"):
        model(rows_of(13))
    np.testing.assert_array_equal(model(rows_of(2)), expected(rows_of(2), 2))


def test_declared_sizes_are_checked_before_compiling() -> None:
    compiler = Compiler()
    model = CompiledModel(OPEN, [], specialise=compiler)
    with pytest.raises(InputError, match=r"x: shape \[2, 15\], the model takes x tensor\(float\)\[rows,16\]"):
        model(np.zeros((2, 15), np.float32))
    with pytest.raises(InputError, match="x: dtype int32"):
        model(np.zeros((2, 16), np.int32))
    assert not compiler.compiled


def test_many_threads_compile_each_shape_once() -> None:
    compiler = Compiler()
    model = CompiledModel(OPEN, [], specialise=compiler)
    failures = []

    def work(first: int) -> None:
        for k in range(40):
            count = 1 + (first + k) % 5
            if not np.array_equal(model(rows_of(count)), expected(rows_of(count), count)):
                failures.append(count)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures
    assert sorted(compiler.compiled) == [1, 2, 3, 4, 5]


def test_values_that_decide_the_code_choose_the_specialisation() -> None:
    signature = ModelSignature((*OPEN.inputs, ModelTensor("k", "tensor(int64)", [])), OPEN.outputs)
    compiled = []

    def specialise(arrays: Mapping[str, Array]) -> Program:
        compiled.append(int(arrays["k"]))
        rows = arrays["x"].shape[0]
        weights = np.full(rows * 16, arrays["k"], np.float32)
        return scale_and_add(rows, weights, constants={"k": arrays["k"].copy()})

    model = CompiledModel(signature, [], specialise=specialise)
    for k in (7, 9, 7):
        np.testing.assert_array_equal(model(X, np.int64(k)), 2 * X + k)
    assert compiled == [7, 9]


def test_save_and_load_with_a_dispatcher(tmp_path: Path) -> None:
    model = CompiledModel(OPEN, [scale_and_add(n) for n in (8, 1, 3)], about={"onnxla": "test"})
    size = model.save(tmp_path / "model.onnxla")
    assert size == (tmp_path / "model.onnxla").stat().st_size
    loaded = load_compiled(tmp_path / "model.onnxla")
    assert loaded.get_inputs() == model.get_inputs()
    assert loaded.about == {"onnxla": "test"}
    for count in (1, 3, 8, 1):
        np.testing.assert_array_equal(loaded(rows_of(count)), expected(rows_of(count), count))
    with pytest.raises(InputError) as caught:
        loaded(rows_of(2))
    assert str(caught.value).splitlines() == [
        "no code for x [2, 16]",
        "  there is code for x [1, 16]",
        "  there is code for x [3, 16]",
        "  there is code for x [8, 16]",
    ]


def test_the_order_of_use_does_not_change_the_artifact(tmp_path: Path) -> None:
    model = CompiledModel(OPEN, [scale_and_add(n) for n in (1, 2, 3)])
    model.save(tmp_path / "first")
    model(rows_of(3))
    model(rows_of(2))
    model.save(tmp_path / "second")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_a_loaded_model_can_be_saved_over_itself(tmp_path: Path) -> None:
    path = tmp_path / "model.onnxla"
    static_model().save(path)
    loaded = load_compiled(path)
    loaded.save(path)
    np.testing.assert_array_equal(loaded(X), expected(X, ROWS))
    np.testing.assert_array_equal(load_compiled(path)(X), expected(X, ROWS))


def test_nothing_to_save_yet(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="nothing is compiled yet"):
        CompiledModel(OPEN, [], specialise=Compiler()).save(tmp_path / "model.onnxla")


def test_profile_names_every_step() -> None:
    profile = static_model().profile({"x": X})
    assert [row.step.source for row in profile.rows] == ["/Mul (Mul)", "/Add (Add)"]
    assert profile.seconds > 0
    assert "double /Mul (Mul)" in str(profile)


def test_memory_and_texts() -> None:
    model = static_model()
    memory = model.memory()
    assert (memory.arena, memory.weights, memory.inputs, memory.outputs) == (256, 256, 256, 256)
    assert model.hlo() == "HloModule hand_written\n"
    assert model.stages() == ["hlo"]
    with pytest.raises(InputError, match="no stage 'nonsense'; there are hlo"):
        model.hlo("nonsense")


def test_arenas_can_be_given_back() -> None:
    model = static_model()
    model(X)
    model.release_memory()
    np.testing.assert_array_equal(model(X), expected(X, ROWS))
