"""How many bytes a launch moves: its buffers, and of those that it only looks into, what it takes out.

A Gather from a table of words reads some of its rows, an update in place writes a slice. Everything else reads and
writes its buffers whole, each once. Buffers that a kernel is given and never touches, as the last step of a reduction
is given the operands, do not count.
"""

from onnxla.codegen.kernels.ir import Buffer, walk
from onnxla.codegen.plan import Launch
from onnxla.hlo.module import Computation, Instruction
from onnxla.hlo.ops.control_flow import Fusion
from onnxla.hlo.types import TensorType

_PICKS = ("gather", "dynamic-slice")


def bytes_moved(launch: Launch, instruction: Instruction | None) -> int:
    """Bytes that all tasks of a launch read and write; `instruction` is what it does, where that is known."""
    parts = {} if instruction is None else _parts(instruction)
    touched = {a for op in walk(launch.kernel.body) for a in op.attributes if isinstance(a, Buffer)}
    return sum(
        min(slot.buffer.bytes, parts.get(slot.buffer.bytes, slot.buffer.bytes))
        for parameter, slot in zip(launch.kernel.parameters, launch.arguments, strict=True)
        if parameter in touched
    )


def _parts(instruction: Instruction) -> dict[int, int]:
    """For tensors that are not read or written whole, by their size: how many bytes are."""
    op, operands = instruction.op, instruction.operands
    if op.opcode in _PICKS:
        return {_bytes(operands[0]): _bytes(instruction)}
    if op.opcode == "dynamic-update-slice":
        return {_bytes(operands[0]): _bytes(operands[1])}
    if op.opcode == "scatter" and isinstance(instruction.type, TensorType):
        return {_bytes(operands[0]): _bytes(operands[2])}
    return _picked(op.calls) if isinstance(op, Fusion) else {}


def _picked(calls: Computation) -> dict[int, int]:
    """The parameters of a fusion from which it only picks, by their size: sizes of which no parameter is read whole."""
    alike: dict[int, list[Instruction]] = {}
    for parameter in calls.parameters:
        alike.setdefault(_bytes(parameter), []).append(parameter)
    found = {}
    for size, parameters in alike.items():
        users = [(user, parameter) for parameter in parameters for user in parameter.users]
        if users and all(user.op.opcode in _PICKS and user.operands[0] is parameter for user, parameter in users):
            found[size] = sum(_bytes(user) for user, _ in users)
    return found


def _bytes(instruction: Instruction) -> int:
    return instruction.type.bytes if isinstance(instruction.type, TensorType) else 0
