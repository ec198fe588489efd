"""Reductions and windows: over nothing, over reordered data, one after the other, and over padding."""

import dataclasses

from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import Window, WindowDimension
from onnxla.hlo.ops.reduction import Reduce, ReduceWindow, identity_of, simple_combiner
from onnxla.hlo.ops.shape import Broadcast, Pad, Reshape, Transpose
from onnxla.hlo.types import TensorType
from onnxla.passes.pattern import any_of, splat_value
from onnxla.passes.quantized import Quantized, is_positive
from onnxla.passes.rewrite import NoMatch, Replacement, RuleTable
from onnxla.passes.simplify.shape import without_ones

REDUCTION = RuleTable()
rule = REDUCTION.rule


def starts_neutral(root: Instruction) -> bool:
    """Whether a reduction of one tensor starts from its combiner's identity (0.0 counts for sums)."""
    op = root.op
    assert isinstance(op, Reduce | ReduceWindow)
    opcode = simple_combiner(op.to_apply)
    init = splat_value(root.operands[1]) if len(root.operands) == 2 else None
    if opcode is None or init is None:
        return False
    return opcode in _COMBINERS and bool(init == identity_of(opcode, root.tensor_type.element))


_COMBINERS = ("add", "multiply", "maximum", "minimum", "and", "or", "xor")


@rule(any_of("reduce"))
def reduce_over_ones(b: Builder, root: Instruction) -> Replacement:
    """A reduction over dimensions of size 1 from the identity is a reshape."""
    op = root.op
    assert isinstance(op, Reduce)
    if not isinstance(root.type, TensorType) or not starts_neutral(root):
        return NoMatch("it starts from a value")
    operand = root.operands[0]
    if any(operand.shape[d] != 1 for d in op.dimensions):
        return NoMatch("it combines")
    return b.reshape(operand, root.shape)


@rule(any_of("reduce"))
def reduce_no_dimension_of_one(b: Builder, root: Instruction) -> Replacement:
    """Dimensions of size 1 are reshaped away instead of reduced."""
    op = root.op
    assert isinstance(op, Reduce)
    operand = root.operands[0]
    ones = [d for d in op.dimensions if operand.shape[d] == 1]
    if not isinstance(root.type, TensorType) or len(root.operands) != 2 or not ones or len(ones) == len(op.dimensions):
        return NoMatch("none to drop")
    kept = [d for d in range(len(operand.shape)) if d not in ones]
    dimensions = [kept.index(d) for d in op.dimensions if d not in ones]
    return b.reduce([b.reshape(operand, [operand.shape[d] for d in kept])], [root.operands[1]], dimensions, op.to_apply)


@rule(any_of("reduce"))
def reduce_of_transpose(b: Builder, root: Instruction) -> Replacement:
    """A reduction reads its operand in any order; only the order of what it keeps matters."""
    op = root.op
    assert isinstance(op, Reduce)
    count = len(root.operands) // 2
    source = root.operands[0]
    if count != 1 or not isinstance(source.op, Transpose):
        return NoMatch("no transpose")
    permutation = source.op.permutation
    kept = [permutation[d] for d in range(len(permutation)) if d not in op.dimensions]
    dimensions = sorted(permutation[d] for d in op.dimensions)
    narrow = b.reduce([source.operands[0]], [root.operands[1]], dimensions, op.to_apply)
    order = sorted(kept)
    return b.transpose(narrow, [order.index(d) for d in kept])


@rule(any_of("reduce"))
def reduce_of_reshape(b: Builder, root: Instruction) -> Replacement:
    """A reshape that only adds dimensions of size 1 is not needed below a reduction."""
    op = root.op
    assert isinstance(op, Reduce)
    source = root.operands[0]
    if len(root.operands) != 2 or not isinstance(source.op, Reshape):
        return NoMatch("no reshape")
    inner = source.operands[0]
    if without_ones(inner.shape) != without_ones(source.shape) or not all(inner.shape):
        return NoMatch("dimensions are split or joined")
    if any(source.shape[d] == 1 for d in op.dimensions):
        return NoMatch("ones are reduced")
    places = [d for d, n in enumerate(inner.shape) if n != 1]
    outer = [d for d, n in enumerate(source.shape) if n != 1]
    dimensions = [places[outer.index(d)] for d in op.dimensions]
    return b.reshape(b.reduce([inner], [root.operands[1]], dimensions, op.to_apply), root.shape)


@rule(any_of("reduce"))
def merge_reduces(b: Builder, root: Instruction) -> Replacement:
    """A reduction of a reduction with one combiner is one reduction."""
    op = root.op
    assert isinstance(op, Reduce)
    inner = root.operands[0]
    if not isinstance(root.type, TensorType) or not isinstance(inner.op, Reduce) or len(inner.users) != 1:
        return NoMatch("no reduction below")
    same = simple_combiner(op.to_apply) == simple_combiner(inner.op.to_apply)
    if len(inner.operands) != 2 or not same or not starts_neutral(inner) or simple_combiner(op.to_apply) is None:
        return NoMatch("they differ")
    operand = inner.operands[0]
    kept = [d for d in range(len(operand.shape)) if d not in inner.op.dimensions]
    dimensions = sorted([*inner.op.dimensions, *(kept[d] for d in op.dimensions)])
    return b.reduce([operand], [root.operands[1]], dimensions, op.to_apply)


