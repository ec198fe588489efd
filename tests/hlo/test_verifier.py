"""The verifier accepts what builder and parser make, and names the place of each kind of damage."""

import pytest

from onnxla.errors import HloError, SourceNode
from onnxla.hlo.builder import Builder
from onnxla.hlo.module import Computation, Instruction, Module
from onnxla.hlo.ops.control_flow import Call
from onnxla.hlo.ops.structural import Parameter
from onnxla.hlo.parser import parse_module
from onnxla.hlo.types import F32, S32, TensorType
from onnxla.hlo.verifier import verify
from tests.hlo.programs import PROGRAMS

VECTOR = TensorType(F32, (4,))


def error_of(module: Module) -> str:
    with pytest.raises(HloError) as caught:
        verify(module)
    return str(caught.value)


@pytest.mark.parametrize("opcode", PROGRAMS)
def test_every_operation_verifies(opcode: str) -> None:
    verify(parse_module(PROGRAMS[opcode]))


def test_a_stored_type_must_be_what_the_operation_gives() -> None:
    b = Builder(source=SourceNode("/relu", "Relu", 7))
    x = b.parameter(VECTOR, "x")
    y = b.negate(x)
    y.type = TensorType(S32, (4,))
    assert error_of(Module("m", b.build(y))) == (
        "in computation main: %negate = s32[4]{0} negate(%x), "
        'metadata={op_type="Relu" op_name="/relu"}\n'
        "  is stored as s32[4]{0}, but has type f32[4]{0}\n"
        "  node   /relu (Relu), node 7"
    )


def test_operands_must_fit_the_operation() -> None:
    b = Builder()
    x, short = b.parameter(VECTOR, "x"), b.parameter(TensorType(F32, (3,)), "short")
    y = b.add(x, x)
    y.set_operands([x, short])
    message = error_of(Module("m", b.build(y)))
    assert message.startswith("in computation main: %add = f32[4]{0} add(%x, %short)\n")


def test_a_wrong_number_of_operands_is_found() -> None:
    b = Builder()
    x = b.parameter(VECTOR, "x")
    y = b.negate(x)
    y.set_operands([x, x])
    assert "negate takes 1 operand, got 2" in error_of(Module("m", b.build(y)))


def test_a_cycle_is_found() -> None:
    b = Builder()
    x = b.parameter(VECTOR, "x")
    y = b.negate(x)
    z = b.negate(y)
    y.set_operands([z])
    assert "needs its own value: the graph has a cycle" in error_of(Module("m", b.build(z)))


def test_a_diamond_is_no_cycle() -> None:
    b = Builder()
    value = b.parameter(VECTOR)
    for _ in range(100):
        value = b.add(value, value)
    verify(Module("m", b.build(value)))


def test_a_computation_that_calls_itself_is_found() -> None:
    b = Builder("loop")
    x = b.parameter(VECTOR)
    computation = b.build(b.negate(x))
    computation.root = Instruction(Call(computation), [computation.root])
    assert error_of(Module("m", computation)) == "computation loop calls itself, directly or through others"


def test_a_parameter_of_another_computation_is_found() -> None:
    b, other = Builder("main"), Builder("other")
    x, foreign = b.parameter(VECTOR, "x"), other.parameter(VECTOR, "foreign")
    assert "is not a parameter of this computation" in error_of(Module("m", b.build(b.add(x, foreign))))


def test_parameters_are_numbered_from_zero() -> None:
    x = Instruction(Parameter(1, VECTOR), name="x")
    assert "is listed as parameter 0" in error_of(Module("m", Computation("main", [x], x)))


def test_a_parameter_is_listed_once() -> None:
    x = Instruction(Parameter(0, VECTOR), name="x")
    assert error_of(Module("m", Computation("main", [x, x], x))) == "a parameter of main is listed twice"


def test_only_parameters_are_listed_as_such() -> None:
    b = Builder()
    y = b.negate(b.parameter(VECTOR))
    assert "is listed as parameter 0" in error_of(Module("m", Computation("main", [y], y)))


def test_an_instruction_in_two_computations_is_found() -> None:
    shared = Builder().constant(1.0, F32, "shared")
    inner, outer = Builder("inner"), Builder("outer")
    called = inner.build(inner.negate(shared))
    root = outer.add(outer.call(called), shared)
    assert "stands in inner too" in error_of(Module("m", outer.build(root)))


def test_users_must_match_operands() -> None:
    b = Builder()
    x = b.parameter(VECTOR, "x")
    y = b.negate(x)
    del x.users[y]
    module = Module("m", b.build(y))
    assert "is missing from the users of" in error_of(module)
    x.users[y] = None
    y.users[x] = None
    assert "counts as a user" in error_of(module)


def test_the_signature_of_a_called_computation_is_checked() -> None:
    inner, outer = Builder("inner"), Builder("outer")
    called = inner.build(inner.negate(inner.parameter(VECTOR)))
    call = outer.call(called, outer.parameter(VECTOR))
    called.parameters[0] = Instruction(Parameter(0, TensorType(F32, (5,))))
    called.root = inner.negate(called.parameters[0])
    assert "inner takes (f32[5]{0}), got (f32[4]{0})" in error_of(Module("m", outer.build(call)))


def test_a_module_that_was_rewritten_verifies() -> None:
    b = Builder()
    x = b.parameter(VECTOR, "x")
    y = b.negate(b.negate(x))
    computation = b.build(b.exponential(y))
    computation.replace(y, x)
    verify(Module("m", computation))
