"""LabelEncoder and CategoryMapper: a table from keys to values, for numbers at run time and strings that are known."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.rules.constants import constant_of
from onnxla.frontends.onnx.rules.ml_scores import ML
from onnxla.frontends.onnx.values import ChosenStrings, StringConstant, Value
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S32, Array


@onnx_op("LabelEncoder", until=1, domain=ML)
def label_encoder_of_classes(node: NodeView, b: Builder) -> Value:
    """Between strings and their numbers in `classes_strings`."""
    classes = list(node.strings("classes_strings", ()))
    numbers = list(range(len(classes)))
    if isinstance(node.value(0), (StringConstant, ChosenStrings)):
        return _mapped(node, b, classes, np.array(numbers, np.int64), np.int64(node.int("default_int64", -1)))
    values = np.array(classes, object)
    return _mapped(node, b, numbers, values, node.string("default_string", "_Unused"))


@onnx_op("LabelEncoder", since=2, domain=ML)
def label_encoder(node: NodeView, b: Builder) -> Value:
    keys = _keys(node)
    values, default = _values(node)
    if len(keys) != len(values):
        node.shape_error(f"{len(keys)} keys do not fit {len(values)} values")
    return _mapped(node, b, keys, values, default)


def _keys(node: NodeView) -> Sequence[Any]:
    tensor = node.tensor("keys_tensor")
    if tensor is not None:
        return list(tensor.reshape(-1))
    return node.strings("keys_strings", ()) or node.ints("keys_int64s", ()) or node.floats("keys_floats", ())


def _values(node: NodeView) -> tuple[Array, Any]:
    """The values, and what stands for every other key."""
    tensor, default = node.tensor("values_tensor"), node.tensor("default_tensor")
    if tensor is not None:
        absent = {"O": "_Unused", "f": -0.0}.get(tensor.dtype.kind, -1)
        return tensor.reshape(-1), absent if default is None else default.reshape(-1)[0]
    if node.has("values_strings"):
        return np.array(node.strings("values_strings"), object), node.string("default_string", "_Unused")
    if node.has("values_int64s"):
        return np.array(node.ints("values_int64s"), np.int64), node.int("default_int64", -1)
    return np.array(node.floats("values_floats"), np.float32), node.float("default_float", -0.0)


@onnx_op("CategoryMapper", domain=ML)
def category_mapper(node: NodeView, b: Builder) -> Value:
    strings, numbers = list(node.strings("cats_strings")), list(node.ints("cats_int64s"))
    if len(strings) != len(numbers):
        node.shape_error("cats_strings and cats_int64s differ in length")
    if isinstance(node.value(0), (StringConstant, ChosenStrings)):
        return _mapped(node, b, strings, np.array(numbers, np.int64), node.int("default_int64", -1))
    return _mapped(node, b, numbers, np.array(strings, object), node.string("default_string", "_Unused"))


def _mapped(node: NodeView, b: Builder, keys: Sequence[Any], values: Array, default: Any) -> Value:
    """Each element of input 0 replaced by the value of the first key that equals it, or by `default`."""
    x = node.value(0)
    if isinstance(x, ChosenStrings):
        return _at(b, _looked_up(np.array(x.table, object), keys, values, default), x.places)
    known = x.array if isinstance(x, StringConstant) else node.known(0)
    if known is not None:
        return constant_of(b, _looked_up(known, keys, values, default))
    if keys and isinstance(keys[0], str):
        node.unsupported(
            "the keys are strings, and the input is numbers",
            "give keys of the input's type, keys_int64s or keys_floats",
        )
    return _at(b, np.append(values, np.array(default, values.dtype)), _place(b, node.input(0), np.array(keys)))


def _at(b: Builder, table: Array, places: Instruction) -> Value:
    """table[places], for numbers or strings."""
    if table.dtype == object:
        return ChosenStrings(places, tuple(map(str, table)))
    return b.take(b.constant(table), places, 0)


def _looked_up(x: Array, keys: Sequence[Any], values: Array, default: Any) -> Array:
    table = {key: value for key, value in reversed(list(zip(keys, values, strict=True)))}
    nan = [value for key, value in zip(keys, values, strict=True) if key != key]
    found = [table.get(k, nan[0] if nan and k != k else default) for k in x.reshape(-1).tolist()]
    return np.array(found, values.dtype).reshape(x.shape)


def _place(b: Builder, x: Instruction, keys: Array) -> Instruction:
    """The first i with keys[i] == x, where NaN equals NaN; the number of keys where there is none."""
    count = len(keys)
    shape = (*x.shape, count)
    element = b.broadcast(x, shape, range(len(x.shape)))
    key = b.broadcast(b.constant(keys, x.tensor_type.element), shape, [len(x.shape)])
    equal = b.compare(element, key, "EQ")
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        equal = b.or_(equal, b.and_(b.is_nan(element), b.is_nan(key)))
    positions = b.iota(element.tensor_type.with_element(S32), len(x.shape))
    return b.reduce_by("minimum", b.select(equal, positions, b.full_like(positions, count)), [len(x.shape)])
