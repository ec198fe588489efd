"""A product as cuBLASLt takes it: matrices by leading dimension, column by column.

What is row-major to us is the transpose, column by column, to the library. So it computes the transpose of our result,
of the transposes of our factors in the other order: result' = right' left'.
"""

from onnxla.codegen.gpu.dot import view_of
from onnxla.codegen.gpu.product import View
from onnxla.codegen.gpu.strides import Strided
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.gpu.views import Viewed
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.lowering import LibraryCall, Matrix, Operand, Result, Temporary
from onnxla.hlo.library_products import library_product_of
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import Dot
from onnxla.hlo.types import F32, Shape

WORKSPACE = 4 << 20
"""Bytes that the library may use for itself; NVIDIA's advice for GPUs before Hopper."""
WORKSPACE_SM_90 = 32 << 20
"""NVIDIA's advice from Hopper on."""


def library_call(cluster: Cluster, hero: Instruction, target: GpuTarget) -> LibraryCall | None:
    """What a library may compute in place of the kernel of `cluster`; None where its matrices are none to a library."""
    found, op = library_product_of(hero), hero.op
    if found is None or cluster.roots != (found.result,) or not isinstance(op, Dot):
        return None
    view, frame = view_of(hero), Frame(cluster, "library", 1)
    lhs, rhs = (o.tensor_type.rank for o in hero.operands)
    left = _operand(cluster, frame, hero.operands[0], (op.lhs_batch, op.lhs_contracting, op.lhs_free(lhs)), view, False)
    right = _operand(cluster, frame, hero.operands[1], (op.rhs_batch, op.rhs_free(rhs), op.rhs_contracting), view, True)
    if left is None or right is None or (found.bias is not None and found.bias not in cluster.leaves):
        return None
    element = found.result.tensor_type.element.name
    size = (view.columns, view.rows)
    result = Matrix(Result(), element, *size, view.columns, view.rows * view.columns)
    return LibraryCall(
        batches=view.batches,
        left=right,
        right=left,
        result=result,
        bias=None if found.bias is None else Operand(cluster.operand_number(found.bias)),
        tf32=target.tf32 and left.element == F32.name,
        workspace=Temporary(0),
        workspace_bytes=WORKSPACE if target.capability < 90 else WORKSPACE_SM_90,
    )


def _operand(
    cluster: Cluster,
    frame: Frame,
    value: Instruction,
    dimensions: tuple[Shape, Shape, Shape],
    view: View,
    is_right: bool,
) -> Matrix | None:
    """A factor, whose dimensions are batches, rows and columns of the library's product."""
    viewed = Viewed.of(value, frame.emitter.leaves)
    if viewed is None:
        return None
    leaf = value
    for _ in viewed.views:
        (leaf,) = leaf.operands
    at: Strided | None = Strided.dense(leaf.shape)
    for step in reversed(viewed.views):
        at = None if at is None else at.through(step)
    if at is None:
        return None
    rows, columns = (view.columns, view.depth) if is_right else (view.depth, view.rows)
    at = at.transposed([d for part in dimensions for d in part]).reshaped((view.batches, rows, columns))
    if at is None:
        return None
    batch, down, across = at.strides
    argument, element = Operand(cluster.operand_number(leaf)), value.tensor_type.element.name
    if down == 1 and across >= rows:
        return Matrix(argument, element, rows, columns, across, batch, at.offset)
    if across == 1 and down >= columns:
        return Matrix(argument, element, columns, rows, down, batch, at.offset, is_transposed=True)
    return None
