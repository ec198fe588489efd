"""Fusion: instructions become kernels that store nothing between them.

Contractions take the elementwise work on their results first, then reductions grow into row kernels; what is left goes
to its consumers, and loop kernels over the same data join. After this pass a program computation holds parameters,
constants, tuples and their elements, reshapes (which are names), fusions, and single operations, a kernel each.
"""

from onnxla.hlo.module import Computation
from onnxla.passes.fuse.emit import emit_fusions
from onnxla.passes.fuse.epilogues import fuse_epilogues
from onnxla.passes.fuse.kernels import FusionPlan
from onnxla.passes.fuse.outputs import merge_outputs
from onnxla.passes.fuse.producers import fuse_producers
from onnxla.passes.fuse.rows import fuse_rows
from onnxla.passes.pass_base import ComputationPass


class FuseInstructions(ComputationPass):
    """Group the instructions of each program computation into kernels."""

    name = "fuse-instructions"

    def __init__(self, on_gpu: bool = False) -> None:
        """`on_gpu`: contractions read and write through slices and transposes that leave rows in one piece, and rows
        add up the parts of products (`split_depth.py`)."""
        super().__init__()
        self.on_gpu = on_gpu

    def run_on(self, computation: Computation) -> bool:
        plan = FusionPlan(computation)
        fuse_epilogues(plan, self.on_gpu)
        fuse_rows(plan)
        fuse_producers(plan, self.on_gpu)
        merge_outputs(plan)
        kernels = set(plan.owner.values())
        self.count("kernels", len(kernels) + len(plan.single()))
        made = emit_fusions(plan)
        self.count("fusions", made)
        return made > 0
