"""A random model while it grows: nodes, and for each value its type, shape, bound and error.

`bound` is the largest magnitude a value can have, `error` how far two right implementations may be apart: 0 for values
that are exact. Operators that jump (rounding, comparing, sorting) take exact values only, so no output is chaotic.
A step that finds an operator without the type or attribute at the model's opset raises `Skip`, and is undone.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, defs, helper, numpy_helper

Array = npt.NDArray[Any]
FLOATS = ("float32", "float64", "float16", "bfloat16")
SINGLES = ("float32", "float64")
INTS = ("int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64")
ALL = (*FLOATS, *INTS, "bool")
EPSILON = {"float32": 1.2e-7, "float64": 2.3e-16, "float16": 1e-3, "bfloat16": 8e-3}
_ROUNDINGS = {"float32": 16, "float64": 16, "float16": 2, "bfloat16": 2}
"""How many units in the last place one operation may be off; half precision is computed in float32."""
OPSETS = {
    8: 0.5,
    9: 0.5,
    10: 1,
    11: 1,
    12: 2,
    13: 4,
    14: 2,
    15: 2,
    17: 4,
    18: 4,
    20: 6,
    21: 4,
    22: 4,
    24: 2,
    26: 1,
    28: 1,
}
"""How often each opset is the model's."""
MICROSOFT = "com.microsoft"


class Skip(Exception):
    """This step cannot be taken here."""


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

    @property
    def rank(self) -> int:
        return len(self.shape)


def rounded(value: Value, **changes: Any) -> Value:
    """The value after one more rounding."""
    after = replace(value, **changes)
    if not after.is_float:
        return replace(after, error=0.0)
    unit = _ROUNDINGS[after.dtype] * EPSILON[after.dtype]
    return replace(after, error=after.error + unit * max(after.bound, 1))


@dataclass
class Case:
    """A model with inputs: `tolerances` is how far each value may be off, `special` that NaN and infinities occur.

    `expected` are results that are known beforehand; then onnxruntime is not asked.
    """

    model: ModelProto
    feeds: dict[str, Array]
    tolerances: dict[str, float]
    label: str = ""
    special: bool = False
    expected: dict[str, Array] = field(default_factory=dict)


