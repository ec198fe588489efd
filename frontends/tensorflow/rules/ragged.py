"""Ragged tensors whose row lengths are known."""

import numpy as np

from onnxla.frontends.tensorflow.axes import require_enumerable
from onnxla.frontends.tensorflow.node_view import NodeView
from onnxla.frontends.tensorflow.registry import tf_op
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Instruction


@tf_op("RaggedTensorToTensor")
def ragged_to_tensor(node: NodeView, b: Builder) -> Instruction:
    """Rows of known lengths, filled up with a default: one gather from the values."""
    kinds = node.strings("row_partition_types")
    shape, values, default = node.constant_ints(0), node.input(1), node.input(2)
    if list(kinds) == ["ROW_SPLITS"]:
        splits = np.array(node.constant_ints(3))
    elif list(kinds) == ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]:
        rows, ids = node.constant_int(3), np.array(node.constant_ints(4))
        splits = np.searchsorted(ids, np.arange(rows + 1))
    else:
        node.unsupported(f"ragged tensors of {', '.join(kinds)}", "one ragged dimension is supported")
    lengths = np.diff(splits)
    count = shape[0] if len(shape) > 1 and shape[0] >= 0 else lengths.size
    width = shape[1] if len(shape) > 1 and shape[1] >= 0 else int(lengths.max(initial=0))
    require_enumerable(node, count * width, 1 << 26)
    places = np.full((count, width), values.shape[0], np.int64)
    for r in range(min(count, lengths.size)):
        kept = min(int(lengths[r]), width)
        places[r, :kept] = splits[r] + np.arange(kept)
    inner = values.shape[1:]
    filler = b.reshape(b.numpy_broadcast(default, inner), (1, *inner))
    return b.take(b.concatenate([values, filler], 0), b.constant(places), 0)