@rule(any_of("reduce"))
def reduce_of_repeated(b: Builder, root: Instruction) -> Replacement:
    """The extreme of repeated elements is that of one of each."""
    op = root.op
    assert isinstance(op, Reduce)
    source = root.operands[0]
    if not isinstance(source.op, Broadcast) or len(root.operands) != 2 or not all(source.shape):
        return NoMatch("nothing is repeated")
    if simple_combiner(op.to_apply) not in ("maximum", "minimum", "and", "or"):
        return NoMatch("repetition counts")
    placed = source.op.dimensions
    if not all(d in placed or d in op.dimensions for d in range(len(source.shape))):
        return NoMatch("it repeats what is kept")
    dimensions = [i for i, d in enumerate(placed) if d in op.dimensions]
    if not dimensions and not starts_neutral(root):
        return NoMatch("it starts from a value")
    narrow = source.operands[0]
    return b.reduce([narrow], [root.operands[1]], dimensions, op.to_apply) if dimensions else narrow


@rule(any_of("reduce-window"))
def window_of_one(root: Instruction) -> Replacement:
    """A window of one element that visits each element once changes nothing."""
    op = root.op
    assert isinstance(op, ReduceWindow)
    if not isinstance(root.type, TensorType) or not all(d.is_trivial for d in op.window.dimensions):
        return NoMatch("it combines")
    return root.operands[0] if starts_neutral(root) else NoMatch("it starts from a value")


@rule(any_of("reduce-window"))
def window_over_everything(b: Builder, root: Instruction) -> Replacement:
    """A window as large as the tensor is a reduction."""
    op, (operand, init, *rest) = root.op, root.operands
    assert isinstance(op, ReduceWindow)
    if rest:
        return NoMatch("several operands")
    dimensions = []
    for d, (window, size) in enumerate(zip(op.window.dimensions, operand.shape, strict=True)):
        whole = window.size == size and not window.pad_low and not window.pad_high and window.window_dilation == 1
        if whole and window.base_dilation == 1 and size > 1:
            dimensions.append(d)
        elif not (window.is_trivial or whole):
            return NoMatch("it slides")
    if not dimensions:
        return NoMatch("it combines nothing")
    return b.reshape(b.reduce([operand], [init], dimensions, op.to_apply), root.shape)


@rule(any_of("reduce-window"))
def padding_into_window(b: Builder, root: Instruction) -> Replacement:
    """Padding with the identity is the window's own padding."""
    op, operand = root.op, root.operands[0]
    assert isinstance(op, ReduceWindow)
    if not isinstance(operand.op, Pad) or not starts_neutral(root):
        return NoMatch("no padding")
    value, init = splat_value(operand.operands[1]), splat_value(root.operands[1])
    if value is None or init is None or value != init:
        return NoMatch("another value")
    window = widened(op.window, operand.op, range(len(op.window.dimensions)))
    if window is None:
        return NoMatch("holes or crops")
    return b.reduce_window([operand.operands[0]], [root.operands[1]], window, op.to_apply)


def widened(window: Window, pad: Pad, dimensions: "range | tuple[int, ...]") -> Window | None:
    """`window` with the padding of `pad` added; entry i slides along dimension `dimensions[i]` of the pad."""
    if any(pad.interior) or min((*pad.low, *pad.high, 0)) < 0:
        return None
    entries = []
    for entry, d in zip(window.dimensions, dimensions, strict=True):
        if entry.base_dilation != 1 and (pad.low[d] or pad.high[d]):
            return None
        if entry.pad_low < 0 or entry.pad_high < 0:
            return None
        low, high = entry.pad_low + pad.low[d], entry.pad_high + pad.high[d]
        entries.append(dataclasses.replace(entry, pad_low=low, pad_high=high))
    return Window(tuple(entries))


@rule(any_of("reduce-window"))
def maximum_of_bytes(b: Builder, root: Instruction) -> Replacement:
    """The largest of (q - zero) * scale in each window is that of the largest q, for a positive scale."""
    op = root.op
    assert isinstance(op, ReduceWindow)
    if not isinstance(root.type, TensorType) or simple_combiner(op.to_apply) != "maximum" or not starts_neutral(root):
        return NoMatch("no maximum")
    value = Quantized.of(root.operands[0])
    if value is None or value.scale is None or value.axis is not None or not is_positive(value.scale):
        return NoMatch("no bytes with one positive scale")
    if not all(_is_never_empty(w) for w in op.window.dimensions):
        return NoMatch("a window may lie beside the elements, where the maximum is minus infinity")
    element = value.bits.tensor_type.element
    start = b.constant(identity_of("maximum", element))
    most = b.reduce_window((value.bits,), (start,), op.window, b.combiner("maximum", element))
    return dataclasses.replace(value, bits=most).dequantized(b)


def _is_never_empty(w: WindowDimension) -> bool:
    """Whether every place of the window covers an element, whatever their number is."""
    dense = w.base_dilation == 1 == w.window_dilation
    return dense and 0 <= w.pad_low < w.size and 0 <= w.pad_high < w.size
