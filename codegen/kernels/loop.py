"""The loop schedule: one value for each element of the result, vectors along the innermost dimension.

It serves every elementwise and data-movement cluster, and whatever else has a value at an index:
the reductions over outer dimensions, pooling, and contractions that no better schedule takes.

A first, scalar emission into a scrap kernel tells how every access steps along every dimension.
From that the schedule merges dimensions that are always walked together, finds operands that may
be overwritten in place, and weighs the work to decide how many tasks are worth having.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels import storage
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.index import Expr, Variable
from onnxla.codegen.kernels.ir import Block, Buffer, For, If, Kernel, Value, blocks_of
from onnxla.codegen.kernels.rules import can_emit
from onnxla.codegen.kernels.value import Index, ValueEmitter
from onnxla.codegen.lowering import Argument, KernelCall, Lowering
from onnxla.errors import InternalError
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.shape import Concatenate
from onnxla.hlo.types import Shape, TensorType

GRAIN = 32768
"""Operations that make a task worth its dispatch."""
MOST_TASKS = 64
MOST_PIECES = 16
"""Of a row, that get a loop each."""
SHORTEST_PIECE = 4
"""Elements, on the average, from which vectors in part do arithmetic no slower than choosing would."""
FEWEST_ROWS = 4
"""From which rows are enough to be shared out."""


def lower_loop(cluster: Cluster, target: Target) -> Lowering:
    """One kernel that computes every root at every index; all roots have equally many elements."""
    domain = cluster.results[0].shape
    if any(t.size != cluster.results[0].size for t in cluster.results):
        raise InternalError(f"{cluster.instruction} has results of different sizes, which one loop cannot write")
    survey = Survey.of(cluster, domain)
    kernel, arguments = _emit(cluster, target, survey)
    return Lowering((KernelCall(kernel, tuple(arguments)),), in_place=survey.in_place)


@dataclass(frozen=True)
class Survey:
    """What a scalar emission showed about a cluster over the iteration domain `shape`."""

    shape: Shape
    merged: tuple[int, ...]
    """Sizes of the loops that remain after merging; their product is the domain's size."""
    in_place: tuple[tuple[int, int], ...]
    operations: float
    """Arithmetic and memory operations for one element, loops multiplied out."""

    @staticmethod
    def of(cluster: Cluster, shape: Shape) -> "Survey":
        frame = Frame(cluster, "survey", 1)
        e = frame.emitter
        variables = [Variable(f"d{d}", 0, max(n - 1, 0)) for d, n in enumerate(shape)]
        for variable in variables:
            e.bound[variable] = frame.b.task
        index = tuple(ix.of(v) for v in variables)
        with e.recording() as accesses:
            emit_roots(cluster, e, index, shape)
        exprs = [expr for _, expr in accesses] + [ix.linearize(index, shape)]
        cost = operations(frame.b.finish().body)
        in_place = merge_in_place(frame, cluster, accesses, ix.linearize(index, shape))
        return Survey(shape, merge(variables, exprs, shape), in_place, cost)


def operations(block: Block) -> float:
    """Operations a block executes, counting a loop's body as often as it runs and division as several."""
    total = 0.0
    for op in block.ops:
        inner = sum(operations(b) for b in blocks_of(op))
        if isinstance(op, For):
            low, high = op.operands[0], op.operands[1]
            known = low.is_constant and high.is_constant
            inner *= max(high.attributes[0] - low.attributes[0], 0) // op.step if known else 16
        elif isinstance(op, If):
            inner /= 2
        total += inner + (8 if op.opcode in ("div", "rem", "sqrt") else 1)
    return total


def merge(variables: list[Variable], exprs: list[Expr], shape: Shape) -> tuple[int, ...]:
    """Loop sizes after merging each dimension with the next one inside it, where every access allows it."""
    sizes: list[int] = []
    for d in reversed(range(len(shape))):
        if shape[d] == 1:
            continue
        inner = next((k for k in range(d + 1, len(shape)) if shape[k] > 1), None)
        if inner is not None and all(_walked_together(e, variables[d], variables[inner], shape[inner]) for e in exprs):
            sizes[-1] *= shape[d]
        else:
            sizes.append(shape[d])
    return tuple(reversed(sizes)) or (1,)


def _walked_together(expr: Expr, outer: Variable, inner: Variable, inner_size: int) -> bool:
    step, fine = expr.coefficient(outer), expr.coefficient(inner)
    return step is not None and fine is not None and step == fine * inner_size


