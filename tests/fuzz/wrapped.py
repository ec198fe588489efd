"""ONNX's own node tests as random models: what goes in and comes out takes detours that change no value.

So every operator of the standard, with the types and attributes its tests have, meets fusion, layouts and rewrites.
The witness is the result that the test gives.
"""

import random
from functools import cache
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper

from onnxla.conformance.cases import case_index, read_case
from tests.fuzz.graph import EPSILON, Array, Case

_PLAIN = ("float32", "float64", "float16", "bool")
_LEFT_OUT = ("string", "sequence", "optional", "bernoulli", "random", "dropout", "dft_inverse", "image_decoder")
_DATA_DEPENDENT = ("compress", "unique", "nonzero", "nonmaxsuppression")
_FAR = 2**63 - 1


@cache
def names() -> tuple[str, ...]:
    """Node tests with one set of plain tensors, whose shapes do not depend on data."""
    index, left_out = case_index(), _LEFT_OUT + _DATA_DEPENDENT
    return tuple(n for n in sorted(index) if index[n].kind == "node" and not any(w in n for w in left_out))


def wrapped(source: random.Random) -> Case | None:
    """A test with detours, or None where it has inputs or outputs that are no plain tensors."""
    test = read_case(source.choice(names()))
    inputs, outputs = test.data_sets[0] if test.data_sets else ((), ())
    values = [*inputs, *outputs]
    if not outputs or not all(
        isinstance(v, np.ndarray) and v.dtype.kind in "biufV" and v.size < 20_000 for v in values
    ):
        return None
    model = ModelProto()
    model.CopyFrom(test.model)
    if not any(o.domain in ("", "ai.onnx") for o in model.opset_import):
        model.opset_import.append(helper.make_opsetid("", 18))
    opset = max(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    if opset < 13 or len(inputs) != len(model.graph.input) or any(not _is_number(v) for v in values):
        return None
    detours = _Detours(source)
    before, after = [], []
    renamed: dict[str, str] = {}
    fixed = len(inputs) if "resize" not in test.name and "upsample" not in test.name else 1
    for info, array in list(zip(model.graph.input, inputs, strict=True))[:fixed]:
        if str(array.dtype) in _PLAIN and array.size and source.random() < 0.7:
            renamed[info.name] = detours.around(info.name, array)
    before = detours.take()
    for node in model.graph.node:
        for k, name in enumerate(node.input):
            node.input[k] = renamed.get(name, name)
    tolerances, expected = {}, {}
    for info, array in zip(model.graph.output, outputs, strict=True):
        name = info.name
        if str(array.dtype) in _PLAIN and array.size and source.random() < 0.7:
            name = detours.around(name, array)
        finite = np.abs(array.astype(np.float64)[np.isfinite(array.astype(np.float64))])
        tolerances[name] = test.atol + test.rtol * float(finite.max(initial=0))
        if str(array.dtype) in EPSILON:
            tolerances[name] += (4 * EPSILON[str(array.dtype)] if "16" in str(array.dtype) else 0) * float(
                finite.max(initial=0)
            )
        if array.dtype.kind in "iu" and "quant" not in test.name and "qlinear" not in test.name:
            tolerances[name] = 0.0
        expected[name] = array
        info.name = name
    after = detours.take()
    nodes = [*before, *model.graph.node, *after]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(detours.constants)
    feeds = {info.name: array for info, array in zip(model.graph.input, inputs, strict=True)}
    _settle(model, feeds, fixed)
    return Case(model, feeds, tolerances, test.name, expected=expected)


def _settle(model: ModelProto, feeds: dict[str, Array], fixed: int) -> None:
    """Inputs from `fixed` on, scalars and lists of integers become constants: they may decide shapes."""
    for k, info in enumerate(list(model.graph.input)):
        array = feeds[info.name]
        if k >= fixed or array.ndim == 0 or array.ndim == 1 and array.dtype.kind in "iu":
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            tensor = helper.make_tensor(info.name, kind, array.shape, array.tobytes(), raw=True)
            model.graph.initializer.append(tensor)
            model.graph.input.remove(info)
            del feeds[info.name]


def _is_number(array: Array) -> bool:
    known = (*_PLAIN, "bfloat16", "int4", "uint4", "int2", "uint2")
    return str(array.dtype) in known or array.dtype.kind in "iu" or str(array.dtype).startswith("float")


class _Detours:
    """Chains of nodes that give what they take."""

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self.nodes: list[NodeProto] = []
        self.constants: list[TensorProto] = []
        self.count = 0

    def take(self) -> list[NodeProto]:
        nodes, self.nodes = self.nodes, []
        return nodes

    def around(self, name: str, array: Array) -> str:
        """The name of the same value behind one to three detours."""
        for _ in range(self.source.randint(1, 3)):
            kinds = [self.transposes, self.pieces, self.flat, self.turned, self.gathered, self.chosen]
            name = self.source.choice(kinds)(name, array)
        return name

    def node(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        self.count += 1
        names = [f"detour{self.count}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
        return names[0]

    def constant(self, array: Array) -> str:
        self.count += 1
        name = f"detour{self.count}"
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        self.constants.append(helper.make_tensor(name, kind, array.shape, array.tobytes(), raw=True))
        return name

    def ints(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int64))

    def transposes(self, name: str, array: Array) -> str:
        order = self.source.sample(range(array.ndim), array.ndim)
        if not order:
            return self.node("Identity", name)
        there = self.node("Transpose", name, perm=order)
        return self.node("Transpose", there, perm=[order.index(a) for a in range(array.ndim)])

    def pieces(self, name: str, array: Array) -> str:
        """Cut in two and joined, or joined with itself and cut."""
        if not array.ndim:
            return self.node("Identity", name)
        axis = self.source.randrange(array.ndim)
        n = array.shape[axis]
        if self.source.random() < 0.5:
            cut = self.source.randint(0, n)
            first = self.node("Split", name, self.ints(cut, n - cut), outputs=2, axis=axis)
            return self.node("Concat", first, first[:-1] + "1", axis=axis)
        whole = self.node("Concat", name, name, axis=axis)
        return self.node("Slice", whole, self.ints(n), self.ints(2 * n), self.ints(axis))

    def flat(self, name: str, array: Array) -> str:
        flat = self.node("Reshape", name, self.ints(-1))
        return self.node("Reshape", flat, self.ints(*array.shape))

    def turned(self, name: str, array: Array) -> str:
        """Backwards along an axis, twice."""
        if not array.ndim:
            return self.node("Identity", name)
        axis = self.ints(self.source.randrange(array.ndim))
        for _ in range(2):
            name = self.node("Slice", name, self.ints(-1), self.ints(-_FAR), axis, self.ints(-1))
        return name

    def gathered(self, name: str, array: Array) -> str:
        if not array.ndim:
            return self.node("Identity", name)
        axis = self.source.randrange(array.ndim)
        order = np.random.default_rng(self.source.getrandbits(32)).permutation(array.shape[axis])
        there = self.node("Gather", name, self.constant(order.astype(np.int64)), axis=axis)
        return self.node("Gather", there, self.constant(np.argsort(order).astype(np.int64)), axis=axis)

    def chosen(self, name: str, array: Array) -> str:
        flags = np.random.default_rng(self.source.getrandbits(32)).integers(0, 2, array.shape).astype(bool)
        same = self.node("Identity", name)
        return self.node("Where", self.constant(flags), name, same)
