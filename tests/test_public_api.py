"""The whole way through the public names: compile, run, save, load; and what a user gets when something is wrong."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import onnxla
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Module
from onnxla.hlo.parser import parse_module
from onnxla.hlo.printer import print_module
from onnxla.hlo.types import F32, Array, TensorType

ROOT = Path(__file__).parents[1]


def model_of(
    nodes: list[onnx.NodeProto], inputs: dict[str, tuple[int, list[str | int | None]]], outputs: list[str]
) -> ModelProto:
    """A model whose outputs have the type of the first input."""
    values = [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()]
    kind = next(iter(inputs.values()))[0]
    results = [helper.make_tensor_value_info(name, kind, None) for name in outputs]
    graph = helper.make_graph(nodes, "g", values, results)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def multiply_add(*shape: str | int) -> ModelProto:
    """y = a*b + c."""
    nodes = [helper.make_node("Mul", ["a", "b"], ["m"]), helper.make_node("Add", ["m", "c"], ["y"])]
    return model_of(nodes, {name: (TensorProto.FLOAT, list(shape)) for name in "abc"}, ["y"])


def reshape_by_input() -> ModelProto:
    """y = reshape(x, target): the value of `target` decides the shape."""
    nodes = [helper.make_node("Reshape", ["x", "target"], ["r"]), helper.make_node("Neg", ["r"], ["y"])]
    return model_of(nodes, {"x": (TensorProto.FLOAT, [2, 6]), "target": (TensorProto.INT64, [2])}, ["y"])


def arrays(*shape: int) -> dict[str, Array]:
    random = np.random.default_rng(len(shape))
    return {name: random.standard_normal(shape).astype(np.float32) for name in "abc"}


def value_of(feeds: dict[str, Array]) -> Array:
    return np.asarray(feeds["a"] * feeds["b"] + feeds["c"])


def test_every_public_name_is_there() -> None:
    for name in onnxla.__all__:
        assert getattr(onnxla, name) is not None
        assert name in dir(onnxla)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = onnxla.nonsense


def test_strings_are_given_as_text_or_as_bytes_of_it() -> None:
    model = model_of([helper.make_node("Identity", ["x"], ["y"])], {"x": (TensorProto.STRING, ["n"])}, ["y"])
    given = (np.array(["é", "b"], object), np.array(["é".encode(), "b"], object), np.array(["é".encode(), b"b"]))
    for value in given:
        assert onnxla.compile(model).run(None, {"x": value})[0].tolist() == ["é", "b"]
        fixed = onnxla.compile(model, constants={"x": value})
        assert fixed.run(None, {})[0].tolist() == ["é", "b"]
        for again in given:
            assert fixed.run(None, {"x": again})[0].tolist() == ["é", "b"]
    for constants in ({}, {"x": np.array([b"\xff"], object)}):
        with pytest.raises(onnxla.InputError, match="x: bytes that are no text in UTF-8"):
            onnxla.compile(model, constants=constants).run(None, {"x": np.array([b"\xff"], object)})


@pytest.mark.parametrize("shape", [(3, 5), (1,), (), (0, 4), (7, 1, 33)], ids=str)
def test_compile_and_run(shape: tuple[int, ...]) -> None:
    model = onnxla.compile(multiply_add(*shape))
    feeds = arrays(*shape)
    (y,) = model.run(None, feeds)
    assert y.shape == shape
    np.testing.assert_allclose(y, value_of(feeds), rtol=1e-6, atol=1e-6)


def test_a_path_bytes_and_a_proto_are_the_same_model(tmp_path: Path) -> None:
    proto = multiply_add(2, 3)
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    feeds = arrays(2, 3)
    results = [onnxla.compile(source).run(None, feeds)[0] for source in (path, str(path), path.read_bytes(), proto)]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_save_and_load(tmp_path: Path) -> None:
    model = onnxla.compile(multiply_add(4, 9))
    model.save(tmp_path / "model.onnxla")
    loaded = onnxla.load_compiled(tmp_path / "model.onnxla")
    feeds = arrays(4, 9)
    np.testing.assert_array_equal(loaded.run(None, feeds)[0], model.run(None, feeds)[0])
    assert loaded.get_inputs() == model.get_inputs()
    assert loaded.hlo() == model.hlo()
    assert loaded.about == model.about


def test_the_same_model_gives_the_same_artifact(tmp_path: Path) -> None:
    for name in ("first", "second"):
        onnxla.compile(multiply_add(4, 9)).save(tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_loading_needs_neither_onnx_nor_the_compiler(tmp_path: Path) -> None:
    path = tmp_path / "model.onnxla"
    onnxla.compile(multiply_add(2, 3)).save(path)
    program = f"""
