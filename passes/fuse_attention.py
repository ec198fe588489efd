"""Attention in one kernel: the scores, as many as queries times keys, are never stored.

For half precision and f32. Schedules for larger heads or other types gain nothing, so those stay as they are: two
products and a softmax.
"""

from onnxla.hlo.attention import Attention, attention_of
from onnxla.hlo.module import Computation
from onnxla.hlo.ops.contraction import Dot
from onnxla.hlo.types import BF16, F16, F32, ElementType
from onnxla.passes.fuse.emit import emit_fusions
from onnxla.passes.fuse.kernels import FusionPlan
from onnxla.passes.fuse.views import views_after, views_before
from onnxla.passes.pass_base import ComputationPass

LARGEST_HEAD = 128
"""Of queries and keys, and of values, that the kernels are made for."""


class FuseAttention(ComputationPass):
    """Make a fusion of each softmax(f(dot(q, k))) times v."""

    name = "fuse-attention"

    def __init__(self, of_f32: bool = True) -> None:
        """`of_f32`: products of f32 are on the ordinary cores, as the kernel for them is."""
        super().__init__()
        self.of_f32 = of_f32

    def run_on(self, computation: Computation) -> bool:
        plan = FusionPlan(computation)
        for instruction in plan.order:
            attention = attention_of(instruction)
            if attention is not None and self._fits(attention):
                members = (*attention.members, *views_after(instruction, computation))
                kernel = plan.new_kernel("kCustom", instruction, members)
                views = [v for factor in attention.factors for v in views_before(factor)]
                kernel.copies |= dict.fromkeys((*attention.copies, *views))
        made = emit_fusions(plan)
        if made:
            self.count("fused", made)
        return made > 0

    def _fits(self, attention: Attention) -> bool:
        element, sizes = _head(attention) or (None, ())
        kinds = (F16, BF16, F32) if self.of_f32 else (F16, BF16)
        return element in kinds and max(sizes) <= LARGEST_HEAD


def _head(attention: Attention) -> tuple[ElementType, tuple[int, int]] | None:
    """The type of queries, keys and values, and the sizes of the heads: of queries and keys, and of values. None where
    types differ, something is empty, or a head is no dimension of its own."""
    first, second = attention.first.op, attention.second.op
    assert isinstance(first, Dot) and isinstance(second, Dot)
    q, k, v = (factor.tensor_type for factor in attention.factors)
    weights = attention.second.operands[0].tensor_type
    if len({t.element for t in (q, k, v, weights)}) != 1 or 0 in (*q.shape, *k.shape, *v.shape):
        return None
    keys, features = first.rhs_free(k.rank), second.rhs_free(v.rank)
    if any(len(dimensions) != 1 for dimensions in (keys, features, first.lhs_contracting)):
        return None
    return q.element, (q.shape[first.lhs_contracting[0]], v.shape[features[0]])
