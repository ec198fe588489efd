"""Gather, scatter, top-k and counting. Indices out of range are an error in TensorFlow; here gathers clamp them
and scatters skip them, as HLO does."""

from onnxla.frontends.onnx.rules.indexing import replacement
from onnxla.frontends.onnx.rules.ordering import sort_order
from onnxla.frontends.onnx.rules.slicing import pick_positions
from onnxla.frontends.tensorflow.axes import normal_axis
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.indexing import Gather, Scatter
from onnxla.hlo.types import S32, S64, ElementType, TensorType

_INT32 = 3


@tf_op("Gather")
def gather_v1(node: NodeView, b: Builder) -> Instruction:
    return _gathered(node, b, node.input(0), 1, 0, 0)


@tf_op("GatherV2")
def gather(node: NodeView, b: Builder) -> Instruction:
    x, indices = node.input(0), node.input(1)
    axis = normal_axis(node, node.constant_int(2), len(x.shape))
    batch = node.int("batch_dims", 0)
    batch = batch + len(indices.shape) if batch < 0 else batch
    if batch > axis or x.shape[:batch] != indices.shape[:batch]:
        node.shape_error(f"{batch} batch dimensions do not fit axis {axis} and the operands")
    return _gathered(node, b, x, 1, axis, batch)


def _gathered(node: NodeView, b: Builder, x: Instruction, operand: int, axis: int, batch: int) -> Instruction:
    """The indices, whose first `batch` dimensions run along with those of `x`, replace dimension `axis`."""
    indices = node.input(operand)
    known = node.known(operand)
    if known is not None and known.size and not (0 <= known.min() and known.max() < x.shape[axis]):
        node.shape_error(f"indices {known.min()}..{known.max()} reach outside of dimension {axis} of {x.tensor_type}")
    if batch == 0:
        if known is None or known.ndim > 1:
            return b.take(x, indices, axis)
        picked = pick_positions(b, x, axis, known.reshape(-1))
        return b.reshape(picked, (*x.shape[:axis], *known.shape, *x.shape[axis + 1 :]))
    rank, free = len(x.shape), len(indices.shape) - batch
    kept = [d for d in range(batch, rank) if d != axis]
    op = Gather(
        offset_dims=tuple(d if d < axis else d + free - 1 for d in kept),
        collapsed_slice_dims=(axis,),
        start_index_map=(axis,),
        operand_batching_dims=tuple(range(batch)),
        start_indices_batching_dims=tuple(range(batch)),
        index_vector_dim=len(indices.shape),
        slice_sizes=tuple(n if d in kept else 1 for d, n in enumerate(x.shape)),
    )
    # HLO puts the batch and index dimensions where the offsets leave room, which is where TensorFlow wants them.
    return b.gather(x, indices, op)


@tf_op("GatherNd")
def gather_nd(node: NodeView, b: Builder) -> Instruction:
    """The last dimension of the indices names positions in the first dimensions."""
    x, indices = node.input(0), node.input(1)
    depth, batch = indices.shape[-1], len(indices.shape) - 1
    if depth > len(x.shape):
        node.shape_error(f"index vectors of length {depth} do not fit {x.tensor_type}")
    op = Gather(
        offset_dims=tuple(range(batch, batch + len(x.shape) - depth)),
        collapsed_slice_dims=tuple(range(depth)),
        start_index_map=tuple(range(depth)),
        operand_batching_dims=(),
        start_indices_batching_dims=(),
        index_vector_dim=batch,
        slice_sizes=tuple(1 if d < depth else n for d, n in enumerate(x.shape)),
    )
    return b.gather(x, indices, op)


def _register_scatter(name: str, opcode: str | None) -> None:
    @tf_op(name)
    def rule(node: NodeView, b: Builder) -> Instruction:
        return scattered(node, b, node.input(0), node.input(1), node.input(2), opcode)


for _name, _opcode in {
    "TensorScatterUpdate": None,
    "TensorScatterAdd": "add",
    "TensorScatterSub": "subtract",
    "TensorScatterMin": "minimum",
    "TensorScatterMax": "maximum",
}.items():
    _register_scatter(_name, _opcode)


@tf_op("ScatterNd")
def scatter_nd(node: NodeView, b: Builder) -> Instruction:
    """Onto zeros; updates that meet are added."""
    indices, updates, shape = node.input(0), node.input(1), node.constant_ints(2)
    zeros = b.full(shape, 0, updates.tensor_type.element)
    return scattered(node, b, zeros, indices, updates, "add")


