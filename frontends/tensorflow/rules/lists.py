"""TensorList: lists of known length whose elements have one shape, as a tensor that stacks them.

What recurrent networks and maps keep their steps in. An element's shape may become known only with the first write.
"""

from dataclasses import replace

import numpy as np

from onnxla.frontends.dependence import SPECIALISABLE_ELEMENTS
from onnxla.frontends.tensorflow.element_types import VARIANT
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.frontends.tensorflow.values import ListValue, Uniform
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import S32, S64


def _known_shape(node: NodeView, operand: int) -> tuple[int | None, ...] | None:
    """An element shape operand: a vector with -1 for unknown sizes, or -1 alone for an unknown rank."""
    value = node.constant(operand)
    if value.ndim == 0:
        return None
    return tuple(None if n < 0 else int(n) for n in value)


def empty_stack(b: Builder, value: ListValue, shape: tuple[int, ...]) -> Instruction:
    return b.full((value.length, *shape), 0, value.element)


def written_out(node: NodeView, b: Builder, value: ListValue) -> Instruction:
    """The stack; zeros where nothing was written. A DynamicShapeError problem where the elements' shape is open."""
    if value.count is not None:
        return _of_known_count(node, b, value)
    if value.stack is not None:
        return value.stack
    if value.shape is None or None in value.shape:
        node.dynamic_shape("the shape of the list's elements is not known", "write to the list before it is read")
    return empty_stack(b, value, tuple(n for n in value.shape if n is not None))


def _of_known_count(node: NodeView, b: Builder, value: ListValue) -> Instruction:
    """The stack of a list that grew, whose count must be known by now."""
    assert value.count is not None
    known = node.host.known_value(value.count)
    if known is None:
        node.dynamic_shape("how many elements the list has is known at run time only", "reserve the list in its length")
    stack = value.stack if value.stack is not None else written_out(node, b, replace(value, count=None))
    limits = (int(known), *stack.shape[1:])
    return b.slice(stack, [0] * len(limits), limits)


def _list_of(node: NodeView, operand: int, length: int) -> ListValue:
    if node.code("element_dtype") == VARIANT:
        node.unsupported("a list of lists", "lists of tensors are supported")
    shape = _known_shape(node, operand)
    return ListValue(length, node.element("element_dtype"), None, shape)


@tf_op("TensorListReserve")
def reserve(node: NodeView, b: Builder) -> ListValue:
    return _list_of(node, 0, node.constant_int(1))


@tf_op("EmptyTensorList")
def empty(node: NodeView, b: Builder) -> ListValue:
    """With a bound on its elements, which loops give, it grows; without one its length must be known at each write."""
    most = node.known(1)
    if most is None or int(most) < 1:
        return _list_of(node, 0, 0)
    return replace(_list_of(node, 0, int(most)), count=b.constant(0, S64), uniform=Uniform(None))


@tf_op("TensorListFromTensor")
def from_tensor(node: NodeView, b: Builder) -> ListValue:
    stack = node.input(0)
    return ListValue(stack.shape[0], stack.tensor_type.element, stack)


@tf_op("TensorListLength")
def length(node: NodeView, b: Builder) -> Instruction:
    value = node.tensor_list(0)
    return b.constant(value.length, S32) if value.count is None else b.convert(value.count, S32)


@tf_op("TensorListElementShape")
def element_shape(node: NodeView, b: Builder) -> Instruction:
    return b.constant(list(written_out(node, b, node.tensor_list(0)).shape[1:]), node.element("shape_type"))


@tf_op("TensorListGetItem")
def get_item(node: NodeView, b: Builder) -> Instruction:
    value, place = node.tensor_list(0), node.input(1)
    stack = value.stack
    if stack is None:
        shape = _known_shape(node, 2)
        if shape is not None and None not in shape:
            return b.full([n for n in shape if n is not None], 0, value.element)
        stack = written_out(node, b, value)
    return item_at(node, b, replace(value, stack=stack), place)


def item_at(node: NodeView, b: Builder, value: ListValue, place: Instruction) -> Instruction:
    """The element at a place that need not be known."""
    stack = value.stack if value.stack is not None else written_out(node, b, value)
    if value.length == 0:
        node.shape_error("an element of an empty list is read")
    zero = b.constant(0, S64)
    starts = [b.convert(b.reshape(place, ()), S64), *(zero for _ in stack.shape[1:])]
    return b.reshape(b.dynamic_slice(stack, starts, (1, *stack.shape[1:])), stack.shape[1:])


@tf_op("TensorListSetItem")
def set_item(node: NodeView, b: Builder) -> ListValue:
    return with_item(node, b, node.tensor_list(0), node.input(1), node.input(2))


