"""Is this module well-formed? Run after every pass: what is checked here need not be asked elsewhere."""

from typing import NoReturn

from onnxla.errors import HloError
from onnxla.hlo.module import Computation, Instruction, Module, called_by
from onnxla.hlo.op import infer_type
from onnxla.hlo.ops.structural import Parameter
from onnxla.hlo.printer import print_instruction


def verify(module: Module) -> None:
    """Raise HloError, naming computation and instruction, unless every rule of the language holds.

    No cycles, in a computation or between computations; parameters numbered from 0 and each of its
    own computation; no instruction in two computations; users that match operands; and each stored
    type equal to what `infer` gives now, which also checks the signatures of called computations.
    """
    owners: dict[Instruction, Computation] = {}
    for computation, instructions in _computations(module).items():
        _check_parameters(computation, instructions)
        for instruction in instructions:
            if owners.setdefault(instruction, computation) is not computation:
                _fail(f"stands in {owners[instruction].name} too", computation, instruction)
            _check_users(computation, instruction)
            _check_type(computation, instruction)


def _computations(module: Module) -> dict[Computation, list[Instruction]]:
    """All computations, callees first, and their instructions."""
    done: dict[Computation, list[Instruction]] = {}
    open_: dict[Computation, list[Instruction]] = {}
    stack = [(module.entry, False)]
    while stack:
        computation, expanded = stack.pop()
        if computation in done:
            continue
        if expanded:
            done[computation] = open_[computation]
            continue
        if computation in open_:
            raise HloError(f"computation {computation.name} calls itself, directly or through others")
        open_[computation] = _instructions(computation)
        stack.append((computation, True))
        stack += [(c, False) for c in called_by(open_[computation])]
    return done


def _instructions(computation: Computation) -> list[Instruction]:
    """Parameters, then all that the root needs, operands first."""
    order = dict.fromkeys(computation.parameters)
    if len(order) != len(computation.parameters):
        raise HloError(f"a parameter of {computation.name} is listed twice")
    open_: set[Instruction] = set()
    stack = [(computation.root, False)]
    while stack:
        instruction, expanded = stack.pop()
        if instruction in order:
            continue
        if expanded:
            order[instruction] = None
            continue
        if instruction in open_:
            _fail("needs its own value: the graph has a cycle", computation, instruction)
        open_.add(instruction)
        stack.append((instruction, True))
        stack += [(operand, False) for operand in instruction.operands]
    return list(order)


def _check_parameters(computation: Computation, instructions: list[Instruction]) -> None:
    for number, parameter in enumerate(computation.parameters):
        if not isinstance(parameter.op, Parameter) or parameter.op.number != number:
            _fail(f"is listed as parameter {number}", computation, parameter)
    listed = set(computation.parameters)
    for instruction in instructions:
        if isinstance(instruction.op, Parameter) and instruction not in listed:
            _fail("is not a parameter of this computation", computation, instruction)


def _check_users(computation: Computation, instruction: Instruction) -> None:
    for operand in instruction.operands:
        if instruction not in operand.users:
            _fail(f"is missing from the users of {print_instruction(operand)}", computation, instruction)
    for user in instruction.users:
        if instruction not in user.operands:
            _fail(f"counts as a user {print_instruction(user)}, which is none", computation, instruction)


def _check_type(computation: Computation, instruction: Instruction) -> None:
    try:
        inferred = infer_type(instruction.op, [o.type for o in instruction.operands])
    except HloError as error:
        _fail(str(error), computation, instruction)
    if inferred != instruction.type:
        _fail(f"is stored as {instruction.type}, but has type {inferred}", computation, instruction)


def _fail(cause: str, computation: Computation, instruction: Instruction) -> NoReturn:
    source = f"\n  node   {instruction.source}" if instruction.source else ""
    raise HloError(f"in computation {computation.name}: {print_instruction(instruction)}\n  {cause}{source}")