def scattered(
    node: NodeView, b: Builder, x: Instruction, indices: Instruction, updates: Instruction, opcode: str | None
) -> Instruction:
    """`x` with slices combined in where index vectors say; without an opcode they replace."""
    depth, batch = indices.shape[-1], len(indices.shape) - 1
    if depth > len(x.shape) or updates.shape != (*indices.shape[:-1], *x.shape[depth:]):
        node.shape_error("updates do not fit data and indices")
    element = x.tensor_type.element
    op = Scatter(
        update_window_dims=tuple(range(batch, len(updates.shape))),
        inserted_window_dims=tuple(range(depth)),
        scatter_dims_to_operand_dims=tuple(range(depth)),
        input_batching_dims=(),
        scatter_indices_batching_dims=(),
        index_vector_dim=batch,
        indices_are_sorted=False,
        unique_indices=False,
        to_apply=replacement(element) if opcode is None else b.combiner(opcode, element),
    )
    return b.scatter(x, indices, updates, op)


@tf_op("SparseToDense")
def sparse_to_dense(node: NodeView, b: Builder) -> Instruction:
    """`default` everywhere but at the indices."""
    shape, values, default = node.constant_ints(1), node.input(2), b.reshape(node.input(3), ())
    given = node.input(0)
    indices = given if len(given.shape) == 2 else b.reshape(given, (given.tensor_type.size, 1))
    updates = b.numpy_broadcast(values, indices.shape[:1])
    return scattered(node, b, b.broadcast_scalar(default, shape), indices, updates, None)


@tf_op("TopKV2", "TopK", outputs=("values", "indices"))
def top_k(node: NodeView, b: Builder) -> list[Instruction]:
    """The `k` largest of the last dimension, the larger first, and of equals the first."""
    x = node.input(0)
    k = node.constant_int(1) if node.op_type == "TopKV2" else node.int("k")
    last = len(x.shape) - 1
    if last < 0 or not 0 <= k <= x.shape[last]:
        node.shape_error(f"k = {k} is out of range for {x.tensor_type}")
    order = sort_order(x.tensor_type.element, largest=True)
    pair = b.sort([x, b.iota(TensorType(S32, x.shape), last)], last, order)
    limits = [*x.shape[:last], k]
    values, places = (b.slice(b.get_tuple_element(pair, i), [0] * len(limits), limits) for i in range(2))
    return [values, b.convert(places, node.element("index_type", _INT32))]


@tf_op("InTopKV2")
def in_top_k(node: NodeView, b: Builder) -> Instruction:
    """Whether fewer than `k` predictions are larger than that of the target class."""
    predictions, targets, k = node.input(0), node.input(1), node.constant_int(2)
    classes = b.iota(TensorType(targets.tensor_type.element, predictions.shape), 1)
    chosen = b.compare(classes, b.broadcast(targets, predictions.shape, [0]), "EQ")
    own = b.reduce_by("add", b.select(chosen, predictions, b.full_like(predictions, 0)), [1])
    larger = b.compare(predictions, b.broadcast(own, predictions.shape, [0]), "GT")
    count = b.reduce_by("add", b.convert(larger, S32), [1])
    return b.compare(count, b.full_like(count, k), "LT")


@tf_op("ReverseSequence")
def reverse_sequence(node: NodeView, b: Builder) -> Instruction:
    """The first `lengths[i]` steps of batch entry i in reverse; the steps after them stay."""
    x, lengths = node.input(0), node.input(1)
    rank = len(x.shape)
    time, batch = normal_axis(node, node.int("seq_dim"), rank), normal_axis(node, node.int("batch_dim", 0), rank)
    type = TensorType(S64, (x.shape[batch], x.shape[time]))
    step = b.iota(type, 1)
    length = b.broadcast(b.convert(lengths, S64), type.shape, [0])
    mirrored = b.subtract(b.subtract(length, step), b.full_like(step, 1))
    source = b.select(b.compare(step, length, "LT"), mirrored, step)
    front = [batch, time, *(d for d in range(rank) if d not in (batch, time))]
    turned = b.transpose(x, front)
    op = Gather(
        offset_dims=tuple(range(2, rank)),
        collapsed_slice_dims=(1,),
        start_index_map=(1,),
        operand_batching_dims=(0,),
        start_indices_batching_dims=(0,),
        index_vector_dim=2,
        slice_sizes=(1, 1, *turned.shape[2:]),
    )
    return b.transpose(b.gather(turned, source, op), [front.index(d) for d in range(rank)])


@tf_op("Bincount", "DenseBincount")
def bincount(node: NodeView, b: Builder) -> Instruction:
    """How often each number below `size` occurs in a vector."""
    given, count = node.input(0), node.constant_int(1)
    weights = node.input(2)
    if weights.tensor_type.size or len(given.shape) > 1:
        node.unsupported("counting with weights, or rows of a matrix", "a vector without weights is supported")
    element = weights.tensor_type.element
    hot = _bins(b, given, count, element)
    return b.reduce_by("add", hot, [0])


def _bins(b: Builder, numbers: Instruction, count: int, element: ElementType) -> Instruction:
    shape = (numbers.tensor_type.size, count)
    spread = b.broadcast(b.reshape(numbers, shape[:1]), shape, [0])
    hot = b.compare(spread, b.iota(TensorType(numbers.tensor_type.element, shape), 1), "EQ")
    return b.convert(hot, element)
