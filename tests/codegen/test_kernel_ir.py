"""The kernel builder places and numbers operations, the verifier refuses what is ill-formed, the text shows both."""

import pytest

from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import INDEX, KernelType, Value
from onnxla.codegen.kernels.text import print_kernel
from onnxla.codegen.kernels.verifier import verify_kernel
from onnxla.errors import InternalError
from onnxla.hlo.types import F16, F32, PRED, S32


def scaled_sum() -> KernelBuilder:
    b = KernelBuilder("scaled_sum")
    source = b.parameter("in0", F32, 32, "input")
    target = b.parameter("out0", F32, 1, "output")
    factor = b.parameter("in1", F32, 1, "input")
    with b.loop(0, 32, 8, carry=[b.const(0.0, F32, 8)]) as loop:
        scale = b.splat(b.load(factor, b.const(0)), 8)
        x = b.load(source, loop.index, 8)
        loop.yield_(b.add(loop.carried[0], b.mul(x, scale)))
    b.store(target, b.const(0), b.horizontal("add", loop.results[0]))
    return b


def test_what_does_not_change_in_a_loop_stands_before_it() -> None:
    text = print_kernel(scaled_sum().finish())
    before, _, inside = text.partition("for ")
    assert "load f32 in1[0]" in before and "splat" in before
    assert "load f32x8 in0" in inside and "in1" not in inside


def test_equal_operations_are_one() -> None:
    b = KernelBuilder("k")
    x = b.load(b.parameter("in0", F32, 4, "input"), b.const(1))
    assert b.add(x, x) is b.add(x, x)
    assert b.const(2) is b.const(2)
    assert b.splat(b.splat(x, 4), 4) is b.splat(x, 4)


def test_an_operation_made_in_a_loop_is_not_reused_after_it() -> None:
    b = KernelBuilder("k")
    with b.loop(0, 4) as loop:
        inner = b.add(loop.index, b.task)
    with b.loop(0, 4) as other:
        assert b.add(other.index, b.task) is not inner


def test_loads_of_an_input_stay_inside_a_branch() -> None:
    b = KernelBuilder("k")
    source = b.parameter("in0", F32, 4, "input")
    condition = b.compare("LT", b.task, b.const(2))
    with b.if_(condition) as branch:
        with branch.then():
            guarded = b.load(source, b.const(3))
            branch.yield_(guarded)
        with branch.otherwise():
            branch.yield_(b.const(0.0, F32))
    assert guarded.level == 1 and branch.results[0].level == 0


def test_index_arithmetic_folds() -> None:
    b = KernelBuilder("k")
    assert b.add(b.task, b.const(0)) is b.task
    assert b.mul(b.const(1), b.task) is b.task
    assert b.mul(b.task, b.const(0)).attributes == (0,)
    assert b.div(b.const(-7), b.const(2)).attributes == (-3,)
    assert b.binary("rem", b.const(-7), b.const(2)).attributes == (-1,)
    assert b.compare("LT", b.const(1), b.const(2)).attributes == (True,)
    assert b.and_(b.const(True, PRED), b.compare("EQ", b.task, b.const(1))).opcode == "cmp"


def test_a_correct_kernel_passes_the_verifier() -> None:
    verify_kernel(scaled_sum().finish())


def test_the_verifier_refuses_a_use_before_the_definition() -> None:
    b = KernelBuilder("wrong")
    target = b.parameter("out0", INDEX, 1, "output")
    b.store(target, b.const(0), Value("add", KernelType(INDEX), (b.task, b.task)))
    with pytest.raises(InternalError, match="kernel wrong: .* used before its definition"):
        verify_kernel(b.finish())


def test_the_verifier_refuses_a_store_into_an_input() -> None:
    b = KernelBuilder("wrong")
    source = b.parameter("in0", F32, 1, "input")
    b.store(source, b.const(0), b.const(1.0, F32))
    with pytest.raises(InternalError, match="in0 is read only"):
        verify_kernel(b.finish())


def test_the_verifier_refuses_arithmetic_on_stored_types() -> None:
    b = KernelBuilder("wrong")
    x = b.load(b.parameter("in0", F16, 1, "input"), b.const(0))
    b.store(b.parameter("out0", F16, 1, "output"), b.const(0), b.binary("add", x, x))
    with pytest.raises(InternalError, match="operands of other types"):
        verify_kernel(b.finish())


def test_the_builder_refuses_what_does_not_fit() -> None:
    b = KernelBuilder("k")
    with pytest.raises(InternalError, match="add of index and f32"):
        b.add(b.task, b.const(1.0, F32))
    with pytest.raises(InternalError, match="store of s32"):
        b.store(b.parameter("out0", F32, 1, "output"), b.const(0), b.const(1, S32))
    with pytest.raises(InternalError, match="carries"), b.loop(0, 2, carry=[b.const(0)]):
        pass
