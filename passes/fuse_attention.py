"""Attention in one kernel: the scores, as many as queries times keys, are never stored.

For GPUs whose matrix units multiply half precision. Schedules for larger heads or other types gain nothing, so those
stay as they are: two products and a softmax.
"""

from onnxla.hlo.attention import Attention, attention_of
from onnxla.hlo.module import Computation
from onnxla.hlo.ops.contraction import Dot
from onnxla.hlo.types import BF16, F16
from onnxla.passes.fuse.emit import emit_fusions
from onnxla.passes.fuse.kernels import FusionPlan
from onnxla.passes.pass_base import ComputationPass

HEAD_SIZES = (16, 32, 64, 128)
"""Of queries and keys, and of values, that the kernel is made for."""


class FuseAttention(ComputationPass):
    """Make a fusion of each softmax(f(dot(q, k))) times v of half precision."""

    name = "fuse-attention"

    def run_on(self, computation: Computation) -> bool:
        plan = FusionPlan(computation)
        for instruction in plan.order:
            attention = attention_of(instruction)
            if attention is not None and _fits(attention):
                kernel = plan.new_kernel("kCustom", instruction, attention.members)
                kernel.copies |= dict.fromkeys(attention.copies)
        made = emit_fusions(plan)
        if made:
            self.count("fused", made)
        return made > 0


def _fits(attention: Attention) -> bool:
    first, second = attention.first.op, attention.second.op
    assert isinstance(first, Dot) and isinstance(second, Dot)
    factors = (*attention.first.operands, *attention.second.operands)
    element = factors[0].tensor_type.element
    if element not in (F16, BF16) or any(f.tensor_type.element is not element for f in factors):
        return False
    q, k = (o.tensor_type for o in attention.first.operands)
    v = attention.second.operands[1].tensor_type
    if 0 in (*q.shape, *k.shape, *v.shape):
        return False
    keys, features = first.rhs_free(k.rank), second.rhs_free(v.rank)
    if any(len(dimensions) != 1 for dimensions in (keys, features, first.lhs_contracting)):
        return False
    return q.shape[first.lhs_contracting[0]] in HEAD_SIZES and v.shape[features[0]] in HEAD_SIZES
