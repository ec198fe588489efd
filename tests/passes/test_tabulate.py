"""Tables of 256 results: which work is looked up, that its values stay, and that contractions look up too."""

import numpy as np
import onnx
import onnxruntime
import pytest

import onnxla
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction, Module
from onnxla.hlo.ops.indexing import Gather
from onnxla.hlo.types import F16, F32, S8, S32, U8, Array, ElementType, TensorType
from onnxla.passes.tabulate import Tabulate

SHAPE = (3, 7, 256)


def every_value(element: ElementType) -> Array:
    info = np.iinfo(element.dtype)
    values = np.arange(info.min, info.max + 1).astype(element.dtype)
    return np.broadcast_to(values, SHAPE).copy()


def quantised(b: Builder, x: Instruction, scale: float, zero: float, element: ElementType) -> Instruction:
    return b.convert(
        b.add(b.unary("round-nearest-even", b.divide(x, b.full_like(x, scale))), b.full_like(x, zero)), element
    )


def hard_swish(b: Builder, q: Instruction, result: ElementType) -> Instruction:
    x = b.divide(b.convert(q, F32), b.full_like(b.convert(q, F32), 21.3))
    gate = b.clamp(b.constant(0.0, F32), b.add(x, b.full_like(x, 3.0)), b.constant(6.0, F32))
    return quantised(b, b.divide(b.multiply(x, gate), b.full_like(x, 6.0)), 0.031, 5.0, result)


def tables(computation: Computation) -> int:
    return sum(isinstance(i.op, Gather) for i in computation.instructions())


@pytest.mark.parametrize("result", [U8, S8, S32, F32, F16])
@pytest.mark.parametrize("element", [U8, S8])
def test_values_stay(element: ElementType, result: ElementType) -> None:
    b = Builder()
    module = Module("m", b.build(hard_swish(b, b.parameter(TensorType(element, SHAPE)), result)))
    x = every_value(element)
    before = module.entry.evaluate(x)
    assert Tabulate().run(module)
    assert tables(module.entry) == 1
    assert len(module.entry.instructions()) < 8
    np.testing.assert_array_equal(module.entry.evaluate(x), before)


def test_a_result_on_the_way_has_a_table_of_its_own() -> None:
    b = Builder()
    q = b.parameter(TensorType(U8, SHAPE))
    middle = hard_swish(b, q, S8)
    module = Module("m", b.build(b.tuple(middle, b.unary("tanh", b.convert(hard_swish(b, middle, U8), F32)))))
    x = every_value(U8)
    before = module.entry.evaluate(x)
    assert Tabulate().run(module)
    assert tables(module.entry) == 2
    for got, expected in zip(module.entry.evaluate(x), before, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_what_depends_on_more_than_one_value_of_8_bits_stays() -> None:
    b = Builder()
    q, r = b.parameter(TensorType(U8, SHAPE)), b.parameter(TensorType(U8, SHAPE))
    scales = b.broadcast(b.parameter(TensorType(F32, SHAPE[-1:])), SHAPE, (2,))
    of_columns = quantised(b, b.unary("tanh", b.multiply(b.convert(q, F32), scales)), 0.1, 0.0, U8)
    of_two = quantised(b, b.unary("tanh", b.multiply(b.convert(q, F32), b.convert(r, F32))), 0.1, 0.0, U8)
    assert not Tabulate().run(Module("m", b.build(b.tuple(of_columns, of_two))))


@pytest.mark.parametrize("kind, shape", [(F32, SHAPE), (U8, (5, 7))])
def test_wide_values_and_small_tensors_stay(kind: ElementType, shape: tuple[int, ...]) -> None:
    b = Builder()
    assert not Tabulate().run(Module("m", b.build(hard_swish(b, b.parameter(TensorType(kind, shape)), U8))))


def test_dequantising_alone_is_no_table() -> None:
    b = Builder()
    x = b.convert(b.parameter(TensorType(U8, SHAPE)), F32)
    module = Module("m", b.build(b.multiply(b.subtract(x, b.full_like(x, 128.0)), b.full_like(x, 0.1))))
    assert not Tabulate().run(module)


@pytest.mark.parametrize("type, zero", [("uint8", 146), ("int8", -3)])
def test_a_contraction_looks_up_its_results(type: str, zero: int) -> None:
    """One kernel: product, quantisation, table; as the interpreter and onnxruntime's plain operators have it."""
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 17]> graph (float[96, 33] x, float[33, 50] w) => (float[96, 50] y)
        <float s = {{0.177}}, {type} z = {{{zero}}}, float half = {{0.5}}, float t = {{0.0077}}> {{
            product = MatMul(x, w)
            q = QuantizeLinear(product, s, z)
            d = DequantizeLinear(q, s, z)
            gate = Sigmoid(d)
            g = QuantizeLinear(gate, t, z)
            h = DequantizeLinear(g, t, z)
            swish = Mul(d, h)
            u = QuantizeLinear(swish, s, z)
            y = DequantizeLinear(u, s, z)
        }}""")
    random = np.random.default_rng(3)
    x, w = (random.standard_normal(shape).astype(np.float32) for shape in ((96, 33), (33, 50)))
    x[0, 0], x[1, 1], x[2] = np.inf, -np.inf, -0.0
    compiled = onnxla.compile(model)
    (got,) = compiled.run(None, {"x": x, "w": w})
    assert len(compiled.profile({"x": x, "w": w}).rows) == 1
    plain = onnxruntime.SessionOptions()
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), plain)
    (expected,) = session.run(None, {"x": x, "w": w})
    # a sum that falls on the border of two steps may be rounded either way
    assert np.mean(got != expected) < 0.002
    np.testing.assert_allclose(got, expected, atol=0.1771)