def merge_in_place(
    frame: Frame, cluster: Cluster, accesses: list[tuple[Buffer | None, Expr]], written: Expr
) -> tuple[tuple[int, int], ...]:
    """Operands read only at the position that is `written`, each with the result it may share memory with."""
    pairs = []
    for leaf in cluster.leaves:
        buffer = frame.buffer_of(leaf)
        read = [expr for b, expr in accesses if b is buffer]
        for j, result in enumerate(cluster.results):
            same = result.element.bytes == leaf.tensor_type.element.bytes and result.size == leaf.tensor_type.size
            if buffer is not None and read and same and all(expr == written for expr in read):
                pairs.append((cluster.operand_number(leaf), j))
    return tuple(pairs)


def emit_roots(cluster: Cluster, e: ValueEmitter, index: Index, domain: Shape) -> list[Value]:
    """The values of all result leaves at an index of the domain, each in its compute type."""
    values: list[Value] = []
    for root in cluster.roots:
        kind = root.type
        shape = kind.shape if isinstance(kind, TensorType) else cluster.results[0].shape
        emitted = e.emitted(root, ix.reshape(index, domain, shape))
        values += emitted if isinstance(emitted, list) else [emitted]
    return values


GATHER, GATHER_NARROW = 20, 4
"""Operations that a vector takes more where its elements lie apart; for each element where they have less than 32 bits,
which no instruction gathers."""
HEAVY = 20
"""Operations for an element above which two vectors go together: a function's steps wait for each other."""


