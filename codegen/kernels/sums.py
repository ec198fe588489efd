"""Sums at an index: reductions, windows and contractions as loops around their operands' values.

These are the plain forms, for element types and shapes that no schedule of their own takes. Each
function is the rule of one HLO operation for `ValueEmitter`; `RULES` lists them.
"""

from collections.abc import Callable, Mapping, Sequence

from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import Value
from onnxla.codegen.kernels.value import Emitted, Index, Rule, ValueEmitter
from onnxla.hlo.module import Instruction
from onnxla.hlo.op import Op
from onnxla.hlo.ops import contraction, reduction
from onnxla.hlo.types import PRED, ElementType, Shape, TensorType

# Reductions


def _reduce(e: ValueEmitter, instruction: Instruction, index: Index) -> Emitted:
    op = instruction.op
    assert isinstance(op, reduction.Reduce)
    count = len(instruction.operands) // 2
    operands, inits = instruction.operands[:count], instruction.operands[count:]
    shape = operands[0].shape
    dimensions = [d for d in range(len(shape)) if d in op.dimensions]
    start = _initial(e, inits, index)
    if any(shape[d] == 0 for d in dimensions):
        return _finished(e, start, operands, instruction)

    def body(inner: dict[int, Expr], accumulated: Sequence[Value]) -> list[Value]:
        outer = iter(index)
        at = tuple(inner[d] if d in inner else next(outer) for d in range(len(shape)))
        values = [e.value(o, at) for o in operands]
        return e.combine(op.to_apply, accumulated, values, operands[0].tensor_type.element)

    result = accumulate(e, [(d, shape[d]) for d in dimensions], start, body)
    return _finished(e, result, operands, instruction)


def _initial(e: ValueEmitter, inits: Sequence[Instruction], index: Index) -> list[Value]:
    values = [e.value(init, ()) for init in inits]
    return [e.b.splat(v, e.width(index)) for v in values]


def _finished(
    e: ValueEmitter, values: Sequence[Value], operands: Sequence[Instruction], instruction: Instruction
) -> Emitted:
    rounded = [storage.round_to(e.b, v, o.tensor_type.element) for v, o in zip(values, operands, strict=True)]
    return rounded[0] if isinstance(instruction.type, TensorType) else rounded


def accumulate(
    e: ValueEmitter,
    dimensions: Sequence[tuple[int, int]],
    start: Sequence[Value],
    body: Callable[[dict[int, Expr], Sequence[Value]], Sequence[Value]],
) -> list[Value]:
    """Nested loops over (dimension, size) pairs that carry values through `body(index by dimension, carried)`."""

    def nest(level: int, inner: dict[int, Expr], carried: Sequence[Value]) -> list[Value]:
        if level == len(dimensions):
            return [e.b.splat(v, c.lanes) for v, c in zip(body(inner, carried), carried, strict=True)]
        dimension, size = dimensions[level]
        if size == 1:
            return nest(level + 1, {**inner, dimension: ix.ZERO}, carried)
        with e.loop(f"r{dimension}", size, carry=carried) as (at, loop):
            loop.next = nest(level + 1, {**inner, dimension: at}, loop.carried)
        return loop.results

    return nest(0, {}, list(start))


def _reduce_window(e: ValueEmitter, instruction: Instruction, index: Index) -> Emitted:
    op = instruction.op
    assert isinstance(op, reduction.ReduceWindow)
    count = len(instruction.operands) // 2
    operands, inits = instruction.operands[:count], instruction.operands[count:]
    shape = operands[0].shape
    element = operands[0].tensor_type.element

    def body(inner: dict[int, Expr], accumulated: Sequence[Value]) -> list[Value]:
        present, at = window_position(e, op.window, index, inner, shape)
        return e.choose(
            present,
            lambda: e.combine(op.to_apply, accumulated, [e.value(o, at) for o in operands], element),
            lambda: accumulated,
            accumulated[0].lanes,
        )

    sizes = [(d, w.size) for d, w in enumerate(op.window.dimensions)]
    return _finished(e, accumulate(e, sizes, _initial(e, inits, index), body), operands, instruction)


