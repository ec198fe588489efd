"""How many launches things take: a layer of BERT seven, whatever the factors of its products are."""

from collections.abc import Iterator

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import onnxla
from onnxla.codegen.gpu.schedule import lower
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.plan import Launch, Plan, Space
from onnxla.codegen.planner import make_plan
from onnxla.codegen.weights import WeightsImage
from onnxla.compiler.onnx_source import OnnxSource
from onnxla.config import CompileOptions, Limits
from onnxla.frontends.onnx.model_file import read_model
from onnxla.passes.pipelines import optimize
from onnxla.runtime.device_executable import DeviceExecutable
from onnxla.runtime.tensors import Array
from tests.gpu.devices import BOTH, device_named
from tests.gpu.test_models import feeds_of, model_of, weight

TOKENS, WIDTH, HEADS, INNER = 18, 32, 2, 48


def bert(layers: int) -> onnx.ModelProto:
    """Layers as exporters write them: three products, attention, two norms, GELU spelled out."""
    weights: dict[str, Array] = {
        "split": np.array([1, TOKENS, HEADS, WIDTH // HEADS]),
        "join": np.array([1, TOKENS, WIDTH]),
        **{name: np.array(value, np.float32) for name, value in (("d", 4), ("r", 2**0.5), ("o", 1), ("h", 0.5))},
    }

    def dense(x: str, name: str, rows: int, columns: int) -> Iterator[onnx.NodeProto]:
        weights.update({f"{name}w": weight(columns, rows).T.copy(), f"{name}b": weight(columns)})
        yield helper.make_node("MatMul", [x, f"{name}w"], [f"{name}m"])
        yield helper.make_node("Add", [f"{name}b", f"{name}m"], [name])

    def norm(x: str, y: str, name: str) -> Iterator[onnx.NodeProto]:
        weights.update({f"{name}g": weight(WIDTH), f"{name}b": weight(WIDTH)})
        yield helper.make_node("Add", [x, y], [f"{name}s"])
        yield helper.make_node("LayerNormalization", [f"{name}s", f"{name}g", f"{name}b"], [name])

    def layer(x: str, k: int) -> Iterator[onnx.NodeProto]:
        for part in "QKV":
            yield from dense(x, f"{part}{k}", WIDTH, WIDTH)
            yield helper.make_node("Reshape", [f"{part}{k}", "split"], [f"{part}r{k}"])
            order = [0, 2, 3, 1] if part == "K" else [0, 2, 1, 3]
            yield helper.make_node("Transpose", [f"{part}r{k}"], [f"{part}t{k}"], perm=order)
        yield helper.make_node("MatMul", [f"Qt{k}", f"Kt{k}"], [f"s{k}"])
        yield helper.make_node("Div", [f"s{k}", "d"], [f"t{k}"])
        yield helper.make_node("Add", [f"t{k}", "mask"], [f"u{k}"])
        yield helper.make_node("Softmax", [f"u{k}"], [f"p{k}"])
        yield helper.make_node("MatMul", [f"p{k}", f"Vt{k}"], [f"a{k}"])
        yield helper.make_node("Transpose", [f"a{k}"], [f"at{k}"], perm=[0, 2, 1, 3])
        yield helper.make_node("Reshape", [f"at{k}", "join"], [f"ar{k}"])
        yield from dense(f"ar{k}", f"c{k}", WIDTH, WIDTH)
        yield from norm(f"c{k}", x, f"n{k}")
        yield from dense(f"n{k}", f"f{k}", WIDTH, INNER)
        yield helper.make_node("Div", [f"f{k}", "r"], [f"e{k}"])
        yield helper.make_node("Erf", [f"e{k}"], [f"g{k}"])
        yield helper.make_node("Add", [f"g{k}", "o"], [f"i{k}"])
        yield helper.make_node("Mul", [f"f{k}", f"i{k}"], [f"j{k}"])
        yield helper.make_node("Mul", [f"j{k}", "h"], [f"l{k}"])
        yield from dense(f"l{k}", f"q{k}", INNER, WIDTH)
        yield from norm(f"q{k}", f"n{k}", f"x{k + 1}")

    nodes = [node for k in range(layers) for node in layer(f"x{k}", k)]
    inputs = {"x0": (1, TOKENS, WIDTH), "mask": (1, 1, 1, TOKENS)}
    return model_of(nodes, inputs, weights, f"x{layers}")


def planned(model: onnx.ModelProto, precision: str = "default") -> Plan:
    """Nothing is compiled."""
    options = CompileOptions(precision=precision)
    module = OnnxSource(read_model(model), options, Limits(), {}).load({}, {}, {}).module
    optimize(module, "gpu", options)
    target = GpuTarget(tf32=precision == "tf32")
    return make_plan(module, lambda instruction: lower(instruction, target), WeightsImage())


def launches(layers: int, precision: str) -> int:
    return sum(isinstance(step, Launch) for step in planned(bert(layers), precision).steps)


def test_a_sum_of_products_is_one_pass_and_the_last_step_of_the_reduction() -> None:
    """sum(x + y z): nothing as large as x is stored."""
    nodes = [
        helper.make_node("Mul", ["y0", "z"], ["m"]),
        helper.make_node("Add", ["x", "m"], ["a"]),
        helper.make_node("ReduceSum", ["a"], ["y"], keepdims=0),
    ]
    plan = planned(model_of(nodes, dict.fromkeys(("x", "y0", "z"), (1000, 1000)), {}))
    whole, last = plan.steps
    assert isinstance(whole, Launch) and isinstance(last, Launch)
    assert [slot.buffer.space for slot in whole.arguments].count(Space.INPUT) == 3
    assert whole.kernel.tasks > 100 and last.kernel.tasks == 1
    assert not [slot for slot in last.arguments if slot.buffer.space is Space.INPUT]
    assert plan.arena_bytes < 1000 * 1000 * 4 // 100


@pytest.mark.parametrize("size", [100, 5000])
@pytest.mark.parametrize("operator", ["Softmax", "LayerNormalization"])
def test_softmax_and_norms_are_one_kernel(operator: str, size: int) -> None:
    given = ["x"] if operator == "Softmax" else ["x", "scale", "bias"]
    weights = {name: weight(size) for name in given[1:]}
    (step,) = planned(model_of([helper.make_node(operator, given, ["y"])], {"x": (300, size)}, weights)).steps
    assert isinstance(step, Launch)


@pytest.mark.parametrize(("precision", "most"), [("fp32", 7), ("fp16", 7), ("bf16", 7), ("tf32", 9)])
def test_launches_of_a_layer(precision: str, most: int) -> None:
    assert launches(3, precision) - launches(2, precision) == most


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 2e-5), ("bf16", 0.05)])
def test_a_layer_is_right(precision: str, tolerance: float, kind: str) -> None:
    device, model = device_named(kind), bert(1)
    feeds = feeds_of(model)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    compiled = onnxla.compile(model, target="gpu", options={"cache_dir": None, "precision": precision})
    (result,) = DeviceExecutable(compiled.programs[0], device).run(list(feeds.values()), 1)
    np.testing.assert_allclose(result, expected, atol=tolerance)
