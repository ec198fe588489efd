"""Values that could not be imported: what is certain of them, and so of the nodes that read them.

A rule is asked for its node all the same, and stops where it reads such a value: what it complains of until then is
true whatever the value is.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from onnxla.hlo.module import Instruction
from onnxla.hlo.types import Array


@dataclass(frozen=True)
class Poison:
    """Stands for a value that could not be imported."""

    computed: bool = False
    """Whether a run would compute it for certain, so that it is no constant however its types turn out."""

    def __str__(self) -> str:
        return "(not known: what gives it failed)"


POISON = Poison()


def poison_of_unknown(inputs: Iterable[object], known: Callable[[Instruction], Array | None]) -> Poison:
    """What stands for the results of a node whose operation nothing imports.

    It computes when the model runs, whoever runs it, unless all that it reads is constant.
    """
    return Poison(any(_is_computed(value, known) for value in inputs))


def poison_behind(inputs: Iterable[object], *, computes: bool) -> Poison:
    """What stands for the results of a node that failed since one of its inputs did.

    `computes` says whether its results are computed from the elements of each input.
    """
    return Poison(computes and any(isinstance(value, Poison) and value.computed for value in inputs))


def _is_computed(value: object, known: Callable[[Instruction], Array | None]) -> bool:
    if isinstance(value, Poison):
        return value.computed
    return isinstance(value, Instruction) and known(value) is None
