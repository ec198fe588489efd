"""What `explain` says of any model, whatever its format: interface, operations, and every problem of an import."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnxla.errors import Problem
from onnxla.frontends.signature import Signature


@dataclass(frozen=True)
class ModelReport(ABC):
    """A model seen before compiling."""

    name: str
    signature: Signature
    operators: Mapping[str, int]
    """How often each operation occurs, functions and bodies included, the most frequent first."""
    problems: tuple[Problem, ...]

    @abstractmethod
    def heading(self) -> str:
        """The first line: what the model is."""

    @abstractmethod
    def facts(self) -> Mapping[str, object]:
        """What only models of this format have, by name."""

    def details(self) -> Sequence[str]:
        """Further lines behind the inputs and outputs."""
        return ()

    @property
    def total(self) -> int:
        """All operations."""
        return sum(self.operators.values())

    @property
    def compiles(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        lines = [self.heading()]
        lines += [f"  input  {spec}" for spec in self.signature.inputs]
        lines += [f"  output {spec}" for spec in self.signature.outputs]
        lines += self.details()
        if self.compiles:
            return "\n".join([*lines, "every node can be imported"])
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        return "\n".join([*lines, count, *(str(p) for p in self.problems)])
