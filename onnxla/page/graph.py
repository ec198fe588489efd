"""What the page draws of a module: a box for each instruction that does something, lines where values go.

Parameters and results are boxes, constants are not. What costs nothing (reshapes, tuples, their elements) is part of
the line through it. A fusion, loop or branch has the boxes of its computations inside.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from onnxla.errors import SourceNode
from onnxla.hlo.module import Computation, Instruction, Module, sources_of
from onnxla.hlo.ops.control_flow import Conditional, Fusion, While
from onnxla.hlo.ops.elementwise import BitcastConvert
from onnxla.hlo.ops.shape import Broadcast, Reshape
from onnxla.hlo.ops.structural import Constant, GetTupleElement, Iota, Parameter, Tuple
from onnxla.hlo.types import Type

_LAYOUT = re.compile(r"(?<=\])\{[\d,]*\}")
MOST_INSIDE = 60
"""Boxes of a fusion above which its inside is not drawn; its text has it all the same."""

_CONTRACTIONS = frozenset({"dot", "convolution"})
_REDUCTIONS = frozenset(
    {"reduce", "reduce-window", "sort", "select-and-scatter", "cholesky", "triangular-solve", "fft"}
)
_MOVEMENTS = frozenset(
    """
    bitcast-convert broadcast concatenate convert copy dynamic-slice dynamic-update-slice gather get-tuple-element iota
    pad reshape reverse scatter slice transpose tuple
    """.split()
)
_CONTROL = frozenset({"while", "conditional", "call"})


@dataclass(eq=False)
class Group:
    """Boxes with a common border and the lines between them."""

    title: str
    boxes: list["Box"] = field(default_factory=list)
    lines: list[tuple["Box", "Box"]] = field(default_factory=list)


@dataclass(eq=False)
class Box:
    """One box. `category` decides its colour: input, output, contraction, reduction, elementwise, movement, control."""

    number: int
    category: str
    title: str
    subtitle: str
    instruction: Instruction | None = None
    groups: list[Group] = field(default_factory=list)
    inner: bool = False
    """Whether it stands inside a fusion, and is no step of its own."""

    @property
    def is_control(self) -> bool:
        return self.category == "control"


def graph_of(module: Module, inputs: Sequence[str], outputs: Sequence[str]) -> Group:
    """The whole module; inputs and outputs under the names that the user knows them by, in order."""
    group = _Reader(inputs).module(module, outputs)
    _tell_apart(group)
    return group


def all_boxes(group: Group) -> Iterator[Box]:
    """Every box of a group and inside its boxes."""
    for box in group.boxes:
        yield box
        for inner in box.groups:
            yield from all_boxes(inner)


def category_of(instruction: Instruction) -> str:
    """The kind of work that an instruction is, with all that is fused into it."""
    opcodes = set(_opcodes(instruction))
    if opcodes & _CONTROL:
        return "control"
    if opcodes & _CONTRACTIONS:
        return "contraction"
    if opcodes & _REDUCTIONS:
        return "reduction"
    return "movement" if opcodes <= _MOVEMENTS else "elementwise"


def type_text(type: Type) -> str:
    """`f32[1,64,56,56]`: the layout is left out, which is always the dense one."""
    return _LAYOUT.sub("", str(type))


def title_of(instruction: Instruction) -> str:
    """The operators of the model that it computes, in order; its operation where it comes from none."""
    nodes = _nodes(instruction)
    kinds = list(dict.fromkeys(node.op_type for node in nodes if node.op_type))
    if not kinds:
        return instruction.op.opcode
    return " · ".join(kinds[:4]) + (f" +{len(kinds) - 4}" if len(kinds) > 4 else "")


def _nodes(instruction: Instruction) -> list[SourceNode]:
    """The nodes of a fusion in the order of its work, or of another instruction."""
    fused = instruction.op.calls.instructions() if isinstance(instruction.op, Fusion) else []
    working = [i for i in fused if not isinstance(i.op, Parameter | Constant | Broadcast | Iota)]
    own = [] if instruction.source is None else [instruction.source]
    return list(dict.fromkeys([s for inner in working for s in sources_of(inner)] + own))


def _hero(instruction: Instruction) -> str:
    """The operation that counts in an instruction."""
    opcodes = list(_opcodes(instruction))
    for group in (_CONTROL, _CONTRACTIONS, _REDUCTIONS):
        if found := [opcode for opcode in opcodes if opcode in group]:
            return found[0]
    working = [opcode for opcode in opcodes if opcode not in _MOVEMENTS] or [o for o in opcodes if o != "tuple"]
    return working[-1] if working else instruction.op.opcode


def _tell_apart(group: Group) -> None:
    """Boxes that come from one node alone, and are not alone in that, say what they do of it: `LSTM: dot`."""
    alike: dict[SourceNode, list[Box]] = {}
    for box in all_boxes(group):
        if box.instruction is not None and not box.inner and len(nodes := _nodes(box.instruction)) == 1:
            alike.setdefault(nodes[0], []).append(box)
    for boxes in alike.values():
        if len(boxes) > 1:
            for box in boxes:
                if box.instruction is not None:
                    box.title = f"{box.title}: {_hero(box.instruction)}"


def _opcodes(instruction: Instruction) -> Iterator[str]:
    if not isinstance(instruction.op, Fusion):
        yield instruction.op.opcode
        return
    for inner in instruction.op.calls.instructions():
        if not isinstance(inner.op, Parameter | Constant):
            yield from _opcodes(inner)


class _Reader:
    def __init__(self, inputs: Sequence[str]) -> None:
        self.inputs = inputs
        self.count = 0

    def box(
        self, category: str, title: str, subtitle: str, instruction: Instruction | None, inner: bool = False
    ) -> Box:
        self.count += 1
        return Box(self.count - 1, category, title, subtitle, instruction, inner=inner)

    def module(self, module: Module, outputs: Sequence[str]) -> Group:
        group, origins = self.computation(module.entry, "", inner=False, is_entry=True)
        root = module.entry.root
        results = root.operands if isinstance(root.op, Tuple) else (root,)
        for number, result in enumerate(results):
            name = outputs[number] if number < len(outputs) else f"output {number}"
            box = self.box("output", name, type_text(result.type), None)
            group.boxes.append(box)
            group.lines += [(origin, box) for origin in origins[result]]
        return group

    def computation(
        self, computation: Computation, title: str, inner: bool, is_entry: bool = False
    ) -> tuple[Group, dict[Instruction, list[Box]]]:
        """Its boxes, and for each instruction the boxes that its value comes from."""
        group = Group(title)
        origins: dict[Instruction, list[Box]] = {}
        for instruction in computation.instructions():
            read = list(dict.fromkeys(box for o in instruction.operands for box in origins[o]))
            op = instruction.op
            if isinstance(op, Parameter) and is_entry:
                name = self.inputs[op.number] if op.number < len(self.inputs) else f"input {op.number}"
                origins[instruction] = [self.box("input", name, type_text(instruction.type), instruction)]
                group.boxes += origins[instruction]
            elif isinstance(op, GetTupleElement) and isinstance(instruction.operands[0].op, Tuple):
                origins[instruction] = origins[instruction.operands[0].operands[op.index]]
            elif isinstance(op, Parameter | Constant) or _is_free(instruction, inner):
                origins[instruction] = read
            else:
                box = self.working(instruction, inner)
                group.boxes.append(box)
                group.lines += [(origin, box) for origin in read]
                origins[instruction] = [box]
        return group, origins

    def working(self, instruction: Instruction, inner: bool) -> Box:
        op = instruction.op
        title = op.opcode if inner else title_of(instruction)
        box = self.box(category_of(instruction), title, type_text(instruction.type), instruction, inner)
        for label, computation in _inside(instruction):
            fused = isinstance(op, Fusion)
            group, _ = self.computation(computation, label, inner=inner or fused)
            if not fused or len(group.boxes) <= MOST_INSIDE:
                box.groups.append(group)
        return box


def _inside(instruction: Instruction) -> Iterable[tuple[str, Computation]]:
    """The computations that are drawn inside an instruction, and their titles."""
    op = instruction.op
    if isinstance(op, Fusion):
        return [("", op.calls)]
    if isinstance(op, While):
        return [("condition", op.condition), ("body", op.body)]
    if isinstance(op, Conditional):
        return [(f"case {k}", branch) for k, branch in enumerate(op.branches)]
    return []


def _is_free(instruction: Instruction, inner: bool) -> bool:
    op = instruction.op
    if isinstance(op, BitcastConvert):
        return instruction.tensor_type.bytes == instruction.operands[0].tensor_type.bytes
    return isinstance(op, Tuple | GetTupleElement | Reshape) or (inner and isinstance(op, Broadcast))
