"""Which schedule lowers an instruction for a GPU. So far: loops and rows."""

from onnxla.codegen.gpu.loop import lower_loop
from onnxla.codegen.gpu.row import lower_row
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.kernels.cluster import Cluster
from onnxla.codegen.kernels.loop import emits
from onnxla.codegen.lowering import Lowering
from onnxla.errors import UnsupportedOpError
from onnxla.hlo.module import Instruction


def lower(instruction: Instruction, target: GpuTarget) -> Lowering:
    """The kernels of one instruction. Raises UnsupportedOpError for what has no GPU kernel yet."""
    cluster = Cluster.of(instruction)
    if all(t.size == 0 for t in cluster.results):
        return Lowering(())
    if not emits(cluster.instructions):
        missing = sorted({i.op.opcode for i in cluster.instructions})
        raise UnsupportedOpError(f"no GPU kernel for {', '.join(missing)}")
    return lower_row(cluster, target) or lower_loop(cluster, target)
