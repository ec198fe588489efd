"""Which schedule lowers an instruction for a GPU: decided by what is inside it."""

from collections.abc import Callable
from dataclasses import replace

from onnxla.codegen.gpu.attention import lower_attention
from onnxla.codegen.gpu.convolution import lower_convolution
from onnxla.codegen.gpu.dot import lower_dot
from onnxla.codegen.gpu.library import library_call
from onnxla.codegen.gpu.loop import lower_loop
from onnxla.codegen.gpu.reduction import lower_reduction
from onnxla.codegen.gpu.row import lower_row
from onnxla.codegen.gpu.scan import lower_scan
from onnxla.codegen.gpu.scatter import lower_scatter
from onnxla.codegen.gpu.sort import lower_sort
from onnxla.codegen.gpu.target import GpuTarget
from onnxla.codegen.gpu.transpose import lower_transpose
from onnxla.codegen.gpu.update import lower_update
from onnxla.codegen.kernels.cluster import Cluster
from onnxla.codegen.kernels.loop import emits
from onnxla.codegen.lowering import Lowering
from onnxla.errors import UnsupportedOpError
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import Convolution, Dot
from onnxla.hlo.ops.control_flow import Fusion
from onnxla.hlo.ops.indexing import Scatter, Sort
from onnxla.hlo.types import TensorType


def lower(instruction: Instruction, target: GpuTarget) -> Lowering:
    """The kernels of one instruction. Raises UnsupportedOpError for what has no GPU kernel."""
    cluster = Cluster.of(instruction)
    if all(t.size == 0 for t in cluster.results):
        return Lowering(())
    values = (*cluster.leaves, *cluster.instructions)
    if any(isinstance(v.type, TensorType) and v.type.element.is_complex for v in values):
        raise UnsupportedOpError(f"no GPU kernel for {instruction.op.opcode} of complex numbers; use target='cpu'")
    special = _SINGLE.get(type(instruction.op))
    if special is not None:
        return special(cluster, target)
    if not emits(cluster.instructions):
        missing = sorted({i.op.opcode for i in cluster.instructions})
        raise UnsupportedOpError(f"no GPU kernel for {', '.join(missing)}; use target='cpu'")
    if isinstance(instruction.op, Fusion) and instruction.op.kind == "kCustom":
        return _library_product(cluster, target) or lower_attention(cluster, target)
    return (
        _contraction(cluster, target)
        or lower_update(cluster, target)
        or lower_scan(cluster, target)
        or lower_reduction(cluster, target)
        or lower_row(cluster, target)
        or lower_transpose(cluster, target)
        or lower_loop(cluster, target)
    )


def _library_product(cluster: Cluster, target: GpuTarget) -> Lowering | None:
    """The kernel of one product, and what a library may do in its place."""
    heroes = [i for i in cluster.instructions if isinstance(i.op, Dot)]
    own = _contraction(cluster, target) if len(heroes) == 1 else None
    if own is None:
        return None
    call = library_call(cluster, heroes[0], target)
    if call is None or len(own.calls) != 1 or own.temporaries:
        return own
    return replace(own, calls=(replace(own.calls[0], library=call),), temporaries=(call.workspace_bytes,))


def _contraction(cluster: Cluster, target: GpuTarget) -> Lowering | None:
    """The contraction core, where the cluster has one contraction, whose result is read element by element."""
    heroes = [i for i in cluster.instructions if isinstance(i.op, Dot | Convolution)]
    if len(heroes) != 1 or any(o.tensor_type.size == 0 for o in heroes[0].operands):
        return None
    (hero,) = heroes
    if any(root.type != hero.type and root.tensor_type.size != hero.tensor_type.size for root in cluster.roots):
        return None
    return (lower_dot if isinstance(hero.op, Dot) else lower_convolution)(cluster, hero, target)


_SINGLE: dict[type, Callable[[Cluster, GpuTarget], Lowering]] = {Sort: lower_sort, Scatter: lower_scatter}
"""Operations that are kernels of their own and never part of a fusion."""
