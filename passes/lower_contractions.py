"""Products and convolutions of f32 numbers made ones of half precision, which tensor cores are built for.

Only the factors are rounded. Sums, and everything between contractions, stay f32, so an intermediate value overflows
only where it is a factor beyond 65504 and `element` is f16; bf16 has the range of f32. Quantised contractions, which
are integer ones by now, are left alone.
"""

from collections.abc import Iterable
from dataclasses import replace

from onnxla.errors import InputError
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction, Module, sources_of
from onnxla.hlo.ops.contraction import Convolution, Dot
from onnxla.hlo.types import F32, ElementType
from onnxla.passes.pass_base import ComputationPass, program_computations

_MOST_NAMES = 20
"""Most nodes that an error lists."""


class LowerContractions(ComputationPass):
    """Convert the operands of every f32 dot and convolution to `element`, and keep the sums f32.

    Those of the nodes `kept` stay as they are. With no `element` nothing is converted. Raises InputError for a name in
    `kept` that is no node with such a product.
    """

    name = "lower-contractions"

    def __init__(self, element: ElementType | None, kept: Iterable[str] = ()) -> None:
        super().__init__()
        self.element = element
        self.kept = frozenset(kept)

    def run(self, module: Module) -> bool:
        if self.kept:
            names = [name for c in program_computations(module) for i in products_of_f32(c) for name in names_of(i)]
            unknown = sorted(self.kept - set(names))
            if unknown:
                known = list(dict.fromkeys(names))
                rest = f" and {len(known) - _MOST_NAMES} more" if len(known) > _MOST_NAMES else ""
                raise InputError(
                    f"keep_f32: no node with a product or convolution of f32 numbers is called {', '.join(unknown)}; "
                    f"there are {', '.join(known[:_MOST_NAMES]) or 'none'}{rest}"
                )
        return super().run(module)

    def run_on(self, computation: Computation) -> bool:
        if self.element is None:
            return False
        found = [i for i in products_of_f32(computation) if self.kept.isdisjoint(names_of(i))]
        for instruction in found:
            assert isinstance(instruction.op, Dot | Convolution)
            b = Builder(source=instruction.source)
            factors = [b.convert(operand, self.element) for operand in instruction.operands]
            lowered = b.emit(replace(instruction.op, element=F32), *factors)
            lowered.name = instruction.name
            computation.replace(instruction, lowered)
        if found:
            self.count("lowered", len(found))
        return bool(found)


def products_of_f32(computation: Computation) -> list[Instruction]:
    """The dots and convolutions of a computation whose operands and result are f32."""
    return [
        i
        for i in computation.instructions()
        if isinstance(i.op, Dot | Convolution) and all(value.tensor_type.element is F32 for value in (i, *i.operands))
    ]


def names_of(instruction: Instruction) -> list[str]:
    """The names of the nodes of the user's model that an instruction comes from."""
    return [node.name for node in sources_of(instruction)]
