"""Small models that ask for huge work or memory: the answer comes without either."""

import resource
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

import onnxla
from onnxla.config import CompileOptions
from onnxla.errors import OnnxlaError, ResourceLimitError, UnsupportedOpError
from onnxla.frontends.onnx import graph_importer
from onnxla.frontends.onnx.importer import import_model
from onnxla.hlo.types import Array
from tests.hostile.models import model_of, tensor

BILLIONS = 1 << 33
ONE = np.ones(1, np.float32)
OPTIONS = CompileOptions(folding_bytes=1 << 20, folding_seconds=0.5)


def numbers(*values: int) -> Array:
    return np.array(values, np.int64)


def body_that_runs(*, forever: bool) -> object:
    condition = "c" if forever else "d"
    nodes = [
        helper.make_node("Identity", ["c"], ["d"]),
        helper.make_node("Add", ["v", "v"], ["w"]),
    ]
    inputs = [tensor("i", [], TensorProto.INT64), tensor("c", [], TensorProto.BOOL), tensor("v", [1])]
    return helper.make_graph(nodes, "body", inputs, [tensor(condition, [], TensorProto.BOOL), tensor("w", [1])])


REQUESTS: dict[str, tuple[list[NodeProto], dict[str, Array]]] = {
    "Range": (
        [helper.make_node("Range", ["a", "b", "c"], ["y"])],
        {n: np.array(v) for n, v in zip("abc", (0, 1 << 62, 1), strict=True)},
    ),
    "Range backwards by a little": (
        [helper.make_node("Range", ["a", "b", "c"], ["y"])],
        {n: np.array(v, np.float64) for n, v in zip("abc", (0, 1e18, 1e-18), strict=True)},
    ),
    "Pad": ([helper.make_node("Pad", ["w", "p"], ["y"])], {"w": ONE, "p": numbers(BILLIONS, BILLIONS)}),
    "Pad to the end of int64": (
        [helper.make_node("Pad", ["w", "p"], ["y"])],
        {"w": ONE, "p": numbers((1 << 63) - 1, 1)},
    ),
    "Tile": (
        [helper.make_node("Tile", ["w", "r"], ["y"])],
        {"w": np.ones((1, 1), np.float32), "r": numbers(1 << 40, 1 << 40)},
    ),
    "Expand": ([helper.make_node("Expand", ["w", "s"], ["y"])], {"w": ONE, "s": numbers(*[1 << 20] * 4)}),
    "ConstantOfShape": ([helper.make_node("ConstantOfShape", ["s"], ["y"])], {"s": numbers(*[1 << 16] * 5)}),
    "OneHot": (
        [helper.make_node("OneHot", ["i", "d", "v"], ["y"])],
        {"i": numbers(0, 1), "d": numbers(1 << 50), "v": np.array([0, 1], np.float32)},
    ),
    "EyeLike": (
        [helper.make_node("ConstantOfShape", ["s"], ["m"]), helper.make_node("EyeLike", ["m"], ["y"])],
        {"s": numbers(1 << 30, 1 << 30)},
    ),
    "Resize": (
        [helper.make_node("Resize", ["w", "", "", "s"], ["y"], mode="nearest")],
        {"w": np.ones((1, 1, 2, 2), np.float32), "s": numbers(1, 1, 1 << 30, 1 << 30)},
    ),
    "RandomNormal": ([helper.make_node("RandomNormal", [], ["y"], shape=[1 << 30, 1 << 30])], {}),
    "BlackmanWindow": ([helper.make_node("BlackmanWindow", ["n"], ["y"])], {"n": np.array(1 << 60)}),
    "Concat that doubles": (
        [helper.make_node("Concat", [f"v{k}", f"v{k}"], [f"v{k + 1}"], axis=0) for k in range(100)]
        + [helper.make_node("Identity", ["v100"], ["y"])],
        {"v0": ONE},
    ),
    "an outer product": (
        [
            helper.make_node("Expand", ["w", "s"], ["a"]),
            helper.make_node("Expand", ["w", "t"], ["b"]),
            helper.make_node("Mul", ["a", "b"], ["y"]),
        ],
        {"w": np.ones((1, 1), np.float32), "s": numbers(1 << 20, 1), "t": numbers(1, 1 << 20)},
    ),
    "Loop with a huge trip count": (
        [helper.make_node("Loop", ["n", "", "w"], ["y"], body=body_that_runs(forever=False))],
        {"n": np.array((1 << 63) - 1), "w": ONE},
    ),
    "Loop without an end": (
        [helper.make_node("Loop", ["", "go", "w"], ["y"], body=body_that_runs(forever=True))],
        {"go": np.array(True), "w": ONE},
    ),
    "a product of large constants": (
        [
            helper.make_node("ConstantOfShape", ["s"], ["a"]),
            helper.make_node("MatMul", ["a", "a"], ["b"]),
            helper.make_node("MatMul", ["b", "b"], ["c"]),
            helper.make_node("ReduceSum", ["c"], ["y"]),
        ],
        {"s": numbers(4000, 4000)},
    ),
    "a convolution of large constants": (
        [
            helper.make_node("ConstantOfShape", ["s"], ["a"]),
            helper.make_node("ConstantOfShape", ["t"], ["k"]),
            helper.make_node("Conv", ["a", "k"], ["b"]),
            helper.make_node("ReduceMax", ["b"], ["y"]),
        ],
        {"s": numbers(8, 64, 200, 200), "t": numbers(64, 64, 101, 101)},
    ),
}


