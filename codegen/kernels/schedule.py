"""Which schedule lowers an instruction: decided by what is inside it."""

from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels.cluster import Cluster
from onnxla.codegen.kernels.loop import lower_loop
from onnxla.codegen.kernels.row import lower_row
from onnxla.codegen.lowering import Lowering
from onnxla.hlo.module import Instruction


def lower(instruction: Instruction, target: Target) -> Lowering:
    """The kernels of one instruction of an optimised computation."""
    cluster = Cluster.of(instruction)
    if all(t.size == 0 for t in cluster.results):
        return Lowering(())
    return lower_row(cluster, target) or lower_loop(cluster, target)
