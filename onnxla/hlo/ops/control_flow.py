"""Operations that run computations: while, conditional, call, map, fusion, custom-call."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onnxla.hlo.attributes import COMPUTATION, COMPUTATIONS, INTS, STRING, WORD
from onnxla.hlo.module import Computation
from onnxla.hlo.op import Op, attribute, fail, from_result, require, require_tensor
from onnxla.hlo.ops.elementwise import Elementwise
from onnxla.hlo.ops.structural import Constant, GetTupleElement, Parameter, Tuple
from onnxla.hlo.types import PRED, S32, Array, Shape, TensorType, TupleType, Type, Value


def require_arguments(computation: Computation, arguments: Sequence[Type]) -> None:
    """Raise HloError unless `computation` takes arguments of these types."""
    wanted = computation.parameter_types
    if wanted != tuple(arguments):
        fail(f"{computation.name} takes ({', '.join(map(str, wanted))}), got ({', '.join(map(str, arguments))})")


@dataclass(frozen=True)
class While(Op, name="while"):
    """`body` is applied to the value while `condition` of it is true."""

    condition: Computation = attribute("condition", COMPUTATION)
    body: Computation = attribute("body", COMPUTATION)

    def infer(self, init: Type) -> Type:
        require_arguments(self.condition, [init])
        require_arguments(self.body, [init])
        require(self.condition.result_type == TensorType(PRED), "the condition of a while must give pred[]")
        require(self.body.result_type == init, f"the body of a while gives {self.body.result_type}, it takes {init}")
        return init

    def evaluate(self, init: Value) -> Value:
        value = init
        while self.condition.evaluate(value):
            value = self.body.evaluate(value)
        return value


@dataclass(frozen=True)
class Conditional(Op, name="conditional"):
    """One of the branches, applied to its own argument: operand 1 + i is for branch i.

    A pred index takes branch 0 when true and 1 when false; an s32 index out of range takes the last.
    """

    branches: tuple[Computation, ...] = attribute("branch_computations", COMPUTATIONS)

    def infer(self, index: Type, *arguments: Type) -> Type:
        by_predicate = index == TensorType(PRED)
        require(by_predicate or index == TensorType(S32), f"a conditional's index is pred[] or s32[], got {index}")
        require(len(self.branches) >= 1, "a conditional needs a branch")
        require(not by_predicate or len(self.branches) == 2, "a conditional on pred[] has two branches")
        require(len(arguments) == len(self.branches), "a conditional needs one argument for each branch")
        for branch, argument in zip(self.branches, arguments, strict=True):
            require_arguments(branch, [argument])
            same = branch.result_type == self.branches[0].result_type
            require(same, f"the branches of a conditional give {self.branches[0].result_type} and {branch.result_type}")
        return self.branches[0].result_type

    def evaluate(self, index: Array, *arguments: Value) -> Value:
        last = len(self.branches) - 1
        taken = (0 if index else 1) if index.dtype == np.bool_ else int(index)
        taken = taken if 0 <= taken <= last else last
        return self.branches[taken].evaluate(arguments[taken])


@dataclass(frozen=True)
class Call(Op, name="call"):
    """The computation, applied to the operands."""

    to_apply: Computation = attribute("to_apply", COMPUTATION)

    def infer(self, *operands: Type) -> Type:
        require_arguments(self.to_apply, operands)
        return self.to_apply.result_type

    def evaluate(self, *operands: Value) -> Value:
        return self.to_apply.evaluate(*operands)


def apply_to_elements(computation: Computation, *operands: Array) -> Value:
    """The computation on scalars, applied to each element of operands of one shape.

    One vectorised evaluation where it is made of elementwise operations only.
    """
    shape = operands[0].shape
    simple = (Elementwise, Parameter, Constant, Tuple, GetTupleElement)
    if all(isinstance(i.op, simple) for i in computation.instructions()):
        value = computation.evaluate(*operands)
        if isinstance(value, tuple):
            return tuple(np.broadcast_to(leaf, shape) for leaf in value)
        return np.broadcast_to(value, shape)
    result_type = computation.result_type
    types = result_type.elements if isinstance(result_type, TupleType) else (result_type,)
    results = tuple(np.empty(shape, require_tensor(t).element.dtype) for t in types)
    for index in np.ndindex(*shape):
        value = computation.evaluate(*(np.asarray(o[index]) for o in operands))
        for result, leaf in zip(results, value if isinstance(value, tuple) else (value,), strict=True):
            result[index] = leaf
    return results if isinstance(result_type, TupleType) else results[0]


@dataclass(frozen=True)
class Map(Op, name="map"):
    """The scalar computation, applied to each element. `dimensions` are all dimensions, in order."""

    dimensions: Shape = attribute("dimensions", INTS)
    to_apply: Computation = attribute("to_apply", COMPUTATION)

    def infer(self, *operands: TensorType) -> TensorType:
        require(len(operands) > 0, "map needs an operand")
        shape = operands[0].shape
        require(all(o.shape == shape for o in operands), f"the operands of map differ in shape: {operands}")
        require(self.dimensions == tuple(range(len(shape))), f"dimensions={self.dimensions} must list all of {shape}")
        require_arguments(self.to_apply, [o.with_shape(()) for o in operands])
        result = self.to_apply.result_type
        if not isinstance(result, TensorType) or result.rank:
            fail(f"the computation of a map must give a scalar, not {result}")
        return result.with_shape(shape)

    def evaluate(self, *operands: Array) -> Array:
        return np.array(apply_to_elements(self.to_apply, *operands))


@dataclass(frozen=True)
class Fusion(Op, name="fusion"):
    """A computation that becomes one kernel. `kind` is kLoop, kInput, kOutput or kCustom."""

    kind: str = attribute("kind", WORD)
    calls: Computation = attribute("calls", COMPUTATION)

    def infer(self, *operands: Type) -> Type:
        require(self.kind in ("kLoop", "kInput", "kOutput", "kCustom"), f"unknown kind of fusion {self.kind}")
        require_arguments(self.calls, operands)
        return self.calls.result_type

    def evaluate(self, *operands: Value) -> Value:
        return self.calls.evaluate(*operands)


@dataclass(frozen=True)
class CustomCall(Op, name="custom-call"):
    """A kernel that a backend knows by `target`. Its first called computation, if any, defines its value."""

    target: str = attribute("custom_call_target", STRING)
    type: Type = from_result(lambda result: result)
    opaque: str = attribute("backend_config", STRING, absent="")
    called: tuple[Computation, ...] = attribute("called_computations", COMPUTATIONS, absent=())

    def infer(self, *operands: Type) -> Type:
        if self.called:
            require_arguments(self.called[0], operands)
            require(self.called[0].result_type == self.type, f"{self.called[0].name} does not give {self.type}")
        return self.type

    def evaluate(self, *operands: Value) -> Value:
        if not self.called:
            fail(f"the custom-call {self.target} has no computation that defines it")
        return self.called[0].evaluate(*operands)