@dataclass
class Graph:
    """Nodes in order, the arrays of inputs and initializers, and the values there are."""

    random: random.Random
    opset: int = 20
    special: bool = False
    prefix: str = ""
    depth: int = 0
    values: list[Value] = field(default_factory=list)
    nodes: list[NodeProto] = field(default_factory=list)
    inputs: dict[str, Array] = field(default_factory=dict)
    initializers: dict[str, Array] = field(default_factory=dict)
    outputs: dict[str, Value] = field(default_factory=dict)
    functions: list[FunctionProto] = field(default_factory=list)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def size(self) -> int:
        """A dimension: mostly small, often odd, sometimes 1 or 0, sometimes past a vector."""
        return self.random.choices((1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 33, 0), (8, 12, 12, 10, 8, 8, 6, 5, 4, 4, 3, 1))[0]

    def shape(self, low: int = 0, high: int = 4) -> tuple[int, ...]:
        return tuple(self.size() for _ in range(self.random.randint(low, high)))

    def source(self) -> np.random.Generator:
        return np.random.default_rng(self.random.getrandbits(32))

    def array(self, dtype: str, shape: tuple[int, ...]) -> Array:
        """Random numbers of magnitude at most 2 (floats) or a little more (integers)."""
        source = self.source()
        if dtype == "bool":
            return source.integers(0, 2, shape).astype(bool)
        if dtype in FLOATS:
            array = np.asarray(source.uniform(-2, 2, shape)).astype(numpy_type(dtype))
            return _with_special_values(array, source) if self.special else array
        return np.asarray(source.integers(0 if dtype.startswith("u") else -9, 10, shape)).astype(dtype)

    def leaf(self, dtype: str, shape: tuple[int, ...], *, constant: bool | None = None) -> Value:
        """A fresh input or initializer."""
        constant = self.chance(0.4) if constant is None else constant
        return self.hold(self.array(dtype, shape), constant=constant)

    def hold(self, array: Array, *, constant: bool = True) -> Value:
        """An initializer (or input) that holds this array."""
        name = f"{self.prefix}v{len(self.inputs) + len(self.initializers)}"
        (self.initializers if constant else self.inputs)[name] = array
        wide = np.abs(array.astype(np.float64))
        bound = float(np.where(np.isfinite(wide), wide, 1).max(initial=1))
        value = Value(name, str(array.dtype), array.shape, bound)
        if not constant:
            self.values.append(value)
        return value

    def ints(self, *numbers: int) -> Value:
        return self.hold(np.array(numbers, np.int64))

    def spread(self, x: Value, number: float) -> Value:
        """A number of x's type, in one of the shapes that broadcast to x's."""
        shapes = ((), (1,), x.shape, x.shape[-1:]) if x.shape else ((),)
        return self.scalar(x.dtype, number, self.random.choice(shapes))

    def scalar(self, dtype: str, number: float, shape: tuple[int, ...] = ()) -> Value:
        """One number as an initializer, at times as an array that repeats it."""
        return self.hold(np.full(shape, number).astype(numpy_type(dtype)))

    def pick(self, dtypes: tuple[str, ...], *, rank: tuple[int, int] = (0, 5), exact: bool = False) -> Value:
        """A value that fits, preferring late ones; a fresh leaf where there is none."""
        fits = [v for v in self.values if v.dtype in dtypes and rank[0] <= v.rank <= rank[1] and usable(v, exact)]
        if fits and self.chance(0.9):
            return self.random.choice(fits[-6:])
        low = max(rank[0], 1 if rank[1] else 0)
        dtype = dtypes[0] if self.chance(0.6) else self.random.choice(dtypes)
        return self.leaf(dtype, self.shape(low, min(rank[1], 4)))

    def partner(self, x: Value) -> Value:
        """A second operand whose shape broadcasts with x's to x's."""
        same = [v for v in self.values if v.dtype == x.dtype and v.shape == x.shape and usable(v)]
        if same and self.chance(0.5):
            return self.random.choice(same)
        shape = tuple(1 if self.chance(0.3) else n for n in x.shape)
        shape = shape[self.random.randint(0, len(shape)) :] if self.chance(0.5) else shape
        return self.leaf(x.dtype, shape)

    def node(
        self, op: str, inputs: Sequence[Value | None], *results: Value, domain: str = "", **attributes: Any
    ) -> Value:
        """Append a node, and return its first result; names are chosen here. Raises Skip where the opset lacks it."""
        self.allow(op, inputs, results, domain, attributes)
        names = [f"{self.prefix}n{len(self.nodes)}_{k}" for k in range(len(results))]
        operands = ["" if v is None else v.name for v in inputs]
        while operands and not operands[-1]:
            operands.pop()
        self.nodes.append(helper.make_node(op, operands, names, domain=domain, **attributes))
        for name, result in zip(names, results, strict=True):
            value = replace(result, name=name)
            self.values.append(value)
            self.outputs[name] = value
        return self.values[-len(results)]

    def last(self, count: int) -> list[Value]:
        """The results of the last node that has `count`."""
        return self.values[-count:]

    def allow(
        self,
        op: str,
        inputs: Sequence[Value | None],
        results: Sequence[Value],
        domain: str,
        attributes: dict[str, Any],
    ) -> None:
        """Raise Skip unless the operator at the model's opset has these types and attributes."""
        if domain:
            return
        allowed = _signature(op, self.opset)
        given = max((i + 1 for i, value in enumerate(inputs) if value is not None), default=0)
        if allowed is None or given < allowed.least or not set(attributes) <= allowed.attributes:
            raise Skip(op)
        if any(r.dtype not in types for r, types in zip(results, allowed.outputs, strict=False)):
            raise Skip(op)
        for i, value in enumerate(inputs):
            types = allowed.inputs[i] if i < len(allowed.inputs) else allowed.more
            if value is not None and value.dtype not in types:
                raise Skip(op)

    @contextmanager
    def step(self) -> Iterator[None]:
        """All or nothing: a Skip inside leaves the graph as it was."""
        parts: list[Any] = [self.values, self.nodes, self.inputs, self.initializers, self.outputs, self.functions]
        marks = [len(part) for part in parts]
        try:
            yield
        except Skip:
            for part, mark in zip(parts, marks, strict=True):
                for key in list(part)[mark:]:
                    part.pop() if isinstance(part, list) else part.pop(key)

    def case(self, label: str) -> Case:
        """The model; its outputs are the values no node reads, and a few more."""
        used = {name for node in self.nodes for name in node.input}
        chosen = [v for v in self.outputs.values() if v.name not in used or self.chance(0.1)]
        tolerances = {v.name: v.error for v in self.outputs.values()}
        return Case(self.model(chosen), dict(self.inputs), tolerances, label, self.special)

    def model(self, outputs: Sequence[Value]) -> ModelProto:
        proto: GraphProto = helper.make_graph(
            self.nodes,
            "fuzz",
            [info(Value(name, str(a.dtype), a.shape)) for name, a in self.inputs.items()],
            [info(v) for v in outputs],
            [numpy_helper.from_array(a, name) for name, a in self.initializers.items()],
        )
        domains = domains_of(self.nodes)
        imports = [helper.make_opsetid("", self.opset), *(helper.make_opsetid(d, 1) for d in sorted(domains))]
        version = helper.find_min_ir_version_for(imports, ignore_unknown=True)
        return helper.make_model(proto, opset_imports=imports, ir_version=max(8, version), functions=self.functions)


