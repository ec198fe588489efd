"""Ragged tensors whose row lengths are known, of any number of ragged dimensions."""

import numpy as np

from onnxla.frontends.tensorflow.axes import require_enumerable
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction
from onnxla.hlo.types import Array


@tf_op("RaggedTensorToTensor")
def ragged_to_tensor(node: NodeView, b: Builder) -> Instruction:
    """Rows of known lengths, in rows again, filled up with a default: one gather from the values."""
    levels = _levels(node)
    shape, values, default = node.constant_ints(0), node.input(1), node.input(2)
    wanted = [shape[k] if len(shape) > 1 and k < len(shape) else -1 for k in range(len(levels) + 1)]
    rows = levels[0].size - 1
    count = wanted[0] if wanted[0] >= 0 else rows
    # for each place the row of the level, or the value, that stands there; -1 for none
    places = np.full(count, -1, np.int64)
    places[: min(count, rows)] = np.arange(min(count, rows))
    for splits, size in zip(levels, wanted[1:], strict=True):
        width = size if size >= 0 else int(np.diff(splits).max(initial=0))
        require_enumerable(node, places.size * width, 1 << 26)
        starts, ends = (np.append(edges, 0)[places] for edges in (splits[:-1], splits[1:]))
        found = starts[..., None] + np.arange(width)
        places = np.where(found < ends[..., None], found, -1)
    places = np.where(places < 0, values.shape[0], places)
    inner = values.shape[1:]
    filler = b.reshape(b.numpy_broadcast(default, inner), (1, *inner))
    return b.take(b.concatenate([values, filler], 0), b.constant(places), 0)


def _levels(node: NodeView) -> list[Array]:
    """Where the rows of each ragged dimension begin, and the end of the last one; a problem where they do not fit."""
    kinds = list(node.strings("row_partition_types"))
    operands = [np.array(node.constant_ints(3 + k), np.int64).reshape(-1) for k in range(len(kinds))]
    levels: list[Array] = []
    if kinds[:1] == ["FIRST_DIM_SIZE"]:
        (first, *operands), kinds = operands, kinds[1:]
        rows = int(first[0])
    else:
        rows = operands[0].size - 1 if operands else -1
    for kind, operand in zip(kinds, operands, strict=True):
        if kind == "ROW_SPLITS":
            splits = operand
        elif kind == "VALUE_ROWIDS":
            splits = np.searchsorted(operand, np.arange(rows + 1)).astype(np.int64)
        else:
            node.unsupported(f"ragged tensors of {kind}", "row splits and row numbers of values are supported")
        if splits.size != rows + 1 or splits[0] != 0 or (np.diff(splits) < 0).any():
            node.shape_error(f"the row splits {splits.tolist()[:20]} do not fit {rows} rows")
        levels.append(splits)
        rows = int(splits[-1])
    if not levels or rows != node.input(1).shape[0]:
        node.shape_error(f"{rows} values in rows, and {node.input(1).tensor_type} of them")
    return levels
