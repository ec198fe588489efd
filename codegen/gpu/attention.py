"""Attention in one kernel: which one, and for which parts of a fusion that `passes/fuse_attention.py` made."""

from onnxla.codegen.gpu.attention_in_registers import AttentionInRegisters
from onnxla.codegen.gpu.attention_tensor_core import AttentionOnTensorCores
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.kernels.cluster import Cluster
from onnxla.codegen.lowering import Lowering
from onnxla.errors import InternalError, UnsupportedOpError
from onnxla.hlo.attention import attention_of
from onnxla.hlo.ops.elementwise import Convert
from onnxla.hlo.ops.shape import Reshape, Transpose
from onnxla.hlo.types import F32


def lower_attention(cluster: Cluster, target: GpuTarget) -> Lowering:
    """The kernel of such a fusion. Raises UnsupportedOpError for half precision on GPUs without the units for it."""
    (root,) = cluster.roots
    while isinstance(root.op, Transpose | Reshape | Convert):
        (root,) = root.operands
    attention = attention_of(root)
    if attention is None:
        raise InternalError(f"{cluster.instruction} is no attention")
    held = attention.first.operands[0].tensor_type.element
    if held is F32:
        return AttentionInRegisters(cluster, attention).lower()
    if not target.multiplies(held):
        raise UnsupportedOpError(f"{target.architecture} has no tensor cores for this; leave out fuse-attention")
    return AttentionOnTensorCores(cluster, attention).lower()
