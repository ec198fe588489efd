"""Large products apart, so that a library of the GPU's maker may compute them: cuBLASLt, where the options ask for it.

A library takes matrices that lie in memory and applies a bias at most. So such a product becomes a kernel of its own:
what comes before it is stored, and what follows it, but for a bias or a conversion, is a kernel behind it. How large
they have to be is an assumption; nothing was measured on hardware.
"""

import math

from onnxla.hlo.library_products import LibraryProduct, library_product_of
from onnxla.hlo.module import Computation
from onnxla.hlo.ops.contraction import Dot
from onnxla.passes.fuse.emit import emit_fusions
from onnxla.passes.fuse.kernels import FusionPlan
from onnxla.passes.fuse.views import views_before
from onnxla.passes.pass_base import ComputationPass

SMALLEST_SIDE = 128
"""Rows, columns and depth from which on a library's tiles are full."""
FEWEST_PRODUCTS = 1 << 30
"""From which on what a library saves may be more than the kernels that it does not take along."""


class LibraryProducts(ComputationPass):
    """Make a fusion of each large dot of floats, with its bias or conversion."""

    name = "library-products"

    def run_on(self, computation: Computation) -> bool:
        plan = FusionPlan(computation)
        for instruction in plan.order:
            product = library_product_of(instruction)
            if product is not None and _is_large(product):
                kernel = plan.new_kernel("kCustom", instruction, product.members)
                copies = [v for factor in instruction.operands for v in views_before(factor)]
                kernel.copies |= dict.fromkeys([*copies, *([product.spread] if product.spread is not None else [])])
        made = emit_fusions(plan)
        if made:
            self.count("products", made)
        return made > 0


def _is_large(product: LibraryProduct) -> bool:
    op, (lhs, rhs) = product.dot.op, (operand.tensor_type for operand in product.dot.operands)
    assert isinstance(op, Dot)
    rows = math.prod(lhs.shape[d] for d in op.lhs_free(lhs.rank))
    columns = math.prod(rhs.shape[d] for d in op.rhs_free(rhs.rank))
    depth = math.prod(lhs.shape[d] for d in op.lhs_contracting)
    batches = math.prod(lhs.shape[d] for d in op.lhs_batch)
    return min(rows, columns, depth) >= SMALLEST_SIDE and batches * rows * columns * depth >= FEWEST_PRODUCTS