def with_item(node: NodeView, b: Builder, value: ListValue, place: Instruction, item: Instruction) -> ListValue:
    """The list with the element at a place replaced."""
    stack = empty_stack(b, value, item.shape) if value.stack is None else value.stack
    if stack.shape[1:] != item.shape:
        node.dynamic_shape(
            f"an element of {item.tensor_type} in a list of {list(stack.shape[1:])}", "give all one shape"
        )
    zero = b.constant(0, S64)
    starts = [b.convert(b.reshape(place, ()), S64), *(zero for _ in item.shape)]
    update = b.reshape(item, (1, *item.shape))
    return replace(value, stack=b.dynamic_update_slice(stack, update, starts), uniform=None)


@tf_op("TensorListPushBack")
def push_back(node: NodeView, b: Builder) -> ListValue:
    """Where the length is known: in a loop it changes, which a loop that is written out allows."""
    value, item = node.tensor_list(0), node.input(1)
    if value.count is not None:
        grown = with_item(node, b, value, value.count, item)
        count = b.add(value.count, b.full_like(value.count, 1))
        return replace(grown, count=count, uniform=_still_uniform(node, value, item))
    one = b.reshape(item, (1, *item.shape))
    stack = one if value.length == 0 else b.concatenate([written_out(node, b, value), one], 0)
    return ListValue(value.length + 1, value.element, stack)


def _still_uniform(node: NodeView, value: ListValue, item: Instruction) -> Uniform | None:
    """What is known of all elements once `item` is one of them."""
    known = node.host.known_value(item) if item.tensor_type.size <= SPECIALISABLE_ELEMENTS else None
    if value.uniform is None or known is None:
        return None
    before = value.uniform.value
    return Uniform(known) if before is None or np.array_equal(before, known) else None


@tf_op("TensorListPopBack", outputs=("output_handle", "tensor"))
def pop_back(node: NodeView, b: Builder) -> list[ListValue | Instruction]:
    value = node.tensor_list(0)
    if value.length == 0:
        node.shape_error("an element of an empty list is read")
    if value.count is not None:
        place = b.subtract(value.count, b.full_like(value.count, 1))
        if value.uniform is not None and value.uniform.value is not None:
            element = b.constant(value.uniform.value)
        else:
            element = item_at(node, b, replace(value, count=None), place)
        return [replace(value, count=place), element]
    stack, last = written_out(node, b, value), value.length - 1
    rest = [0] * (len(stack.shape) - 1)
    item = b.slice(stack, [last, *rest], stack.shape)
    kept = b.slice(stack, [0, *rest], [last, *stack.shape[1:]])
    return [ListValue(last, value.element, kept), b.reshape(item, stack.shape[1:])]


@tf_op("TensorListStack")
def stack(node: NodeView, b: Builder) -> Instruction:
    value = node.tensor_list(0)
    if value.stack is None and (value.shape is None or None in value.shape):
        shape = _known_shape(node, 1)
        value = replace(value, shape=shape if shape is not None else value.shape)
    return written_out(node, b, value)


@tf_op("TensorListConcatV2", "TensorListConcat", outputs=("tensor", "lengths"))
def concat(node: NodeView, b: Builder) -> list[Instruction]:
    whole = written_out(node, b, node.tensor_list(0))
    return [concatenated(node, b, whole), b.constant([whole.shape[1]] * whole.shape[0], S64)]


def concatenated(node: NodeView, b: Builder, stack: Instruction) -> Instruction:
    """The elements end to end along their first dimension."""
    if len(stack.shape) < 2:
        node.shape_error("elements without dimensions cannot be joined")
    count, each = stack.shape[:2]
    return b.reshape(stack, (count * each, *stack.shape[2:]))


@tf_op("TensorListSplit")
def split(node: NodeView, b: Builder) -> ListValue:
    x, lengths = node.input(0), set(node.constant_ints(2))
    if len(lengths) != 1:
        node.dynamic_shape("the parts differ in length", "make all parts as long")
    each = lengths.pop()
    whole = b.reshape(x, (x.shape[0] // each, each, *x.shape[1:]))
    return ListValue(whole.shape[0], x.tensor_type.element, whole)


@tf_op("TensorListGather")
def gather(node: NodeView, b: Builder) -> Instruction:
    return b.take(written_out(node, b, node.tensor_list(0)), node.input(1), 0)


@tf_op("TensorListResize")
def resize(node: NodeView, b: Builder) -> ListValue:
    value, wanted = node.tensor_list(0), node.constant_int(1)
    if value.stack is None:
        return replace(value, length=wanted)
    own, rank = value.length, len(value.stack.shape)
    rest = [0] * (rank - 1)
    if wanted <= own:
        kept = b.slice(value.stack, [0] * rank, [wanted, *value.stack.shape[1:]])
    else:
        kept = b.pad(value.stack, b.constant(0, value.element), [0] * rank, [wanted - own, *rest])
    return replace(value, length=wanted, stack=kept, uniform=None)