def vector_lanes(cluster: Cluster, target: Target) -> int:
    """Lanes so that the widest type in play fills a vector register."""
    types = [i.tensor_type for i in (*cluster.leaves, *cluster.instructions) if isinstance(i.type, TensorType)]
    varying = [t for t in types if t.size > 1] or types
    widest = max(storage.compute_element(t.element).bytes for t in varying)
    return max(target.vector_bytes // max(widest, 1), 1)


def task_count(work: float, most: int) -> int:
    """How many tasks a kernel of `work` operations, divisible into `most` parts, is worth."""
    return max(1, min(int(work // GRAIN), MOST_TASKS, most))


def _emit(cluster: Cluster, target: Target, survey: Survey) -> tuple[Kernel, list[Argument]]:
    lanes = vector_lanes(cluster, target)
    sizes = survey.merged
    total = math.prod(sizes)
    inner = sizes[-1]
    pair = 2 if survey.operations > HEAVY else 1
    joined = _joined(cluster, survey)
    if joined is not None:
        sizes, pieces = joined
        lanes *= pair
        work = survey.operations * total / min(lanes, sizes[-1])
        return _emit_nest(cluster, survey.shape, sizes, lanes, work, pieces)
    # a row in one part-filled vector, or a vector over several rows, whose elements are gathered
    gathering = GATHER if target.vector_bytes // lanes >= 4 else GATHER_NARROW * lanes
    row, rows = lanes * (survey.operations + 3), inner * (survey.operations + gathering)
    if len(sizes) > 1 and total >= lanes > inner and rows < row:
        sizes, inner = (total,), total
    lanes *= pair
    while lanes > 1 and lanes // 2 >= inner:
        lanes //= 2
    work = survey.operations * total / (lanes if inner >= lanes else 1)
    if len(sizes) == 1:
        return _emit_single(cluster, survey.shape, inner, lanes, task_count(work, -(-inner // lanes)))
    return _emit_nest(cluster, survey.shape, sizes, lanes, work, sizes[-1:])


def _joined(cluster: Cluster, survey: Survey) -> tuple[Shape, list[int]] | None:
    """Loop sizes and the pieces of a row, where a row is what is joined end to end: each piece has one source, and no
    element needs to ask for its own. None where there is no such row."""
    for instruction in cluster.instructions:
        op = instruction.op
        if (
            isinstance(op, Concatenate)
            and instruction.shape == survey.shape
            and len(instruction.operands) <= MOST_PIECES
        ):
            inside = math.prod(survey.shape[op.dimension + 1 :])
            row, rows = inside * survey.shape[op.dimension], math.prod(survey.shape[: op.dimension])
            pieces = [o.shape[op.dimension] * inside for o in instruction.operands if o.tensor_type.size]
            if len(cluster.instructions) == 1 and rows >= FEWEST_ROWS:
                return (rows, row), pieces
            if row == survey.merged[-1] and rows > 1 and row >= SHORTEST_PIECE * len(pieces):
                return survey.merged, pieces
    return None


def _store(cluster: Cluster, frame: Frame, position: Expr, domain: Shape) -> None:
    """Compute and store all roots at a row-major position of the domain."""
    e, b = frame.emitter, frame.b
    index = ix.delinearize(position, domain)
    values = emit_roots(cluster, e, index, domain)
    at = e.position(position.substitute({e.lane: ix.ZERO}) if e.lane is not None else position)
    for array, value in zip(frame.outputs, values, strict=True):
        b.store(array.buffer, at, b.splat(storage.encode(b, value, array.type.element), e.lanes), e.mask)


def _emit_row(cluster: Cluster, frame: Frame, start: Expr, size: int, domain: Shape, lanes: int) -> None:
    """`size` consecutive positions from `start`: whole vectors, then one masked by what is left."""
    e = frame.emitter
    whole, rest = divmod(size, lanes)
    if whole:
        with e.loop("v", whole) as (v, _), e.vector(lanes) as lane:
            _store(cluster, frame, start + v * lanes + lane, domain)
    if rest:
        _emit_rest(cluster, frame, start + whole * lanes, rest, domain, lanes)


def _emit_rest(cluster: Cluster, frame: Frame, start: Expr, rest: int, domain: Shape, lanes: int) -> None:
    e = frame.emitter
    while lanes // 2 >= rest:
        lanes //= 2
    with e.vector(lanes, rest) as lane:
        _store(cluster, frame, start + lane, domain)


def _emit_single(cluster: Cluster, domain: Shape, size: int, lanes: int, tasks: int) -> tuple[Kernel, list[Argument]]:
    """One loop over everything, cut into tasks of whole vectors."""
    vectors, rest = divmod(size, lanes)
    share = -(-vectors // tasks) if vectors else 0
    tasks = -(-vectors // share) if vectors else 1
    frame = Frame(cluster, name_of(cluster), tasks)
    e, b = frame.emitter, frame.b
    if tasks == 1:
        _emit_row(cluster, frame, ix.ZERO, size, domain, lanes)
        return b.finish(), list(frame.arguments)
    first = b.mul(b.task, b.const(share))
    last = b.min(b.add(first, b.const(share)), b.const(vectors))
    with b.loop(first, last) as loop, e.scope(), e.vector(lanes) as lane:
        v = e.bind("v", loop.index, 0, vectors - 1)
        _store(cluster, frame, v * lanes + lane, domain)
    if rest:
        with b.if_(b.compare("EQ", b.task, b.const(tasks - 1))) as branch:
            with branch.then(), e.scope():
                _emit_rest(cluster, frame, ix.constant(vectors * lanes), rest, domain, lanes)
            with branch.otherwise():
                pass
    return b.finish(), list(frame.arguments)


def _emit_nest(
    cluster: Cluster, domain: Shape, sizes: Shape, lanes: int, work: float, pieces: Sequence[int]
) -> tuple[Kernel, list[Argument]]:
    """Tasks over the outer dimensions, loops over the middle ones, innermost the pieces of a row, in vectors."""
    wanted = task_count(work, math.prod(sizes[:-1]))
    split = 1
    while math.prod(sizes[:split]) < wanted:
        split += 1
    outer = math.prod(sizes[:split]) if wanted > 1 else 1
    split = split if wanted > 1 else 0
    share = -(-outer // wanted)
    tasks = -(-outer // share)
    frame = Frame(cluster, name_of(cluster), tasks)
    e, b = frame.emitter, frame.b
    strides = [math.prod(sizes[d + 1 :]) for d in range(len(sizes))]

    def nest(dimension: int, start: Expr) -> None:
        if dimension == len(sizes) - 1:
            for size in pieces:
                with e.scope():
                    _emit_row(cluster, frame, start, size, domain, lanes)
                start += size
            return
        with e.loop(f"i{dimension}", sizes[dimension]) as (at, _):
            nest(dimension + 1, start + at * strides[dimension])

    if tasks == 1:
        nest(0, ix.ZERO)
    else:
        first = b.mul(b.task, b.const(share))
        last = b.min(b.add(first, b.const(share)), b.const(outer))
        with b.loop(first, last) as loop, e.scope():
            at = e.bind("o", loop.index, 0, outer - 1)
            nest(split, at * strides[split - 1])
    return b.finish(), list(frame.arguments)


def name_of(cluster: Cluster) -> str:
    """A kernel name that says what is inside: `add_multiply_fusion`, `transpose`."""
    words = [i.op.opcode for i in cluster.instructions if i.op.opcode not in _SILENT]
    kept = list(dict.fromkeys(reversed(words)))[:3]
    fused = "_fusion" if cluster.instruction.op.opcode == "fusion" else ""
    return ("_".join(reversed(kept)) or "copy").replace("-", "_") + fused


_SILENT = ("parameter", "constant", "broadcast", "tuple", "get-tuple-element", "reshape", "bitcast")


def emits(instructions: list[Instruction]) -> bool:
    """Whether every instruction has a value at an index."""
    return all(can_emit(i) for i in instructions)
