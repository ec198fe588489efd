"""Which schedule lowers an instruction: decided by what is inside it."""

from collections.abc import Callable

from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels.cluster import Cluster
from onnxla.codegen.kernels.convolution import lower_convolution
from onnxla.codegen.kernels.depthwise import lower_depthwise
from onnxla.codegen.kernels.dot import lower_dot
from onnxla.codegen.kernels.loop import lower_loop
from onnxla.codegen.kernels.pad import lower_pad
from onnxla.codegen.kernels.row import lower_row
from onnxla.codegen.kernels.scan import lower_scan
from onnxla.codegen.kernels.scatter import lower_scatter
from onnxla.codegen.kernels.sort import lower_sort
from onnxla.codegen.kernels.transpose import lower_transpose
from onnxla.codegen.kernels.update import lower_update
from onnxla.codegen.kernels.winograd import lower_winograd
from onnxla.codegen.lowering import Lowering
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import Convolution, Dot
from onnxla.hlo.ops.indexing import Scatter, Sort
from onnxla.hlo.ops.shape import Pad, Transpose


def lower(instruction: Instruction, target: Target, *, direct_only: bool = False) -> Lowering:
    """The kernels of one instruction of an optimised computation.

    `direct_only` leaves out algorithms that trade error for speed (Winograd): what `precision="highest"` asks for.
    """
    cluster = Cluster.of(instruction)
    if all(t.size == 0 for t in cluster.results):
        return Lowering(())
    special = _SINGLE.get(type(instruction.op))
    if special is not None:
        return special(cluster, target)
    return (
        _contraction(cluster, target, direct_only)
        or lower_update(cluster, target)
        or lower_scan(cluster, target)
        or lower_row(cluster, target)
        or lower_loop(cluster, target)
    )


_SINGLE: dict[type, Callable[[Cluster, Target], Lowering]] = {
    Sort: lower_sort,
    Scatter: lower_scatter,
    Pad: lower_pad,
    Transpose: lower_transpose,
}
"""Operations that are kernels of their own and never part of a fusion."""


def _contraction(cluster: Cluster, target: Target, direct_only: bool) -> Lowering | None:
    """The contraction schedules, where the cluster is one contraction of leaves and an elementwise epilogue."""
    heroes = [i for i in cluster.instructions if isinstance(i.op, Dot | Convolution)]
    if len(heroes) != 1:
        return None
    (hero,) = heroes
    computed = set(cluster.instructions)
    if any(o in computed for o in hero.operands) or hero.operands[0] is hero.operands[1]:
        return None
    if any(o.tensor_type.size == 0 for o in hero.operands) or hero.tensor_type.element.is_complex:
        return None
    if isinstance(hero.op, Dot):
        return lower_dot(cluster, hero, target)
    return (
        lower_depthwise(cluster, hero, target)
        or (None if direct_only else lower_winograd(cluster, hero, target))
        or lower_convolution(cluster, hero, target)
    )
