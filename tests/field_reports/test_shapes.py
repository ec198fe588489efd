"""Reported trouble: open dimensions, batches that are not really open, and messages that do not help."""

import numpy as np
import pytest

import onnxla
from onnxla.errors import CompileError, DynamicShapeError, ShapeError, UnsupportedOpError
from tests.models.witnesses import check, model, normal


def test_batch_that_a_reshape_fixes() -> None:
    """onnxruntime #6978, #6424: the batch is declared open, but Reshape's constant says 1."""
    network = model(
        """<ir_version: 10, opset_import: ["": 17]>
        fixed (float[N,4,4] x) => (float[N,2] y) { f = Reshape(x, shape) y = MatMul(f, w) }""",
        {"shape": np.array([1, 16]), "w": normal(16, 2)},
    )
    check(network, {"x": normal(1, 4, 4)})
    compiled = onnxla.compile(network)
    with pytest.raises(ShapeError) as error:
        compiled.run(None, {"x": normal(2, 4, 4)})
    assert "Reshape:f (Reshape, opset 17)" in str(error.value) and "[1, 16]" in str(error.value)


def test_all_dimensions_open() -> None:
    """iree #11328: a convolution of which nothing is known. iree #19162: a product with three unknown dimensions."""
    network = model(
        """<ir_version: 10, opset_import: ["": 17]>
        open (float[N,C,H,W] x, float[N,C,W,K] z) => (float[N,M,H,W] y, float[N,C,H,K] p) {
            y = Conv<pads = [1,1,1,1]>(x, w)
            p = MatMul(x, z)
        }""",
        {"w": normal(5, 3, 3, 3)},
    )
    for n, h, w, k in ((1, 4, 5, 1), (2, 3, 7, 9)):
        check(network, {"x": normal(n, 3, h, w), "z": normal(n, 3, w, k, seed=1)})


def test_branches_of_static_and_open_types() -> None:
    """onnx-mlir #2650: one branch of If declares its shape, the other leaves it open."""
    network = model(
        """<ir_version: 10, opset_import: ["": 17]>
        either (float[N,4] x, bool c) => (float[N,4] y) {
            y = If(c)<
                then_branch = t () => (float[N,4] a) { a = Neg(x) },
                else_branch = f () => (float b) { b = Identity(x) }
            >
        }"""
    )
    for choice in (True, False):
        check(network, {"x": normal(3, 4), "c": np.array(choice)})


def test_unsqueeze_of_a_computed_scalar() -> None:
    """TensorRT-Incubator #246, iree #18267: Unsqueeze of a dimension that is open, compared with a scalar."""
    network = model(
        """<ir_version: 10, opset_import: ["": 17]>
        scalar (float[N] x) => (bool[1] y, float[N,1] u) {
            s = Shape(x)
            zero = Constant<value = int64 {0}>()
            n = Gather(s, zero)
            axis = Constant<value_ints = [0]>()
            v = Unsqueeze(n, axis)
            three = Constant<value = int64 {3}>()
            y = Equal(v, three)
            last = Constant<value_ints = [1]>()
            u = Unsqueeze(x, last)
        }"""
    )
    for n in (3, 4):
        check(network, {"x": normal(n)})


def test_data_that_decides_a_shape_is_named() -> None:
    """tensorflow #24476, #122057: refused with a message that names the node, the chain and the way out."""
    network = model(
        """<ir_version: 10, opset_import: ["": 17]>
        where (float[6] x) => (int64[1,M] y) { z = Relu(x) y = NonZero(z) }"""
    )
    with pytest.raises(DynamicShapeError) as error:
        onnxla.compile(network)
    text = str(error.value)
    assert "NonZero:y (NonZero, opset 17), node 1" in text
    assert "chain  x (input) -> Relu:z -> NonZero:y" in text
    assert "hint" in text


def test_value_decides_a_rank() -> None:
    """onnx-mlir #3596: the value of an input decides how many dimensions there are."""
    network = model(
        """<ir_version: 10, opset_import: ["": 17]>
        rank (float[4] x, int64[R] shape) => (float y) { y = Expand(x, shape) }"""
    )
    compiled = onnxla.compile(network)
    for shape in ([4], [2, 4], [3, 1, 4]):
        (y,) = compiled.run(None, {"x": normal(4), "shape": np.array(shape)})
        np.testing.assert_array_equal(y, np.broadcast_to(normal(4), shape))


def test_every_problem_in_one_report() -> None:
    """torch-mlir #2822, onnx-mlir #1007: one problem at a time, in the compiler's own words."""
    network = model(
        """<ir_version: 10, opset_import: ["": 17]>
        many (float[2,3] x) => (float[2,3] y) {
            a = Mystery(x)
            b = MatMul(x, x)
            c = Riddle(x)
            y = Sum(a, b, c)
        }"""
    )
    with pytest.raises(CompileError) as error:
        onnxla.compile(network)
    assert len(error.value.problems) == 3
    for words in ("3 problems", "Mystery", "MatMul:b (MatMul, opset 17), node 1", "Riddle"):
        assert words in str(error.value)


def test_attribute_of_another_opset_is_refused() -> None:
    """tvm #18698: a converter newer than the opset; the axes of a reduction are lost, and nobody says so."""
    network = model(
        """<ir_version: 10, opset_import: ["": 18]>
        lost (float[2,3] x) => (float[2,1] y) { y = ReduceMean<axes = [1]>(x) }"""
    )
    with pytest.raises(UnsupportedOpError, match="ReduceMean has no attribute axes at opset 18"):
        onnxla.compile(network)
    older = model(
        """<ir_version: 10, opset_import: ["": 13]>
        kept (float[2,3] x) => (float[2,1] y) { y = ReduceMean<axes = [1]>(x) }"""
    )
    check(older, {"x": normal(2, 3)})


def test_many_sizes_do_not_keep_memory() -> None:
    """openvino #23316: memory rises with each new size until a cache is full. Ours is bounded."""
    compiled = onnxla.compile(
        model("""<ir_version: 10, opset_import: ["": 17]> sizes (float[N] x) => (float[N] y) { y = Neg(x) }""")
    )
    for n in range(1, 40):
        compiled.run(None, {"x": normal(n)})
    assert len(compiled.programs) < 39
