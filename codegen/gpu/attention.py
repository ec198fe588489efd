"""Attention in one kernel: which one, and for which parts of a fusion that `passes/fuse_attention.py` made."""

from onnxla.codegen.gpu.attention_in_registers import AttentionInRegisters
from onnxla.codegen.gpu.attention_tensor_core import AttentionOnTensorCores
from onnxla.codegen.gpu.dot import view_of
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.gpu.tensor_core import FEWEST
from onnxla.codegen.kernels.cluster import Cluster
from onnxla.codegen.lowering import Lowering
from onnxla.errors import InternalError
from onnxla.hlo.attention import attention_of
from onnxla.hlo.ops.elementwise import Convert
from onnxla.hlo.ops.shape import Reshape, Transpose
from onnxla.hlo.types import BF16, F16


def lower_attention(cluster: Cluster, target: GpuTarget) -> Lowering:
    """The kernel of such a fusion: on tensor cores for half precision where there are some and heads fill their tiles,
    else on the ordinary cores."""
    (root,) = cluster.roots
    while isinstance(root.op, Transpose | Reshape | Convert):
        (root,) = root.operands
    attention = attention_of(root)
    if attention is None:
        raise InternalError(f"{cluster.instruction} is no attention")
    held = attention.first.operands[0].tensor_type.element
    smallest = min(view_of(attention.first).depth, view_of(attention.second).columns)
    on_tensor_cores = held in (F16, BF16) and target.multiplies(held) and smallest >= FEWEST
    return (AttentionOnTensorCores if on_tensor_cores else AttentionInRegisters)(cluster, attention).lower()
