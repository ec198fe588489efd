"""Reported trouble: results that change with the outputs asked for, with the run, with the compile, or with fusion."""

import copy

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import onnxla
from onnxla.hlo.types import Array
from tests.models.witnesses import agree, check, model, normal


def network() -> ModelProto:
    """A little of everything that fuses: convolution, activation, pooling, softmax, element types between."""
    return model(
        """<ir_version: 10, opset_import: ["": 17]>
        fuses (float[2,4,9,9] x) => (float[2,5] y) {
            c = Conv<pads = [1,1,1,1]>(x, w)
            s = Sigmoid(c)
            m = Mul(c, s)
            r = Clip(m, low, high)
            p = AveragePool<kernel_shape = [2,2], strides = [2,2]>(r)
            g = GlobalAveragePool(p)
            f = Flatten(g)
            l = Gemm(f, v, b)
            e = Ceil(l)
            d = Sub(l, e)
            y = Softmax(d)
        }""",
        {
            "w": normal(6, 4, 3, 3, seed=1, scale=0.3),
            "low": np.array(-0.2, np.float32),
            "high": np.array(3, np.float32),
            "v": normal(6, 5, seed=2),
            "b": normal(5, seed=3),
        },
    )


def with_every_output(model: ModelProto) -> ModelProto:
    """The model with each intermediate value as a further output."""
    more = copy.deepcopy(model)
    known = {o.name for o in model.graph.output}
    names = [name for node in model.graph.node for name in node.output if name not in known]
    more.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    return more


def test_further_outputs_do_not_change_the_others() -> None:
    """openvino #25744, tensorflow #62532, TensorRT #4338: right only when intermediate values are outputs too."""
    feeds = {"x": normal(2, 4, 9, 9)}
    (alone,) = check(network(), feeds)
    (among, *_) = check(with_every_output(network()), feeds)
    agree([alone], [among], rtol=1e-5, atol=1e-6)


def test_runs_and_compiles_repeat_bit_for_bit() -> None:
    """onnx-mlir #2956: other numbers on every run. onnx-mlir #2789: and from every compile. tvm #15907: garbage."""
    feeds = {"x": normal(2, 4, 9, 9)}
    first, second = (onnxla.compile(network(), num_threads=n) for n in (1, 2))
    expected = first.run(None, feeds)[0].tobytes()
    for _ in range(5):
        np.full(100_000, np.nan)  # what later allocations may find
        assert first.run(None, feeds)[0].tobytes() == expected
        assert second.run(None, feeds)[0].tobytes() == expected


@pytest.mark.parametrize("level", [0, 1, 2])
def test_levels_of_optimisation_agree(level: int) -> None:
    """onnxruntime #20321, #20540: the highest level changes the answer."""
    feeds = {"x": normal(2, 4, 9, 9)}
    results = onnxla.compile(network(), options={"opt_level": level}).run(None, feeds)
    agree(onnxla.compile(network()).run(None, feeds), results, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [(1, 1), (7, 7), (13, 5), (32, 33)])
def test_global_pool_over_fused_producer(size: tuple[int, int]) -> None:
    """onnxruntime #20540: GlobalAveragePool is wrong under full optimisation only."""
    pool = model(
        """<ir_version: 10, opset_import: ["": 17]>
        pool (float[2,3,H,W] x) => (float[2,3,1,1] y) { r = Relu(x) s = Mul(r, r) y = GlobalAveragePool(s) }"""
    )
    check(pool, {"x": normal(2, 3, *size)})


def products(weights: Array) -> ModelProto:
    return model(
        """<ir_version: 10, opset_import: ["": 13]>
        products (uint8[3,64] x) => (int32[3,9] y) { y = MatMulInteger(x, w) }""",
        {"w": weights},
    )


def test_bytes_do_not_saturate_in_pairs() -> None:
    """pytorch #103646: u8 times s8 sums two products in 16 bits, which 255 * 127 * 2 overflows."""
    for value in (127, -128):
        w = np.full((64, 9), value, np.int8)
        x = np.full((3, 64), 255, np.uint8)
        (y,) = onnxla.compile(products(w)).run(None, {"x": x})
        np.testing.assert_array_equal(y, x.astype(np.int32) @ w.astype(np.int32))


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3", "host"])
def test_integers_are_the_same_on_every_cpu(cpu: str) -> None:
    """onnxruntime #14642: the same int8 model differs between CPUs."""
    rng = np.random.default_rng(0)
    w, x = rng.integers(-128, 128, (64, 9)).astype(np.int8), rng.integers(0, 256, (3, 64)).astype(np.uint8)
    compiled = onnxla.compile(products(w), options={"target_cpu": cpu})
    (y,) = compiled.run(None, {"x": x})
    np.testing.assert_array_equal(y, x.astype(np.int32) @ w.astype(np.int32))


def test_half_precision_does_not_overflow_between_operations() -> None:
    """onnxruntime #11384, TensorRT #1787: NaN in fp16 where fp32 is right. A square beyond 65504 is divided again."""
    norm = model(
        """<ir_version: 10, opset_import: ["": 17]>
        norm (float16[4] x) => (float16[4] y) { s = Mul(x, x) d = Mul(s, small) y = Sqrt(d) }""",
        {"small": np.array(1e-3, np.float16)},
    )
    x = np.array([300, 1000, 2, 60000], np.float16)
    (y,) = onnxla.compile(norm).run(None, {"x": x})
    expected = np.sqrt(x.astype(np.float64) ** 2 * float(np.float16(1e-3)))
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=1e-3)


def test_depth_to_space_after_a_reduction() -> None:
    """tvm #18032: an internal check fails where onnxruntime runs."""
    network = model(
        """<ir_version: 10, opset_import: ["": 17]>
        after (float[2,8,4,4] x) => (float[2,2,2,8] y) {
            axes = Constant<value_ints = [2]>()
            s = ReduceSum<keepdims = 1>(x, axes)
            y = DepthToSpace<blocksize = 2>(s)
        }"""
    )
    check(network, {"x": normal(2, 8, 4, 4)})


def test_running_sum_backwards() -> None:
    """tvm #18135: CumSum with reverse = 1."""
    network = model(
        """<ir_version: 10, opset_import: ["": 17]>
        running (float[3,7] x) => (float[3,7] y, float[3,7] z) {
            axis = Constant<value = int64 {1}>()
            y = CumSum<reverse = 1>(x, axis)
            z = CumSum<reverse = 1, exclusive = 1>(x, axis)
        }"""
    )
    check(network, {"x": normal(3, 7)})
