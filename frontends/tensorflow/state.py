"""The values of variables while a graph is imported: what a read gives, and what a write changes.

In the main computation a variable is a weight, or a parameter where the graph writes to it. Inside of a branch or a
loop's body it is a stand-in, so that what is read and written there can be handed in and out.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from onnxla.errors import DynamicShapeError, Problem, UnsupportedOpError
from onnxla.frontends.problems import ProblemFound
from onnxla.frontends.tensorflow.effects import effects_of
from onnxla.frontends.tensorflow.element_types import element_of_code
from onnxla.frontends.tensorflow.model_file import TensorFlowModel
from onnxla.frontends.tensorflow.signature import Interface
from onnxla.frontends.tensorflow.variables import Variable, Variables
from onnxla.hlo.builder import Builder
from onnxla.hlo.literal import Literal
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.structural import Constant, Parameter
from onnxla.hlo.types import Array, type_of


class State(ABC):
    """The variables as one computation sees them."""

    def __init__(self) -> None:
        self.current: dict[str, Instruction] = {}
        self.written: dict[str, None] = {}
        """The variables that were written, in order."""

    def read(self, name: str) -> Instruction:
        """The value now. Raises ProblemFound where it has none."""
        if name not in self.current:
            self.current[name] = self._first(name)
        return self.current[name]

    def write(self, name: str, value: Instruction) -> None:
        self.current[name] = value
        self.written[name] = None

    @abstractmethod
    def _first(self, name: str) -> Instruction:
        """The value before any write."""


class ModelState(State):
    """The variables of the whole model; those it assigns to are parameters of the entry."""

    def __init__(self, variables: Variables, builder: Builder, mutable: Mapping[str, Array]) -> None:
        """`mutable` has the values that those variables begin with."""
        super().__init__()
        self._variables = variables
        self._builder = builder
        for name, value in mutable.items():
            self.current[name] = builder.parameter(type_of(value), name)

    def _first(self, name: str) -> Instruction:
        value = self._variables.value(name)
        if value is None:
            cause = f"the variable {name} has no value: it is read before anything is assigned to it"
            hint = "save the model with its variables initialised"
            raise ProblemFound(Problem(UnsupportedOpError, cause, self._builder.source, (), hint))
        return self._builder.literal(Literal(value, name))


class InnerState(State):
    """The variables inside of another computation: weights again, and stand-ins for other values around it."""

    def __init__(self, outer: State, builder: Builder) -> None:
        super().__init__()
        self._outer = outer
        self._builder = builder
        self.stand_ins: dict[str, Instruction] = {}

    def _first(self, name: str) -> Instruction:
        outer = self._outer.read(name)
        if isinstance(outer.op, Constant):
            return self._builder.literal(outer.op.literal)
        self.stand_ins[name] = Instruction(Parameter(0, outer.tensor_type), name=name)
        return self.stand_ins[name]


def initial_values(model: TensorFlowModel, interface: Interface) -> dict[str, Array]:
    """The variables that the graph between the ports assigns to, with the values that they begin with."""
    effects = effects_of(model, model.body, [p.edge.node for p in interface.outputs])
    values = {name: _initial_value(model.variables, name) for name in effects.variables}
    return values | {name: np.zeros((), np.uint64) for name in effects.counters}


def _initial_value(variables: Variables, name: str) -> Array:
    """The value from the checkpoint, or zeros for a variable that the graph assigns before it reads.

    Raises DynamicShapeError where its shape is open.
    """
    value = variables.value(name)
    if value is not None:
        return value
    variable = variables.get(name)
    if variable is None or not _is_static(variable):
        cause = f"the variable {name} has no value, and no static shape"
        hint = "save the model with its variables initialised"
        raise DynamicShapeError([Problem(DynamicShapeError, cause, hint=hint)])
    shape = tuple(n for n in variable.shape or () if n is not None)
    return np.zeros(shape, element_of_code(variable.code).dtype)


def _is_static(variable: Variable) -> bool:
    return variable.shape is not None and None not in variable.shape