def window_position(
    e: ValueEmitter, window: contraction.Window, index: Index, inner: dict[int, Expr], shape: Shape
) -> tuple[Value, Index]:
    """Where a window's element lies in the operand, and whether it is there and not padding."""
    present = e.b.const(True, PRED)
    source = []
    for d, w in enumerate(window.dimensions):
        offset = inner[d] * -1 + (w.size - 1) if w.reversal else inner[d]
        at = index[d] * w.stride + offset * w.window_dilation - w.pad_low
        dilated = max(shape[d] - 1, 0) * w.base_dilation + 1 if shape[d] else 0
        present = e.b.and_(present, e.inside(at, 0, dilated))
        if w.base_dilation > 1:
            present = e.b.and_(present, e.inside(at % w.base_dilation, 0, 1))
        source.append(at // w.base_dilation)
    return present, tuple(source)


# Contractions: plain loops, for element types and shapes that no contraction schedule takes


def _dot(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    op, (lhs, rhs) = instruction.op, instruction.operands
    assert isinstance(op, contraction.Dot)
    batch = index[: len(op.lhs_batch)]
    lhs_free = [d for d in range(len(lhs.shape)) if d not in op.lhs_batch and d not in op.lhs_contracting]
    rhs_free = [d for d in range(len(rhs.shape)) if d not in op.rhs_batch and d not in op.rhs_contracting]
    lhs_index = index[len(batch) : len(batch) + len(lhs_free)]
    rhs_index = index[len(batch) + len(lhs_free) :]
    sizes = [(k, lhs.shape[d]) for k, d in enumerate(op.lhs_contracting)]

    def body(inner: dict[int, Expr], accumulated: Sequence[Value]) -> list[Value]:
        def at(batch_dims: Shape, contracting: Shape, free: list[int], free_index: Index, rank: int) -> Index:
            where = dict(zip(batch_dims, batch, strict=True))
            where |= dict(zip(free, free_index, strict=True))
            where |= {d: inner[k] for k, d in enumerate(contracting)}
            return tuple(where[d] for d in range(rank))

        x = e.value(lhs, at(op.lhs_batch, op.lhs_contracting, lhs_free, lhs_index, len(lhs.shape)))
        y = e.value(rhs, at(op.rhs_batch, op.rhs_contracting, rhs_free, rhs_index, len(rhs.shape)))
        return [_multiply_add(e, x, y, lhs, rhs, accumulated[0], op.element)]

    start = [_zero(e, op.element, index)]
    total = start if any(size == 0 for _, size in sizes) else accumulate(e, sizes, start, body)
    return storage.round_to(e.b, total[0], op.element)


def _zero(e: ValueEmitter, element: ElementType, index: Index) -> Value:
    return e.b.splat(e.literal(0, element), e.width(index))


def _multiply_add(
    e: ValueEmitter, x: Value, y: Value, lhs: Instruction, rhs: Instruction, total: Value, element: ElementType
) -> Value:
    b = e.b
    x = storage.convert(b, x, lhs.tensor_type.element, element) if x.element is not total.element else x
    y = storage.convert(b, y, rhs.tensor_type.element, element) if y.element is not total.element else y
    if total.element.is_float:
        return b.fma(x, y, total)
    if total.element is PRED:
        return b.or_(b.and_(x, y), total)
    return storage.wrap(b, b.add(b.mul(x, y), total), element)


def _convolution(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    op, (lhs, rhs) = instruction.op, instruction.operands
    assert isinstance(op, contraction.Convolution)
    dims = op.dimensions
    batch, feature = index[dims.output_batch], index[dims.output_feature]
    spatial = tuple(index[d] for d in dims.output_spatial)
    in_features = rhs.shape[dims.kernel_input_feature]
    out_features = rhs.shape[dims.kernel_output_feature]
    group = feature // (out_features // op.feature_group_count)
    if op.batch_group_count > 1:
        group_batch = lhs.shape[dims.input_batch] // op.batch_group_count
        batch = batch + (feature // (out_features // op.batch_group_count)) * group_batch
    shape = tuple(lhs.shape[d] for d in dims.input_spatial)
    rank = len(shape)
    sizes = [(d, w.size) for d, w in enumerate(op.window.dimensions)] + [(rank, in_features)]

    def body(inner: dict[int, Expr], accumulated: Sequence[Value]) -> list[Value]:
        present, at = window_position(e, op.window, spatial, inner, shape)

        def product() -> list[Value]:
            left = {dims.input_batch: batch, dims.input_feature: group * in_features + inner[rank]}
            left |= dict(zip(dims.input_spatial, at, strict=True))
            right = {dims.kernel_input_feature: inner[rank], dims.kernel_output_feature: feature}
            right |= {d: inner[k] for k, d in enumerate(dims.kernel_spatial)}
            x = e.value(lhs, tuple(left[d] for d in range(rank + 2)))
            y = e.value(rhs, tuple(right[d] for d in range(rank + 2)))
            return [_multiply_add(e, x, y, lhs, rhs, accumulated[0], op.element)]

        return e.choose(present, product, lambda: accumulated, accumulated[0].lanes)

    total = accumulate(e, sizes, [_zero(e, op.element, index)], body)
    return storage.round_to(e.b, total[0], op.element)


RULES: Mapping[type[Op], Rule] = {
    reduction.Reduce: _reduce,
    reduction.ReduceWindow: _reduce_window,
    contraction.Dot: _dot,
    contraction.Convolution: _convolution,
}