def domains_of(nodes: Iterable[NodeProto]) -> set[str]:
    """The domains of operators that nodes and their bodies use, the standard's left aside."""
    found = {node.domain for node in nodes} - {""}
    return found.union(*(domains_of(a.g.node) for node in nodes for a in node.attribute))


def usable(value: Value, exact: bool = False) -> bool:
    """Whether the value is of moderate size, and exact (or exact enough) to be built on."""
    limit = 0.25 if value.dtype in ("float16", "bfloat16") else 0.02
    return value.bound < 100 and (value.error == 0 if exact else value.error <= limit)


def info(value: Value) -> Any:
    """The type of a value as ONNX writes it."""
    return helper.make_tensor_value_info(value.name, onnx_type(value.dtype), value.shape)


def onnx_type(dtype: str) -> int:
    return helper.np_dtype_to_tensor_dtype(numpy_type(dtype))


def numpy_type(dtype: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def _with_special_values(array: Array, source: np.random.Generator) -> Array:
    numbers = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -1e-310, 1.0], np.float64).astype(array.dtype)
    return np.where(source.random(array.shape) < 0.2, source.choice(numbers, array.shape), array)


@dataclass(frozen=True)
class _Signature:
    """What an operator takes at an opset: types of each input, of those behind the last, and of outputs.

    Also its attributes, and the least number of inputs.
    """

    inputs: tuple[frozenset[str], ...]
    more: frozenset[str]
    outputs: tuple[frozenset[str], ...]
    attributes: frozenset[str]
    least: int


_SPELLINGS = {"float": "float32", "double": "float64"}


@cache
def _signature(op: str, opset: int) -> _Signature | None:
    try:
        schema = defs.get_schema(op, opset)
    except defs.SchemaError:
        return None
    if schema.deprecated:
        return None
    types, outputs = (
        tuple(frozenset(_SPELLINGS.get(t[7:-1], t[7:-1]) for t in p.types if t.startswith("tensor(")) for p in formal)
        for formal in (schema.inputs, schema.outputs)
    )
    variadic = bool(schema.inputs) and schema.inputs[-1].option == defs.OpSchema.FormalParameterOption.Variadic
    return _Signature(
        types, types[-1] if variadic else frozenset(), outputs, frozenset(schema.attributes), schema.min_input
    )
