"""What a pass is: a name, and a function from a module to whether it changed it."""

from abc import ABC, abstractmethod
from typing import ClassVar

from onnxla.hlo.module import Computation, Module, callees_first
from onnxla.hlo.ops.control_flow import Call, Conditional, While


class Pass(ABC):
    """One idea that rewrites a module in place. A pass keeps what the module computes."""

    name: ClassVar[str]

    def __init__(self) -> None:
        self.stats: dict[str, int] = {}
        """What happened in the last run, by name: rules that fired, kernels made, bytes folded."""

    @abstractmethod
    def run(self, module: Module) -> bool:
        """Rewrite `module`; whether anything changed."""

    def count(self, what: str, amount: int = 1) -> None:
        self.stats[what] = self.stats.get(what, 0) + amount


class ComputationPass(Pass):
    """A pass that looks at one program computation at a time: the entry, loop bodies and conditions, branches, calls.

    The scalar computations inside reduce, sort, scatter and map, and the bodies of fusions, are left alone.
    """

    def run(self, module: Module) -> bool:
        self.stats = {}
        # a list, so that every computation is visited
        return any([self.run_on(c) for c in program_computations(module)])

    @abstractmethod
    def run_on(self, computation: Computation) -> bool:
        """Rewrite one computation; whether anything changed."""


def program_computations(module: Module) -> list[Computation]:
    """The computations that run as programs of kernels, callees before callers, the entry last."""
    return callees_first(module.entry, _run_by)


def _run_by(computation: Computation) -> list[Computation]:
    runs = (i.op for i in computation.instructions() if isinstance(i.op, While | Conditional | Call))
    return [c for op in runs for c in op.computations]