import sys
import numpy as np
import onnxla
y = onnxla.load_compiled({str(path)!r})(*[np.ones((2, 3), np.float32)] * 3)
assert (y == 2).all()
heavy = ("onnx", "onnxruntime", "ml_dtypes", "onnxla.hlo", "onnxla.frontends", "onnxla.passes", "onnxla.codegen")
assert not [name for name in heavy if name in sys.modules], sorted(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


def test_symbolic_sizes_are_settled_by_the_first_run() -> None:
    model = onnxla.compile(multiply_add("batch", 3))
    assert model.get_inputs()[0].shape == ["batch", 3]
    assert not model.programs
    for batch in (2, 5, 2):
        feeds = arrays(batch, 3)
        np.testing.assert_allclose(model.run(None, feeds)[0], value_of(feeds), rtol=1e-6, atol=1e-6)
    assert sorted(p.inputs[0].shape for p in model.programs) == [(2, 3), (5, 3)]


def test_sizes_given_when_compiling() -> None:
    for model in (
        onnxla.compile(multiply_add("batch", 3), dims={"batch": 4}),
        onnxla.compile(multiply_add("batch", 3), shapes={"a": (4, 3), "b": (4, 3), "c": (4, 3)}),
        onnxla.compile(multiply_add("batch", 3), input_shapes={"a": (4, 3), "b": (4, 3), "c": (4, 3)}),
    ):
        assert model.get_inputs()[0].shape == [4, 3]
        assert model.get_outputs()[0].shape == [4, 3]
        with pytest.raises(onnxla.InputError) as caught:
            model.run(None, arrays(5, 3))
        wrong = [f"{name}: shape [5, 3], the model takes {name} tensor(float)[4,3]" for name in "abc"]
        assert str(caught.value).splitlines() == wrong


def test_several_sizes_in_one_artifact(tmp_path: Path) -> None:
    model = onnxla.compile(multiply_add("batch", "width"), dims={"batch": [1, 8], "width": 3})
    assert model.get_inputs()[0].shape == ["batch", 3]
    model.save(tmp_path / "model.onnxla")
    loaded = onnxla.load_compiled(tmp_path / "model.onnxla")
    for batch in (1, 8):
        feeds = arrays(batch, 3)
        np.testing.assert_allclose(loaded.run(None, feeds)[0], value_of(feeds), rtol=1e-6, atol=1e-6)
    with pytest.raises(onnxla.InputError, match="there is code for"):
        loaded.run(None, arrays(2, 3))


def test_a_value_that_decides_a_shape_specialises() -> None:
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    model = onnxla.compile(reshape_by_input())
    for target in ([3, 4], [12, 1], [3, 4]):
        y = model(x, np.array(target, np.int64))
        np.testing.assert_array_equal(y, -x.reshape(target))
    assert len(model.programs) == 2


def test_a_value_given_when_compiling_is_fixed(tmp_path: Path) -> None:
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    target = np.array([4, 3], np.int64)
    model = onnxla.compile(reshape_by_input(), constants={"target": target})
    model.save(tmp_path / "model.onnxla")
    for one in (model, onnxla.load_compiled(tmp_path / "model.onnxla")):
        assert [t.name for t in one.get_inputs()] == ["x"]
        np.testing.assert_array_equal(one(x), -x.reshape(4, 3))
        np.testing.assert_array_equal(one(x, target=target), -x.reshape(4, 3))
        with pytest.raises(onnxla.InputError, match=r"target: the model was compiled for the value \[4 3\]"):
            one(x, target=np.array([3, 4], np.int64))


def test_a_value_in_the_model_can_be_replaced_when_compiling() -> None:
    proto = multiply_add(2)
    proto.graph.initializer.append(numpy_helper.from_array(np.array([10, 20], np.float32), "c"))
    ones = np.ones(2, np.float32)
    model = onnxla.compile(proto)
    np.testing.assert_array_equal(model(ones, ones), [11, 21])
    with pytest.raises(onnxla.InputError, match="c has a value in the model.*give it in constants="):
        model.run(None, {"a": ones, "b": ones, "c": ones})
    replaced = onnxla.compile(proto, constants={"c": np.array([5, 6], np.float32)})
    np.testing.assert_array_equal(replaced(ones, ones), [6, 7])


def test_the_number_of_threads_does_not_change_the_result() -> None:
    feeds = arrays(64, 1000)
    results = [onnxla.compile(multiply_add(64, 1000), num_threads=n).run(None, feeds)[0] for n in (1, 2, 7)]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_the_report_and_progress() -> None:
    seen: list[tuple[str, float]] = []
    model = onnxla.compile(multiply_add(4, 4), progress=lambda stage, part: seen.append((stage, part)))
    assert model.report is not None
    assert model.report.nodes == 2
    assert model.report.kernels == 1
    assert list(model.report.seconds) == ["import", "passes", "codegen"]
    assert seen[0] == ("import", 0.0) and seen[-1] == ("codegen", 1.0)
    assert [part for _, part in seen] == sorted(part for _, part in seen)
    assert "2 nodes" in str(model.report)


def test_the_cache_saves_the_second_compile(tmp_path: Path) -> None:
    options = {"cache_dir": str(tmp_path / "cache")}
    feeds = arrays(4, 4)
    results = []
    for from_cache in (False, True):
        model = onnxla.compile(multiply_add(4, 4), options=options)
        assert model.report is not None and model.report.from_cache is from_cache
        results.append(model.run(None, feeds)[0])
    np.testing.assert_array_equal(results[0], results[1])
    other = onnxla.compile(multiply_add(4, 4), options={**options, "opt_level": 1})
    assert other.report is not None and not other.report.from_cache


PAIR = """
HloModule pair
ENTRY %main {
  %x = f32[2,3]{1,0} parameter(0)
  %y = f32[2,3]{1,0} parameter(1)
  %sum = f32[2,3]{1,0} add(%x, %y)
  %difference = f32[2,3]{1,0} subtract(%x, %y)
  ROOT %both = (f32[2,3]{1,0}, f32[2,3]{1,0}) tuple(%sum, %difference)
}
"""


def test_an_hlo_module_compiles() -> None:
    module = parse_module(PAIR)
    before = print_module(module)
    model = onnxla.compile(module)
    assert [t.name for t in model.get_inputs()] == ["x", "y"]
    assert [t.name for t in model.get_outputs()] == ["sum", "difference"]
    x, y = (np.random.default_rng(k).standard_normal((2, 3)).astype(np.float32) for k in range(2))
    total, difference = model(x, y)
    np.testing.assert_array_equal(total, x + y)
    np.testing.assert_array_equal(difference, x - y)
    assert print_module(module) == before
    with pytest.raises(onnxla.InputError, match="the shapes of an HLO module are in it"):
        onnxla.compile(module, dims={"batch": 1})


def test_a_file_of_hlo_text_compiles(tmp_path: Path) -> None:
    path = tmp_path / "pair.hlo"
    path.write_text(PAIR)
    ones = np.ones((2, 3), np.float32)
    total, difference = onnxla.compile(path)(ones, ones)
    assert (total == 2).all() and (difference == 0).all()
    path.write_text("HloModule")
    with pytest.raises(onnxla.HloError):
        onnxla.compile(path)
    with pytest.raises(onnxla.ModelFormatError, match="cannot be read as HLO text"):
        onnxla.compile(tmp_path / "absent.hlo")


def test_an_hlo_module_with_one_result_and_weights() -> None:
    b = Builder("main")
    x = b.parameter(TensorType(F32, (4, 50)), "x")
    weights = np.arange(200, dtype=np.float32).reshape(4, 50)
    module = Module("scale", b.build(b.multiply(x, b.constant(weights))))
    value = np.full((4, 50), 2, np.float32)
    np.testing.assert_array_equal(onnxla.compile(module)(value), weights * 2)


def test_texts_of_the_stages() -> None:
    model = onnxla.compile(multiply_add(4, 4))
    assert model.stages()[:2] == ["hlo", "optimized_hlo"]
    assert "multiply(" in model.hlo("hlo")
    assert "fusion(" in model.hlo("optimized_hlo")
    assert "launch" in model.hlo("plan")
    assert model.hlo("optimized_hlo_dot").startswith("digraph")


def test_profile_names_the_nodes_of_the_model() -> None:
    profile = onnxla.compile(multiply_add(4, 4)).profile(arrays(4, 4))
    assert any("(Add" in row.step.source for row in profile.rows)


def test_limits_are_adjustable() -> None:
    with pytest.raises(onnxla.ResourceLimitError, match="the model has 2 nodes; the limit is 1"):
        onnxla.compile(multiply_add(4, 4), limits=onnxla.Limits(nodes=1))


def perceptron(features: int) -> ModelProto:
    """y = relu(x @ w) @ v, with random weights: kernels that run on several threads."""
    random = np.random.default_rng(features)
    weights = [
        numpy_helper.from_array(random.standard_normal(shape).astype(np.float32), name)
        for name, shape in (("w", (features, 256)), ("v", (256, 64)))
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "v"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [96, features])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [96, 64])
    graph = helper.make_graph(nodes, "perceptron", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def test_many_threads_on_several_models_give_what_one_thread_gives() -> None:
    models = [onnxla.compile(perceptron(features), num_threads=3) for features in (64, 128)]
    cases = []
    for k in range(8):
        model = models[k % 2]
        shape = (96, 64 << (k % 2))
        x = np.random.default_rng(k).standard_normal(shape).astype(np.float32)
        cases.append((model, x, model(x)))

    def same(case: tuple[onnxla.CompiledModel, Array, Array]) -> bool:
        model, x, expected = case
        return all(np.array_equal(model(x), expected) for _ in range(100))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(same, cases))


