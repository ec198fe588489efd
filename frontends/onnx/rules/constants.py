"""Values known while compiling: Constant, ConstantOfShape, Shape, Size; and Identity."""

import math

import numpy as np

from onnxla.frontends.onnx.node_view import NodeView
from onnxla.frontends.onnx.registry import onnx_op
from onnxla.frontends.onnx.values import ChosenStrings, StringConstant, Value
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S64, Array, Shape, element_of


def constant_of(b: Builder, array: Array) -> Value:
    """A constant of numbers or of strings."""
    return StringConstant(array) if array.dtype == object else b.constant(array)


@onnx_op("Constant")
def constant(node: NodeView, b: Builder) -> Value:
    value = node.tensor("value")
    if value is not None:
        return constant_of(b, value)
    if node.has("sparse_value"):
        return b.constant(node.sparse_tensor("sparse_value"))
    if node.has("value_float"):
        return b.constant(np.float32(node.float("value_float")))
    if node.has("value_floats"):
        return b.constant(np.array(node.floats("value_floats"), np.float32))
    if node.has("value_int"):
        return b.constant(np.int64(node.int("value_int")))
    if node.has("value_ints"):
        return b.constant(np.array(node.ints("value_ints"), np.int64))
    if node.has("value_string"):
        return StringConstant(np.array(node.string("value_string"), object))
    if node.has("value_strings"):
        return StringConstant(np.array(node.strings("value_strings"), object))
    node.unsupported("Constant without a value", "give the node one of the attributes that hold a value")


@onnx_op("ConstantOfShape", since=9)
def constant_of_shape(node: NodeView, b: Builder) -> Instruction:
    shape = node.constant_ints(0)
    if any(n < 0 for n in shape):
        node.shape_error(f"ConstantOfShape with a negative size: {list(shape)}")
    value = node.tensor("value")
    if value is None:
        value = np.zeros(1, np.float32)
    if value.size != 1:
        node.shape_error(f"ConstantOfShape has a value of {value.size} elements; one was expected")
    return b.full(shape, value.reshape(()).item(), element_of(value.dtype))


def static_shape(node: NodeView) -> Shape:
    """The shape of input 0, whatever tensor it is."""
    value = node.value(0)
    if isinstance(value, StringConstant):
        return tuple(value.array.shape)
    if isinstance(value, ChosenStrings):
        return value.places.shape
    return node.input(0).shape


@onnx_op("Shape", until=14)
def shape(node: NodeView, b: Builder) -> Instruction:
    return b.constant(np.array(static_shape(node), np.int64))


@onnx_op("Shape", since=15)
def shape_between(node: NodeView, b: Builder) -> Instruction:
    """Python's slicing rule holds for start and end: out of range is clamped, negative counts from the end."""
    sizes = static_shape(node)[node.int("start", 0) : node.int("end", None)]
    return b.constant(np.array(sizes, np.int64))


@onnx_op("Size")
def size(node: NodeView, b: Builder) -> Instruction:
    return b.constant(math.prod(static_shape(node)), S64)


@onnx_op("Identity")
def identity(node: NodeView, b: Builder) -> Value:
    return node.value(0)
