"""The left operand of a contraction, copied into the form that its kernel reads.

Padded, dilated and with features of zeros, so that no window reads outside; and bytes as 16 bits, where the products
are of pairs of 16 bits: widened once here, an element is then read as it is by every panel of columns.
"""

from onnxla.codegen.cpu.target import Target
from onnxla.codegen.kernels.cluster import Cluster, Frame
from onnxla.codegen.kernels.loop import lower_loop
from onnxla.codegen.kernels.pad import lower_pad
from onnxla.codegen.kernels.value import Array
from onnxla.codegen.lowering import KernelCall, Operand, Temporary
from onnxla.hlo.builder import Builder, Ints
from onnxla.hlo.module import Instruction
from onnxla.hlo.ops.control_flow import Fusion
from onnxla.hlo.types import S16, ElementType, TensorType


def multiplied_as(element: ElementType, group: int) -> ElementType:
    """What a left operand is widened to before products of `group` neighbours are added up."""
    return S16 if group == 2 else element


def copy_operand(
    cluster: Cluster, hero: Instruction, target: Target, low: Ints, high: Ints, interior: Ints, element: ElementType
) -> tuple[tuple[KernelCall, ...], tuple[int, ...], TensorType]:
    """A call that copies the left operand of `hero` into temporary 0, the bytes of that, and the type of the copy.

    No call and the operand's own type where it is of this form already.
    """
    operand = hero.operands[0]
    type = operand.tensor_type
    padded = any(low) or any(high) or any(interior)
    if not padded and type.element is element:
        return (), (), type
    b = Builder("copy", source=hero.source)
    value = source = b.parameter(type)
    if padded:
        value = b.pad(value, b.constant(0, type.element), low, high, interior)
    value = b.convert(value, element)
    copy = Cluster.of(Instruction(Fusion("kLoop", b.build(value)), (source,)))
    (call,) = (lower_pad if padded else lower_loop)(copy, target).calls
    number = cluster.operand_number(operand)
    arguments = tuple(Operand(number) if isinstance(a, Operand) else Temporary(0) for a in call.arguments)
    return (KernelCall(call.kernel, arguments),), (value.tensor_type.bytes,), value.tensor_type


def read_operand(frame: Frame, leaf: Instruction, copied: TensorType, is_copy: bool) -> Array:
    """The left operand as a kernel reads it: the copy in temporary 0, or `leaf` itself where there is none."""
    if is_copy:
        frame.arguments.append(Temporary(0))
        return frame.array("copied", copied, "input")
    found = frame.emitter.leaves[leaf]
    assert isinstance(found, Array)
    return found
