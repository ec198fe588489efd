"""Data movement as substitution of indices: what one element of a reshape, slice, gather or call reads.

Each function is the rule of one HLO operation for `ValueEmitter`; `RULES` lists them.
"""

from collections.abc import Callable, Mapping

from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.ir import INDEX, Value
from onnxla.codegen.kernels.value import Emitted, Index, Leaf, Rule, ValueEmitter
from onnxla.errors import InternalError
from onnxla.hlo.module import Instruction
from onnxla.hlo.op import Op
from onnxla.hlo.ops import control_flow, indexing, structural
from onnxla.hlo.ops import shape as shape_ops
from onnxla.hlo.types import PRED, TensorType

# Structure and data movement


def _constant(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    op = instruction.op
    assert isinstance(op, structural.Constant)
    array, element = op.literal.array, op.literal.type.element
    if array.size == 1:
        wide = array.astype(storage.compute_element(element).dtype)
        return e.b.const(wide.reshape(())[()], storage.compute_element(element))
    if all(i.is_constant for i in index):
        return e.literal(array[tuple(i.constant for i in index)], element)
    raise InternalError(f"a constant of {array.size} elements must be an operand of its fusion")


def _iota(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    op = instruction.op
    assert isinstance(op, structural.Iota)
    element = op.type.element
    counted = e.position(index[op.dimension])
    if counted.lanes > 1 or not counted.is_constant:
        return storage.round_to(e.b, e.b.convert(counted, storage.compute_element(element)), element)
    return e.literal(counted.attributes[0], element)


def _tuple(e: ValueEmitter, instruction: Instruction, index: Index) -> list[Value]:
    return [e.value(o, index) for o in instruction.operands]


def _get_tuple_element(e: ValueEmitter, instruction: Instruction, index: Index) -> Emitted:
    op, (operand,) = instruction.op, instruction.operands
    assert isinstance(op, structural.GetTupleElement)
    if isinstance(operand.op, structural.Tuple):
        return e.emitted(operand.operands[op.index], index)
    return e.emitted(operand, index)[op.index]  # type: ignore[index]  # a tuple-typed operand emits a list


def _broadcast(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    op = instruction.op
    assert isinstance(op, shape_ops.Broadcast)
    return e.value(instruction.operands[0], tuple(index[d] for d in op.dimensions))


def _reshape(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    (operand,) = instruction.operands
    return e.value(operand, ix.reshape(index, instruction.shape, operand.shape))


def _transpose(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    op = instruction.op
    assert isinstance(op, shape_ops.Transpose)
    source: list[Expr] = [ix.ZERO] * len(index)
    for position, dimension in enumerate(op.permutation):
        source[dimension] = index[position]
    return e.value(instruction.operands[0], tuple(source))


def _reverse(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    op = instruction.op
    assert isinstance(op, shape_ops.Reverse)
    shape = instruction.shape
    source = tuple(i * -1 + (shape[d] - 1) if d in op.dimensions else i for d, i in enumerate(index))
    return e.value(instruction.operands[0], source)


def _slice(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    op = instruction.op
    assert isinstance(op, shape_ops.Slice)
    source = tuple(i * step + start for i, start, step in zip(index, op.starts, op.strides, strict=True))
    return e.value(instruction.operands[0], source)


def _concatenate(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    op = instruction.op
    assert isinstance(op, shape_ops.Concatenate)
    dimension = op.dimension
    at = index[dimension]
    pieces = []
    start = 0
    for operand in instruction.operands:
        size = operand.shape[dimension]
        if size and at.high >= start and at.low < start + size:
            pieces.append((operand, start, start + size))
        start += size

    lanes = e.width(index)

    def pick(pieces: list[tuple[Instruction, int, int]]) -> list[Value]:
        """Halve the pieces: a lookup in logarithmic depth."""
        if len(pieces) == 1:
            operand, first, _ = pieces[0]
            source = (*index[:dimension], at - first, *index[dimension + 1 :])
            return [e.value(operand, source)]
        middle = len(pieces) // 2
        left, right = pieces[:middle], pieces[middle:]
        return e.choose(e.inside(at, left[0][1], right[0][1]), lambda: pick(left), lambda: pick(right), lanes)

    return pick(pieces)[0]


def _pad(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    op, (operand, padding) = instruction.op, instruction.operands
    assert isinstance(op, shape_ops.Pad)
    present = e.b.const(True, PRED)
    source = []
    for i, size, low, interior in zip(index, operand.shape, op.low, op.interior, strict=True):
        moved = i - low
        present = e.b.and_(present, e.inside(moved, 0, size + max(size - 1, 0) * interior))
        if interior:
            present = e.b.and_(present, e.inside(moved % (interior + 1), 0, 1))
        source.append(moved // (interior + 1))
    lanes = e.width(index)
    return e.choose(present, lambda: [e.value(operand, tuple(source))], lambda: [e.value(padding, ())], lanes)[0]


# Data-dependent positions


def clamped_start(e: ValueEmitter, value: Value, last: int, name: str) -> Expr:
    """A start position read from data, clamped to [0, last] as XLA does."""
    b = e.b
    if value.element.is_signed:
        wide = b.convert(value, INDEX)
        return e.bind(name, b.max(b.min(wide, b.const(last)), b.const(0)), 0, last)
    limit = b.const(min(last, (1 << value.element.bits) - 1), value.element)
    return e.bind(name, b.convert(b.min(value, limit), INDEX), 0, last)


def _dynamic_slice(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    operand, *starts = instruction.operands
    source = []
    for d, (i, start) in enumerate(zip(index, starts, strict=True)):
        last = operand.shape[d] - instruction.shape[d]
        source.append(i + (clamped_start(e, e.value(start, ()), last, f"start{d}") if last else 0))
    return e.value(operand, tuple(source))


def _dynamic_update_slice(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    operand, update, *starts = instruction.operands
    inside = e.b.const(True, PRED)
    source = []
    for d, (i, start) in enumerate(zip(index, starts, strict=True)):
        last = operand.shape[d] - update.shape[d]
        moved = i - clamped_start(e, e.value(start, ()), last, f"start{d}") if last else i
        inside = e.b.and_(inside, e.inside(moved, 0, update.shape[d]))
        source.append(moved)
    lanes = e.width((*index, *source))
    return e.choose(inside, lambda: [e.value(update, tuple(source))], lambda: [e.value(operand, index)], lanes)[0]


def _gather(e: ValueEmitter, instruction: Instruction, index: Index) -> Value:
    op, (operand, indices) = instruction.op, instruction.operands
    assert isinstance(op, indexing.Gather)
    batch = [i for d, i in enumerate(index) if d not in op.offset_dims]
    hidden = (*op.collapsed_slice_dims, *op.operand_batching_dims)
    window = [d for d in range(len(operand.shape)) if d not in hidden]
    source: list[Expr] = [ix.ZERO] * len(operand.shape)
    for dimension, result_dimension in zip(window, op.offset_dims, strict=True):
        source[dimension] = index[result_dimension]

    def batch_at(indices_dimension: int) -> Expr:
        return batch[indices_dimension - (indices_dimension > op.index_vector_dim)]

    for dimension, indices_dimension in zip(op.operand_batching_dims, op.start_indices_batching_dims, strict=True):
        source[dimension] = batch_at(indices_dimension)
    for component, dimension in enumerate(op.start_index_map):
        at = list(batch)
        if op.index_vector_dim < len(indices.shape):
            at.insert(op.index_vector_dim, ix.constant(component))
        last = operand.shape[dimension] - op.slice_sizes[dimension]
        if last:
            start = clamped_start(e, e.value(indices, tuple(at)), last, f"gather{dimension}")
            source[dimension] = source[dimension] + start
    return e.value(operand, tuple(source))


# Calls


def _call(e: ValueEmitter, instruction: Instruction, index: Index) -> Emitted:
    """The callee's root, with its parameters standing for the operands at whatever index it asks."""
    (callee,) = instruction.op.computations
    outer = e.leaves
    e.leaves = dict(outer)
    for parameter, operand in zip(callee.parameters, instruction.operands, strict=True):
        e.leaves[parameter] = _operand(e, operand, outer)
    with e.scope():
        result = e.emitted(callee.root, index)
    e.leaves = outer
    return result


def _operand(e: ValueEmitter, operand: Instruction, leaves: dict[Instruction, Leaf]) -> Callable[[Index], Value]:
    def read(index: Index) -> Value:
        inner, e.leaves = e.leaves, leaves
        result = e.value(operand, index)
        e.leaves = inner
        return result

    return read


def _map(e: ValueEmitter, instruction: Instruction, index: Index) -> Emitted:
    op = instruction.op
    assert isinstance(op, control_flow.Map)
    results = e.apply(op.to_apply, [e.value(o, index) for o in instruction.operands])
    return results[0] if isinstance(instruction.type, TensorType) else results


RULES: Mapping[type[Op], Rule] = {
    structural.Constant: _constant,
    structural.Iota: _iota,
    structural.Tuple: _tuple,
    structural.GetTupleElement: _get_tuple_element,
    shape_ops.Broadcast: _broadcast,
    shape_ops.Reshape: _reshape,
    shape_ops.Transpose: _transpose,
    shape_ops.Reverse: _reverse,
    shape_ops.Slice: _slice,
    shape_ops.Concatenate: _concatenate,
    shape_ops.Pad: _pad,
    indexing.DynamicSlice: _dynamic_slice,
    indexing.DynamicUpdateSlice: _dynamic_update_slice,
    indexing.Gather: _gather,
    control_flow.Call: _call,
    control_flow.Fusion: _call,
    control_flow.Map: _map,
}
