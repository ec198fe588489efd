"""What a kernel does, counted in its loops."""

import pytest

from onnxla.codegen.cpu.target import named_target
from onnxla.codegen.kernels.builder import KernelBuilder
from onnxla.codegen.kernels.ir import Kernel
from onnxla.codegen.kernels.work import effort_of
from onnxla.hlo.types import F32

TARGET = named_target("x86-64-v3")


def copied(size: int, block: int) -> Kernel:
    """Copy `size` elements, one by one, in blocks of which the last may be shorter."""
    b = KernelBuilder("copied", 1)
    x, y = b.parameter("x", F32, size, "input", 64), b.parameter("y", F32, size, "output", 64)
    with b.loop(0, size, block) as blocks:
        end = b.min(b.add(blocks.index, b.const(block)), b.const(size))
        with b.loop(blocks.index, end) as elements:
            b.store(y, elements.index, b.load(x, elements.index))
    return b.finish()


@pytest.mark.parametrize(("size", "block"), [(560, 480), (560, 280), (960, 480), (5600, 560)])
def test_blocks_count_as_what_is_in_them(size: int, block: int) -> None:
    whole = effort_of(copied(size, size), TARGET)
    assert effort_of(copied(size, block), TARGET) == pytest.approx(whole, rel=0.02)
