"""A random model while it grows: nodes, and for each value its type, shape, bound and error.

`bound` is the largest magnitude a value can have, `error` how far two right implementations may be apart: 0 for values
that are exact. Operators that jump (rounding, comparing, sorting) take exact values only, so no output is chaotic.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, ModelProto, NodeProto, helper, numpy_helper

Array = npt.NDArray[Any]
FLOATS = ("float32", "float64", "float16")
INTS = ("int32", "int64", "int8", "uint8")
EPSILON = {"float32": 1.2e-7, "float64": 2.3e-16, "float16": 1e-3}


@dataclass(frozen=True)
class Value:
    """A tensor of the graph."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bound: float = 2.0
    error: float = 0.0

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass
class Case:
    """A model with inputs: `tolerances` is how far each output may be off."""

    model: ModelProto
    feeds: dict[str, Array]
    tolerances: dict[str, float]
    label: str = ""


@dataclass
class Graph:
    """Nodes in order, the arrays of inputs and initializers, and the values there are."""

    random: random.Random
    values: list[Value] = field(default_factory=list)
    nodes: list[NodeProto] = field(default_factory=list)
    inputs: dict[str, Array] = field(default_factory=dict)
    initializers: dict[str, Array] = field(default_factory=dict)
    outputs: dict[str, Value] = field(default_factory=dict)

    def size(self) -> int:
        """A dimension: mostly small, often odd, sometimes 1 or 0, sometimes past a vector."""
        return self.random.choices((1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 33, 0), (8, 12, 12, 10, 8, 8, 6, 5, 4, 4, 3, 1))[0]

    def shape(self, low: int = 0, high: int = 4) -> tuple[int, ...]:
        return tuple(self.size() for _ in range(self.random.randint(low, high)))

    def array(self, dtype: str, shape: tuple[int, ...]) -> Array:
        """Random numbers of magnitude at most 2 (floats) or a little more (integers)."""
        source = np.random.default_rng(self.random.getrandbits(32))
        if dtype == "bool":
            return source.integers(0, 2, shape).astype(bool)
        if dtype in FLOATS:
            return source.uniform(-2, 2, shape).astype(dtype)
        return source.integers(0 if dtype == "uint8" else -9, 10, shape).astype(dtype)

    def leaf(self, dtype: str, shape: tuple[int, ...], *, constant: bool | None = None) -> Value:
        """A fresh input or initializer."""
        constant = self.random.random() < 0.4 if constant is None else constant
        return self.hold(self.array(dtype, shape), constant=constant)

    def hold(self, array: Array, *, constant: bool = True) -> Value:
        """An initializer (or input) that holds this array."""
        name = f"v{len(self.inputs) + len(self.initializers)}"
        (self.initializers if constant else self.inputs)[name] = array
        bound = float(np.abs(array.astype(np.float64)).max(initial=1))
        value = Value(name, str(array.dtype), array.shape, bound)
        if not constant:
            self.values.append(value)
        return value

    def ints(self, *numbers: int) -> Value:
        return self.hold(np.array(numbers, np.int64))

    def pick(self, dtypes: tuple[str, ...], *, rank: tuple[int, int] = (0, 5), exact: bool = False) -> Value:
        """A value that fits, preferring late ones; a fresh leaf where there is none."""
        fits = [
            v
            for v in self.values
            if v.dtype in dtypes
            and rank[0] <= len(v.shape) <= rank[1]
            and v.bound < 100
            and (v.error == 0 if exact else v.error <= 0.02)
        ]
        if fits and self.random.random() < 0.9:
            return self.random.choice(fits[-6:])
        low = max(rank[0], 1 if rank[1] else 0)
        dtype = dtypes[0] if self.random.random() < 0.6 else self.random.choice(dtypes)
        return self.leaf(dtype, self.shape(low, min(rank[1], 4)))

    def node(
        self, op: str, inputs: Sequence[Value | None], *results: Value, domain: str = "", **attributes: Any
    ) -> None:
        """Append a node; the results' names are chosen here."""
        names = [f"n{len(self.nodes)}_{k}" for k in range(len(results))]
        operands = ["" if v is None else v.name for v in inputs]
        self.nodes.append(helper.make_node(op, operands, names, domain=domain, **attributes))
        for name, result in zip(names, results, strict=True):
            value = Value(name, result.dtype, result.shape, result.bound, result.error)
            self.values.append(value)
            self.outputs[name] = value

    def case(self, label: str) -> Case:
        """The model; its outputs are the values no node reads, and a few more."""
        used = {name for node in self.nodes for name in node.input}
        chosen = [v for v in self.outputs.values() if v.name not in used or self.random.random() < 0.1]
        return Case(model_of(self, chosen), dict(self.inputs), {v.name: v.error for v in chosen}, label)


def model_of(graph: Graph, outputs: list[Value]) -> ModelProto:
    proto: GraphProto = helper.make_graph(
        graph.nodes,
        "fuzz",
        [_info(name, str(a.dtype), a.shape) for name, a in graph.inputs.items()],
        [_info(v.name, v.dtype, v.shape) for v in outputs],
        [numpy_helper.from_array(a, name) for name, a in graph.initializers.items()],
    )
    return helper.make_model(proto, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def _info(name: str, dtype: str, shape: tuple[int, ...]) -> Any:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