def test_dumps(tmp_path: Path) -> None:
    onnxla.compile(multiply_add(4, 4), options={"dump_to": str(tmp_path / "dump")})
    names = {p.name for p in (tmp_path / "dump").iterdir()}
    assert {
        "00-input.hlo",
        "kernels.txt",
        "plan.txt",
        "memory.txt",
        "graph.dot",
        "resources.txt",
        "page.html",
        "code-00.ll",
        "code-00.s",
    } <= names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"options": {"speed": 11}}, "no option speed; the options are"),
        ({"options": {"opt_level": 9}}, "opt_level=9: choose 0, 1, 2 or 3"),
        ({"num_threads": 0}, "num_threads=0: at least 1"),
        ({"dims": {"batch": []}}, "no sizes given for dimension batch"),
        ({"shapes": {}, "input_shapes": {}}, "one argument under two names"),
    ],
    ids=lambda value: "" if isinstance(value, str) else str(value),
)
def test_wrong_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(onnxla.InputError, match=message):
        onnxla.compile(multiply_add("batch", 3), **arguments)  # type: ignore[arg-type]


def test_a_target_that_is_not_there() -> None:
    with pytest.raises(onnxla.DeviceError, match="no target 'abacus'"):
        onnxla.compile(multiply_add(2), target="abacus")
    with pytest.raises(onnxla.DeviceError, match="no CPU target 'i4004'"):
        onnxla.compile(multiply_add(2), options={"target_cpu": "i4004"})


