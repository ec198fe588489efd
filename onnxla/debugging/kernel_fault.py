"""Which kernel is wrong: each step's result against the evaluation of its instruction on the step's own operands.

The optimised module is compiled again with every value among its results. Its kernels are the same, as a kernel depends
on its instruction only, and each is judged by itself: what an earlier one broke is an operand like any other. Loops and
branches are entered: their bodies are judged as modules, on the values that they begin with.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

import onnxla
from onnxla.codegen.cpu.target import Target
from onnxla.codegen.gpu.schedule import lower as lower_for_gpu
from onnxla.codegen.kernels.schedule import lower as lower_for_cpu
from onnxla.compiler.compiler import Compiler
from onnxla.compiler.hlo_source import HloSource
from onnxla.debugging.comparison import Comparison, compare
from onnxla.debugging.exact import is_rounding, widened
from onnxla.debugging.trial import Settings
from onnxla.errors import OnnxlaError
from onnxla.hlo.module import Computation, Instruction, Module
from onnxla.hlo.ops.control_flow import Conditional, While
from onnxla.hlo.ops.structural import Constant, GetTupleElement, Parameter, Tuple
from onnxla.hlo.printer import print_instruction
from onnxla.hlo.types import Array, TensorType, TupleType, Type, Value
from onnxla.passes.pipelines import pipeline_for

_MOST_ROUNDS = 16
"""Rounds of a loop that are looked at."""


@dataclass(frozen=True)
class WrongKernel:
    """A step of the plan that gives another value than its instruction."""

    names: tuple[str, ...]
    """The kernels of the step."""
    instruction: str
    comparison: Comparison
    place: str = ""
    """The loop or branch that it stands in."""


@dataclass(frozen=True)
class Judgement:
    """What the steps of a module gave."""

    wrong: WrongKernel | None
    """The first that is wrong; what comes after it was not looked at."""
    results: Sequence[Array] = ()
    """The elements of the root, as the steps computed them; empty where one is wrong."""


def judge_kernels(module: Module, arrays: Sequence[Array], settings: Settings) -> Judgement:
    """Judge the kernels of each instruction of an optimised module, on these arguments of the entry."""
    return _Judge(module, settings).judge(arrays)


class _Judge:
    """An optimised module, compiled with every value among its results."""

    def __init__(self, module: Module, settings: Settings) -> None:
        self.settings = settings
        self.entry = module.entry
        structural = Parameter | Constant | Tuple | GetTupleElement
        self.steps = [i for i in module.entry.instructions() if not isinstance(i.op, structural)]
        leaves = [leaf for step in self.steps for leaf in _leaves(step)]
        self.model = None
        if leaves:
            entry = Computation(module.entry.name, module.entry.parameters, Instruction(Tuple(), leaves))
            options = replace(_without_passes(settings), dump_to=None, cache_dir=None)
            self.model = onnxla.compile(
                Module(module.name, entry), target=settings.target, options=options, num_threads=settings.threads
            )

    def judge(self, arrays: Sequence[Array]) -> Judgement:
        values: dict[Instruction, Value] = dict(zip(self.entry.parameters, arrays, strict=True))
        given: Iterator[Array] = iter(())
        if self.model is not None:
            names = [tensor.name for tensor in self.model.get_inputs()]
            given = iter(self.model.run(None, dict(zip(names, arrays, strict=True))))
        computed = {step: _value_of(step.type, given) for step in self.steps}
        for instruction in self.entry.instructions():
            if isinstance(instruction.op, Parameter):
                continue
            operands = [values[o] for o in instruction.operands]
            if instruction not in computed:
                values[instruction] = instruction.op.evaluate(*operands)
                continue
            values[instruction] = computed[instruction]
            wrong = self._judge_step(instruction, operands, computed[instruction])
            if wrong is not None:
                return Judgement(wrong)
        return Judgement(None, _arrays(values[self.entry.root]))

    def _judge_step(self, step: Instruction, operands: list[Value], value: Value) -> WrongKernel | None:
        with np.errstate(all="ignore"):
            expected = step.op.evaluate(*operands)
        difference = self._difference(step, value, expected)
        if difference is None or _is_rounding(step, operands, value, expected):
            return None
        inside = self._inside(step, operands)
        if inside is not None:
            return inside
        return WrongKernel(self._kernels(step), print_instruction(step), difference)

    def _difference(self, step: Instruction, ours: Value, theirs: Value) -> Comparison | None:
        pairs = zip(_arrays(ours), _arrays(theirs), strict=True)
        found = (compare(step.name, a, np.asarray(b), self.settings.rtol, self.settings.atol) for a, b in pairs)
        return next((c for c in found if not c.agrees), None)

    def _inside(self, step: Instruction, operands: list[Value]) -> WrongKernel | None:
        """What is wrong in a loop, in one of its first rounds, or in the branch that is taken."""
        if isinstance(step.op, While):
            judges = [_Judge(_as_module(c), self.settings) for c in (step.op.condition, step.op.body)]
            state = operands[0]
            for number in range(_MOST_ROUNDS):
                for judge in judges:
                    wrong = judge.judge(_arrays(state)).wrong
                    if wrong is not None:
                        return replace(wrong, place=f"round {number} of the loop {step.name}")
                if not step.op.condition.evaluate(state):
                    return None
                state = step.op.body.evaluate(state)
        if isinstance(step.op, Conditional):
            index = np.asarray(operands[0])
            number = int(not index) if index.dtype == np.bool_ else int(index)
            number = number if 0 <= number < len(step.op.branches) else len(step.op.branches) - 1
            branch = _as_module(step.op.branches[number])
            wrong = judge_kernels(branch, _arrays(operands[1 + number]), self.settings).wrong
            return None if wrong is None else replace(wrong, place=f"branch {number} of {step.name}")
        return None

    def _kernels(self, step: Instruction) -> tuple[str, ...]:
        settings = self.settings
        target = Compiler(HloSource(_single(step)), settings.target, settings.options).target
        try:
            lowering = (
                lower_for_cpu(step, target, direct_only=settings.options.precision == "highest")
                if isinstance(target, Target)
                else lower_for_gpu(step, target)
            )
        except OnnxlaError:  # a loop or a branch, which is no kernel
            return (step.op.opcode,)
        return tuple(dict.fromkeys(call.kernel.name for call in lowering.calls)) or (step.op.opcode,)


def _without_passes(settings: Settings) -> onnxla.CompileOptions:
    names = {p.name for p in pipeline_for(settings.target, settings.options).passes}
    return replace(settings.options, disabled_passes=tuple(sorted(names)), stop_after=None)


def _leaves(instruction: Instruction) -> Iterator[Instruction]:
    """The tensors in what an instruction gives."""
    if isinstance(instruction.type, TensorType):
        yield instruction
        return
    for index in range(len(instruction.type.elements)):
        yield from _leaves(Instruction(GetTupleElement(index), [instruction]))


def _value_of(type: Type, arrays: Iterator[Array]) -> Value:
    """The next arrays as a value of a type."""
    if isinstance(type, TupleType):
        return tuple(_value_of(element, arrays) for element in type.elements)
    return np.asarray(next(arrays))


def _arrays(value: Value) -> list[Array]:
    """The arrays in a value."""
    if isinstance(value, tuple):
        return [array for element in value for array in _arrays(element)]
    return [np.asarray(value)]


def _as_module(computation: Computation) -> Module:
    """A body or branch as a module: its parameters' tensors are the parameters, its results' tensors the results."""
    copies: dict[Instruction, Instruction] = {}
    parameters: list[Instruction] = []

    def parameter(type: Type, name: str) -> Instruction:
        if isinstance(type, TupleType):
            return Instruction(Tuple(), [parameter(element, name) for element in type.elements])
        made = Instruction(Parameter(len(parameters), type), name=f"{name}_{len(parameters)}")
        parameters.append(made)
        return made

    for old in computation.parameters:
        copies[old] = parameter(old.type, old.name or "state")
    for old in computation.instructions():
        if old in copies:
            continue
        operands = [copies[o] for o in old.operands]
        if isinstance(old.op, GetTupleElement) and isinstance(operands[0].op, Tuple):
            copies[old] = operands[0].operands[old.op.index]
        else:
            copies[old] = Instruction(old.op, operands, name=old.name, source=old.source)
    root = copies[computation.root]
    results = list(root.operands) if isinstance(root.op, Tuple) else list(_leaves(root))
    return Module(computation.name, Computation(computation.name, parameters, Instruction(Tuple(), results)))


def _single(step: Instruction) -> Module:
    """A module that has nothing but the tensors of one instruction's operands."""
    return _as_module(_alone(step))


def _alone(step: Instruction) -> Computation:
    parameters = [Instruction(Parameter(k, o.type), name=f"operand_{k}") for k, o in enumerate(step.operands)]
    return Computation("alone", parameters, Instruction(step.op, parameters, name=step.name, source=step.source))


def _is_rounding(step: Instruction, operands: Sequence[Value], ours: Value, theirs: Value) -> bool:
    """Whether the float64 evaluation of the instruction excuses the difference."""
    try:
        wide = widened(_single(step))
        arrays = [array for operand in operands for array in _arrays(operand)]
        arguments = [a.astype(p.tensor_type.element.dtype) for a, p in zip(arrays, wide.entry.parameters, strict=True)]
        with np.errstate(all="ignore"):
            exact = _arrays(wide.entry.evaluate(*arguments))
    except OnnxlaError:
        return False
    return all(is_rounding(*three) for three in zip(_arrays(ours), _arrays(theirs), exact, strict=True))
