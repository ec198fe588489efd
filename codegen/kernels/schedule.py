"""Which schedule lowers an instruction: decided by what is inside it."""

from collections.abc import Callable

from onnxla.codegen.choices import Choices, Way
from onnxla.codegen.cost import Machine
from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels.cluster import Cluster
from onnxla.codegen.kernels.convolution import convolution_ways
from onnxla.codegen.kernels.depthwise import depthwise_ways
from onnxla.codegen.kernels.dot import dot_ways
from onnxla.codegen.kernels.loop import lower_loop
from onnxla.codegen.kernels.pad import lower_pad
from onnxla.codegen.kernels.row import lower_row
from onnxla.codegen.kernels.scan import lower_scan
from onnxla.codegen.kernels.scatter import lower_scatter
from onnxla.codegen.kernels.sort import lower_sort
from onnxla.codegen.kernels.transpose import lower_transpose
from onnxla.codegen.kernels.update import lower_update
from onnxla.codegen.kernels.winograd_ways import GAIN, winograd_ways
from onnxla.codegen.lowering import Lowering
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.contraction import Convolution, Dot
from onnxla.hlo.ops.indexing import Scatter, Sort
from onnxla.hlo.ops.shape import Pad, Transpose


def lower(
    instruction: Instruction, target: Target, *, direct_only: bool = False, choices: Choices | None = None
) -> Lowering:
    """The kernels of one instruction of an optimised computation.

    `direct_only` leaves out algorithms that trade error for speed (Winograd): what `precision="highest"` asks for.
    `choices` decides where there are several ways, and keeps the decision; without it the cost model does.
    """
    cluster = Cluster.of(instruction, target.looks_up)
    if all(t.size == 0 for t in cluster.results):
        return Lowering(())
    special = _SINGLE.get(type(instruction.op))
    if special is not None:
        return special(cluster, target)
    ways = _contraction_ways(cluster, target, direct_only)
    if ways:
        return (choices or Choices(Machine.stated(target))).choose(instruction, ways)
    return (
        lower_update(cluster, target)
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


def _contraction_ways(cluster: Cluster, target: Target, direct_only: bool) -> list[Way]:
    """The contraction schedules, where the cluster is one contraction of leaves and an elementwise epilogue."""
    heroes = [i for i in cluster.instructions if isinstance(i.op, Dot | Convolution)]
    if len(heroes) != 1:
        return []
    (hero,) = heroes
    computed = set(cluster.instructions)
    if any(o in computed for o in hero.operands) or hero.operands[0] is hero.operands[1]:
        return []
    if any(o.tensor_type.size == 0 for o in hero.operands) or hero.tensor_type.element.is_complex:
        return []
    if isinstance(hero.op, Dot):
        return dot_ways(cluster, hero, target)
    depthwise = depthwise_ways(cluster, hero, target)
    if depthwise:
        return depthwise
    direct = convolution_ways(cluster, hero, target)
    winograd = winograd_ways(cluster, hero, target, direct_only) if direct else []
    return _preferred_first(direct, winograd, Machine.stated(target))


def _preferred_first(direct: list[Way], winograd: list[Way], machine: Machine) -> list[Way]:
    """The model takes Winograd's convolution only where that promises to be clearly faster: it errs more, or has more
    weights to read."""
    if not winograd:
        return direct
    best = min(winograd, key=lambda way: machine.seconds(way.work))
    rest = [*(way for way in winograd if way is not best), *direct]
    if machine.seconds(best.work) < GAIN * machine.seconds(direct[0].work):
        return [best, *rest]
    return [direct[0], best, *(way for way in rest if way is not direct[0])]
