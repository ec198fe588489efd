"""Convolution on a GPU as an implicit contraction: rows are output pixels, columns output features of a group, depth
the window and input features in the order of the kernel. Nothing is unfolded or padded in memory.

With few features in a group (depthwise) a tile would be mostly empty: those convolutions go to the loop schedule, a
thread for each output.
"""

import math

from onnxla.codegen.gpu.contraction import lower_contraction
from onnxla.codegen.gpu.product import Located, View
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.kernels import index as ix
from onnxla.codegen.kernels.cluster import Cluster
from onnxla.codegen.kernels.index import Expr
from onnxla.codegen.kernels.sums import window_position
from onnxla.codegen.kernels.value import Index, ValueEmitter
from onnxla.codegen.lowering import Lowering
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import Convolution
from onnxla.hlo.types import PRED, Shape

FEWEST_COLUMNS = 4
FEWEST_DEPTH = 8


def lower_convolution(cluster: Cluster, hero: Instruction, target: GpuTarget) -> Lowering | None:
    """`hero` is the convolution of the cluster. None where the loop schedule is as good, and for batch groups."""
    op = hero.op
    assert isinstance(op, Convolution)
    dims = op.dimensions
    image, kernel = (o.tensor_type for o in hero.operands)
    groups = op.feature_group_count
    columns = kernel.shape[dims.kernel_output_feature] // groups
    depth_dims = [d for d in range(kernel.rank) if d != dims.kernel_output_feature]
    depth_shape: Shape = tuple(kernel.shape[d] for d in depth_dims)
    depth = math.prod(depth_shape)
    if op.batch_group_count > 1 or columns < FEWEST_COLUMNS or depth < FEWEST_DEPTH:
        return None
    row_dims = (dims.output_batch, *dims.output_spatial)
    row_shape: Shape = tuple(hero.shape[d] for d in row_dims)
    features = kernel.shape[dims.kernel_input_feature]
    spatial: Shape = tuple(image.shape[d] for d in dims.input_spatial)

    def left(e: ValueEmitter, group: Expr, row: Expr, at: Expr) -> Located:
        batch, *pixel = ix.delinearize(row, row_shape)
        window = dict(zip(depth_dims, ix.delinearize(at, depth_shape), strict=True))
        places = {k: window[d] for k, d in enumerate(dims.kernel_spatial)}
        present, source = window_position(e, op.window, tuple(pixel), places, spatial)
        where = {dims.input_batch: batch, dims.input_feature: group * features + window[dims.kernel_input_feature]}
        where |= dict(zip(dims.input_spatial, source, strict=True))
        return present, tuple(where[d] for d in range(image.rank))

    def right(e: ValueEmitter, group: Expr, at: Expr, column: Expr) -> Located:
        where = dict(zip(depth_dims, ix.delinearize(at, depth_shape), strict=True))
        where[dims.kernel_output_feature] = group * columns + column
        return e.b.const(True, PRED), tuple(where[d] for d in range(kernel.rank))

    def result(group: Expr, row: Expr, column: Expr) -> Index:
        where = dict(zip(row_dims, ix.delinearize(row, row_shape), strict=True))
        where[dims.output_feature] = group * columns + column
        return tuple(where[d] for d in range(len(where)))

    left_along_depth = dims.input_feature == image.rank - 1 and depth_dims[-1] == dims.kernel_input_feature
    right_along_depth = dims.kernel_output_feature != kernel.rank - 1
    view = View(
        groups,
        math.prod(row_shape),
        columns,
        depth,
        left,
        right,
        result,
        left_along_depth,
        right_along_depth,
        features if left_along_depth else 1,
        _right_run(kernel.shape, dims.kernel_output_feature, depth_shape) if right_along_depth else columns,
    )
    return lower_contraction(cluster, hero, view, op.element, target)


def _right_run(shape: Shape, output_feature: int, depth_shape: Shape) -> int:
    """Of a kernel whose last dimension counts depth: the sizes behind its output features."""
    return math.prod(depth_shape[output_feature:])
