"""Models at the edge of what ONNX allows: right values, bounded work, typed errors."""

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, helper
from onnx.reference import ReferenceEvaluator

import onnxla
from onnxla.errors import ArtifactError, ResourceLimitError
from onnxla.hlo.types import Array
from tests.hostile.models import X, model_of, tensor


def compiled(model: ModelProto) -> onnxla.CompiledModel:
    return onnxla.compile(model.SerializeToString())


def test_names_may_be_anything() -> None:
    odd = ["x y\n%", "日本/../..", '"quote\\', "a" * 5000]
    nodes = [
        helper.make_node(op, [a], [b], name=a) for op, a, b in zip(("Relu", "Neg", "Abs"), odd, odd[1:], strict=False)
    ]
    (result,) = compiled(model_of(nodes, [tensor(odd[0], [4])], [tensor(odd[3], [4])])).run(None, {odd[0]: X})
    np.testing.assert_array_equal(result, X)


def test_no_nodes() -> None:
    assert compiled(model_of([], [], [])).run(None, {}) == []


def test_outputs_own_their_memory() -> None:
    """Whether the output is an input, an initializer, or one value twice."""
    nodes = [helper.make_node("Identity", ["x"], ["a"]), helper.make_node("Identity", ["x"], ["b"])]
    outputs = [tensor(name, [4]) for name in ("x", "w", "a", "b")]
    model = compiled(model_of(nodes, [tensor("x", [4])], outputs, {"w": X + 1}))
    results = model.run(None, {"x": X})
    for result, want in zip(results, [X, X + 1, X, X], strict=True):
        np.testing.assert_array_equal(result, want)
        result[...] = -1
    np.testing.assert_array_equal(model.run(["w"], {"x": X})[0], X + 1)
    np.testing.assert_array_equal(X, np.arange(4, dtype=np.float32))


def test_contraction_over_nothing_is_zero() -> None:
    model = model_of(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [tensor("x", [2, 0])],
        [tensor("y", [2, 3])],
        {"w": np.ones((0, 3), np.float32)},
    )
    np.testing.assert_array_equal(compiled(model)(np.zeros((2, 0), np.float32)), np.zeros((2, 3), np.float32))


def test_a_chain_of_3000_nodes() -> None:
    ops = [("Softmax", "Tanh", "Neg", "Abs")[k % 4] for k in range(3000)]
    nodes = [helper.make_node(op, [f"v{k}"], [f"v{k + 1}"]) for k, op in enumerate(ops)]
    (result,) = compiled(model_of(nodes, [tensor("v0", [4])], [tensor("v3000", [4])])).run(None, {"v0": X})
    np.testing.assert_allclose(result, np.tanh(np.full(4, 0.25, np.float32)), rtol=1e-6)


def test_a_value_used_twice_at_every_step_is_computed_once() -> None:
    """2 to the 100 paths lead from the input to the output."""
    nodes = [helper.make_node("Add", [f"v{k}", f"v{k}"], [f"v{k + 1}"]) for k in range(100)]
    (result,) = compiled(model_of(nodes, [tensor("v0", [4])], [tensor("v100", [4])])).run(None, {"v0": X})
    np.testing.assert_array_equal(result, X * np.float32(2.0**100))


def test_a_wide_concat() -> None:
    nodes = [helper.make_node(("Neg", "Abs")[k % 2], ["x"], [f"c{k}"]) for k in range(400)]
    nodes.append(helper.make_node("Concat", [f"c{k}" for k in range(400)], ["y"], axis=0))
    (result,) = compiled(model_of(nodes, [tensor("x", [4])], [tensor("y", [1600])])).run(None, {"x": X})
    np.testing.assert_array_equal(result, np.tile(np.concatenate([-X, X]), 200))


@pytest.mark.parametrize(
    "node, initializers",
    [
        (helper.make_node("ConstantOfShape", ["s"], ["big"]), {"s": np.array([1 << 28])}),
        (helper.make_node("Expand", ["w", "s"], ["big"]), {"s": np.array([1 << 28]), "w": np.ones(1, np.float32)}),
        (helper.make_node("Tile", ["w", "s"], ["big"]), {"s": np.array([1 << 26]), "w": np.ones(4, np.float32)}),
    ],
    ids=["ConstantOfShape", "Expand", "Tile"],
)
def test_a_huge_constant_is_not_stored(node: NodeProto, initializers: dict[str, Array]) -> None:
    nodes = [node, helper.make_node("Mul", ["big", "x"], ["y"])]
    model = compiled(model_of(nodes, [tensor("x", [1])], [tensor("y", None)], initializers))
    assert model.memory().weights < 4096


LEAST, MOST = -(2**63), 2**63 - 1


@pytest.mark.parametrize(
    "start, end, step, want", [(MOST, LEAST, LEAST, [3]), (LEAST, MOST, 1, X), (0, MOST, MOST, [0])]
)
def test_slice_to_the_ends_of_int64(start: int, end: int, step: int, want: list[int]) -> None:
    node = helper.make_node("Slice", ["x", "start", "end", "axis", "step"], ["y"])
    numbers = zip(("start", "end", "axis", "step"), (start, end, 0, step), strict=True)
    weights = {name: np.array([n]) for name, n in numbers}
    result = compiled(model_of([node], [tensor("x", [4])], [tensor("y", None)], weights))(X)
    np.testing.assert_array_equal(result, want)


@pytest.mark.parametrize("size", [1 << 40, 1 << 62])
def test_sizes_beyond_the_limit_are_refused(size: int) -> None:
    with pytest.raises(ResourceLimitError):
        compiled(model_of([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", [size])], [tensor("y", None)]))
    node = helper.make_node("ConstantOfShape", ["s"], ["y"])
    with pytest.raises(ResourceLimitError):
        compiled(model_of([node], [], [tensor("y", None)], {"s": np.array([size])}))


@pytest.mark.parametrize("cpu", ["host", "x86-64-v3"])
@pytest.mark.parametrize("shape", [(2, 16, 7, 9), (3, 32, 13, 11), (1, 17, 15, 14), (2, 64, 20, 19)])
def test_a_convolution_with_its_input_added(cpu: str, shape: tuple[int, ...]) -> None:
    """Odd images, batches, and channels that fill no vector."""
    random = np.random.default_rng(0)
    channels = shape[1]
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4), helper.make_node("Add", ["c", "x"], ["y"])]
    weights = random.integers(-2, 3, (channels, channels, 3, 3)).astype(np.float32)
    model = model_of(nodes, [tensor("x", list(shape))], [tensor("y", None)], {"w": weights})
    value = random.integers(-2, 3, shape).astype(np.float32)
    try:
        result = onnxla.compile(model.SerializeToString(), options={"target_cpu": cpu})(value)
    except ArtifactError:
        pytest.skip(f"this machine is no {cpu}")
    (want,) = ReferenceEvaluator(model).run(None, {"x": value})
    np.testing.assert_allclose(result, np.asarray(want), atol=2e-2)