def test_all_problems_of_a_model_are_reported_at_once() -> None:
    nodes = [helper.make_node("NoSuchOp", ["a"], ["m"]), helper.make_node("NoOtherOp", ["b"], ["y"])]
    broken = model_of(nodes, {name: (TensorProto.FLOAT, [2]) for name in "ab"}, ["m", "y"])
    with pytest.raises(onnxla.CompileError) as caught:
        onnxla.compile(broken)
    assert "NoSuchOp" in str(caught.value) and "NoOtherOp" in str(caught.value)


def test_bytes_that_are_no_model() -> None:
    with pytest.raises(onnxla.ModelFormatError):
        onnxla.compile(b"not a model")
    with pytest.raises(onnxla.ModelFormatError):
        onnxla.compile("no/such/file.onnx")


def test_code_for_an_older_cpu_is_made_and_runs(tmp_path: Path) -> None:
    model = onnxla.compile(multiply_add(3, 5), options={"target_cpu": "x86-64-v2"})
    if "x86" not in model.programs[0].triple:
        pytest.skip("x86 only")
    assert "avx2" not in model.programs[0].features
    feeds = arrays(3, 5)
    np.testing.assert_allclose(model.run(None, feeds)[0], value_of(feeds), rtol=1e-6, atol=1e-6)


def test_code_for_another_machine_is_saved_but_not_run(tmp_path: Path) -> None:
    model = onnxla.compile(multiply_add(3, 5), options={"target_cpu": "generic-aarch64"})
    if "x86" not in onnxla.compile(multiply_add(1)).programs[0].triple:
        pytest.skip("x86 only")
    model.save(tmp_path / "model.onnxla")
    for attempt in (
        lambda: model.run(None, arrays(3, 5)),
        lambda: onnxla.load_compiled(tmp_path / "model.onnxla"),
    ):
        with pytest.raises(onnxla.ArtifactError, match="compiled for aarch64"):
            attempt()


KINDS = "FLOAT DOUBLE FLOAT16 BFLOAT16 INT8 UINT8 INT16 UINT16 INT32 UINT32 INT64 UINT64 BOOL INT4 UINT4 FLOAT8E4M3FN"


@pytest.mark.parametrize("kind", KINDS.split())
def test_every_element_type_goes_in_and_out(kind: str, tmp_path: Path) -> None:
    code = getattr(TensorProto, kind)
    node = helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])
    model = onnxla.compile(model_of([node], {"x": (code, [2, 3])}, ["y"]))
    model.save(tmp_path / "model.onnxla")
    x = np.array([[0, 1, 1], [0, 1, 0]]).astype(helper.tensor_dtype_to_np_dtype(code))
    for one in (model, onnxla.load_compiled(tmp_path / "model.onnxla")):
        y = one(x)
        assert y.dtype == x.dtype
        np.testing.assert_array_equal(y, x.T)