@pytest.fixture
def little_memory() -> Iterator[None]:
    """A few gigabytes more of address space than now: whoever wants terabytes fails, whatever the system promises."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (3 << 30), hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.parametrize("name", REQUESTS)
def test_huge_requests_are_refused_or_left_to_the_program(name: str, little_memory: None) -> None:
    """Imported within the folding budget, or refused by a typed error; a MemoryError is none."""
    nodes, constants = REQUESTS[name]
    model = model_of(
        [*nodes, helper.make_node("Mul", ["y", "x"], ["z"])], [tensor("x", [1])], [tensor("z", None)], constants
    )
    try:
        imported = import_model(model.SerializeToString(), options=OPTIONS)
    except OnnxlaError:
        return
    assert imported.outputs[0].type.size <= 1 << 34


def of_input(op_type: str, *constants: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op_type, ["x", *constants], ["y"], **attributes)


TABLES: dict[str, tuple[NodeProto, list[int], dict[str, Array]]] = {
    "AveragePool": (of_input("AveragePool", kernel_shape=[3, 3]), [1, 1, 1 << 16, 1 << 16], {}),
    "AveragePool of all": (of_input("AveragePool", kernel_shape=[1 << 15] * 2), [1, 1, 1 << 16, 1 << 17], {}),
    "Multinomial": (of_input("Multinomial", sample_size=1), [1, 1 << 20], {}),
    "STFT": (
        of_input("STFT", "step", "", "length"),
        [1, 1 << 30, 1],
        {"step": np.array(1), "length": np.array(1 << 20)},
    ),
    "Pad": (of_input("Pad", "pads", mode="reflect"), [1 << 33], {"pads": numbers(1, 1)}),
    "Resize": (of_input("Resize", "", "", "sizes", mode="linear"), [1, 1, 1 << 30], {"sizes": numbers(1, 1, 1 << 31)}),
    "Inverse": (of_input("Inverse", domain="com.microsoft"), [1 << 16, 1 << 16], {}),
    "UnfoldTensor": (of_input("UnfoldTensor", size=1 << 16, domain="com.microsoft"), [1 << 30], {}),
}


@pytest.mark.parametrize("name", TABLES)
def test_no_rule_writes_out_a_huge_table(name: str, little_memory: None) -> None:
    """What is known of a declared shape costs the model nothing."""
    node, shape, constants = TABLES[name]
    model = model_of([node], [tensor("x", shape)], [helper.make_empty_tensor_value_info("y")], constants)
    with pytest.raises(UnsupportedOpError, match=r"a table of \d+ elements"):
        import_model(model.SerializeToString(), options=OPTIONS)


def test_a_node_that_memory_does_not_hold_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise MemoryError("Unable to allocate 9 EiB")

    monkeypatch.setattr(graph_importer, "lookup", lambda *operator: fail)
    model = model_of([helper.make_node("Neg", ["x"], ["y"], name="minus")], [tensor("x", [1])], [tensor("y", [1])])
    with pytest.raises(ResourceLimitError, match=r"minus \(Neg.*\), node 0 needs more memory than there is: Unable"):
        import_model(model.SerializeToString())


def test_no_rule_writes_out_a_tensor_element_by_element() -> None:
    nodes = [helper.make_node("SplitToSequence", ["x"], ["s"]), helper.make_node("SequenceLength", ["s"], ["y"])]
    model = model_of(nodes, [tensor("x", [1 << 30, 2])], [tensor("y", None, TensorProto.INT64)])
    with pytest.raises(UnsupportedOpError, match="a tensor in 1073741824 pieces"):
        import_model(model.SerializeToString(), options=OPTIONS)


def test_a_limit_of_nodes_holds_for_a_long_chain() -> None:
    nodes = [helper.make_node("Neg", [f"v{k}"], [f"v{k + 1}"]) for k in range(300)]
    model = model_of(nodes, [tensor("v0", [1])], [tensor("v300", [1])])
    with pytest.raises(ResourceLimitError, match="300 nodes; the limit is 200"):
        onnxla.compile(model.SerializeToString(), limits=onnxla.Limits(nodes=200))
