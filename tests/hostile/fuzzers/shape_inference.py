"""Shape rules: the bytes choose an operator, its opset, attributes, input types and constants, so that models parse.

Attributes are those that onnx's schema names, with values of the right type mostly; constants are small or extreme.
"""

import random
from functools import cache
from typing import Any

import numpy as np
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper
from onnx.defs import OpSchema, SchemaError, get_schema

from onnxla.frontends.onnx.registry import RuleEntry, coverage
from onnxla.hlo.types import Array
from tests.hostile.fuzzers.atheris_main import main
from tests.hostile.fuzzers.importer import run as import_bytes
from tests.hostile.fuzzers.mutation import FLOATS, NUMBERS
from tests.hostile.fuzzers.target import Target

_TYPES = (1, 1, 1, 1, 7, 7, 6, 9, 10, 11, 16, 2, 3, 5, 12, 13, 14, 8)
_SIZES = (0, 1, 1, 2, 2, 3, 4, 5, 8)
_LENGTH = 256


class Draws:
    """Choices that the bytes make, one each; behind the last byte always the first choice."""

    def __init__(self, data: bytes) -> None:
        self._data = iter(data)

    def below(self, end: int) -> int:
        return next(self._data, 0) % end

    def choice(self, options: tuple[int, ...]) -> int:
        return options[self.below(len(options))]

    def integer(self) -> int:
        return self.below(7) - 3 if self.below(4) else self.choice(NUMBERS)

    def number(self) -> float:
        return FLOATS[self.below(len(FLOATS))]

    def shape(self) -> list[int]:
        return [self.choice(_SIZES) for _ in range(self.below(6))]


@cache
def _entries() -> list[RuleEntry]:
    return list(coverage())


def model_of_bytes(data: bytes) -> ModelProto:
    """The model that the bytes choose."""
    draws = Draws(data)
    entries = _entries()
    entry = entries[(draws.below(256) << 8 | draws.below(256)) % len(entries)]
    newest = min(entry.until or entry.since + 20, 26)
    opset = entry.since + draws.below(max(newest - entry.since, 0) + 1)
    schema = _schema(entry, opset)
    node = NodeProto(op_type=entry.name, domain=entry.domain, name="node")
    inputs, weights = [], []
    arity = len(schema.inputs) if schema else 3
    for k in range(max(arity + draws.below(3) - 1, 0)):
        name = f"x{k}" if draws.below(12) else ""
        node.input.append(name)
        if name and draws.below(2):
            inputs.append(helper.make_tensor_value_info(name, draws.choice(_TYPES), draws.shape()))
        elif name:
            weights.append(_constant(name, draws))
    node.output.extend(f"y{k}" for k in range(draws.below(3) + 1))
    for attribute in schema.attributes.values() if schema else ():
        if attribute.required or draws.below(2):
            node.attribute.append(_attribute(attribute, draws))
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output]
    graph = helper.make_graph([node], "g", inputs, outputs, weights)
    opsets = [helper.make_opsetid("", opset if entry.domain == "" else 17)]
    opsets += [helper.make_opsetid(entry.domain, opset)] if entry.domain else []
    return helper.make_model(graph, opset_imports=opsets)


def _schema(entry: RuleEntry, opset: int) -> OpSchema | None:
    try:
        return get_schema(entry.name, opset, entry.domain)
    except SchemaError:
        return None


def _constant(name: str, draws: Draws) -> TensorProto:
    kind = draws.below(4)
    shape = draws.shape() if kind else []
    count = int(np.prod(shape, dtype=np.int64))
    if kind < 3:
        values: Array = np.array([draws.integer() for _ in range(min(count, 40))], np.int64)
        element = TensorProto.INT64
    else:
        values = np.array([draws.number() for _ in range(min(count, 40))], np.float32)
        element = TensorProto.FLOAT
    return helper.make_tensor(name, element, shape, np.resize(values, count) if count else [])


def _attribute(attribute: OpSchema.Attribute, draws: Draws) -> AttributeProto:
    declared: Any = attribute.type
    kind: Any = declared.value if draws.below(16) else draws.below(15)
    made = AttributeProto(name=attribute.name, type=kind)
    match made.type:
        case AttributeProto.INT:
            made.i = draws.integer()
        case AttributeProto.INTS:
            made.ints.extend(draws.integer() for _ in range(draws.below(7)))
        case AttributeProto.FLOAT:
            made.f = draws.number()
        case AttributeProto.FLOATS:
            made.floats.extend(draws.number() for _ in range(draws.below(7)))
        case AttributeProto.STRING:
            made.s = (b"", b"SAME_UPPER", b"linear", b"constant", b"\xff", b"reflect", b"bidirectional")[draws.below(7)]
        case AttributeProto.STRINGS:
            made.strings.extend([b"a", b"", b"Tanh"][: draws.below(4)])
        case AttributeProto.TENSOR:
            made.t.CopyFrom(_constant("t", draws))
        case AttributeProto.GRAPH:
            made.g.node.add(op_type="Identity", input=["x0"], output=["z"])
            made.g.output.add(name="z")
    return made


def run(data: bytes) -> None:
    import_bytes(model_of_bytes(data).SerializeToString())


@cache
def seeds() -> list[bytes]:
    rng = random.Random(7)
    return [k.to_bytes(2, "big") + rng.randbytes(_LENGTH) for k in range(len(_entries()))]


TARGET = Target("shape_inference", seeds, run)

if __name__ == "__main__":
    main(TARGET)
