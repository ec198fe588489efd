"""A module as a graph in Graphviz's language: `dot -Tsvg` draws it.

Each computation is a box, its callers point at it with a dashed line. The scalar computations inside reduce, sort and
the like stand in the label of their instruction instead.
"""

from collections.abc import Iterator

from onnxla.hlo.literal import Literal
from onnxla.hlo.module import Computation, Instruction, Module
from onnxla.hlo.ops.control_flow import Call, Conditional, Fusion, While
from onnxla.hlo.ops.structural import Constant, Parameter

_COLORS = {
    "parameter": "#fff2cc",
    "constant": "#eeeeee",
    "fusion": "#d5e8d4",
    "dot": "#dae8fc",
    "convolution": "#dae8fc",
}
_LONGEST = 60


def module_to_dot(module: Module) -> str:
    """The whole module. Equal modules give equal text; every name is escaped."""
    drawn = _drawn(module)
    computations = [c for c in module.computations() if c is module.entry or c in drawn]
    numbers = {c: k for k, c in enumerate(computations)}
    nodes = {i: f"c{numbers[c]}_{k}" for c in computations for k, i in enumerate(c.instructions())}
    lines = ["digraph module {", '  node [shape=box, style=filled, fontname="monospace", fontsize=10];']
    for computation in computations:
        lines += _cluster(computation, numbers[computation], nodes)
    for instruction, node in nodes.items():
        for called in instruction.op.computations:
            if called in numbers:
                lines.append(f"  {nodes[called.root]} -> {node} [style=dashed, constraint=false];")
    return "\n".join([*lines, "}"]) + "\n"


def _drawn(module: Module) -> set[Computation]:
    """Computations that get a box of their own: bodies of fusions, loops, branches and calls."""
    return {
        called
        for computation in module.computations()
        for i in computation.instructions()
        if isinstance(i.op, (Call, Conditional, Fusion, While))
        for called in i.op.computations
    }


def _cluster(computation: Computation, number: int, nodes: dict[Instruction, str]) -> Iterator[str]:
    yield f"  subgraph cluster_{number} {{"
    yield f"    label={_quoted(computation.name)};"
    for instruction in computation.instructions():
        color = _COLORS.get(instruction.op.opcode, "#ffffff")
        width = 2 if instruction is computation.root else 1
        yield f'    {nodes[instruction]} [label={_label(instruction)}, fillcolor="{color}", penwidth={width}];'
    for instruction in computation.instructions():
        for operand in instruction.operands:
            yield f"    {nodes[operand]} -> {nodes[instruction]};"
    yield "  }"


def _label(instruction: Instruction) -> str:
    op = instruction.op
    title = op.opcode
    if isinstance(op, Parameter):
        title = f"parameter {op.number}"
    elif isinstance(op, Constant):
        title = _constant(op.literal)
    elif op.computations:
        title = f"{op.opcode} {', '.join(c.name for c in op.computations)}"
    lines = [title, str(instruction.type)]
    if instruction.source is not None:
        lines.append(f"{instruction.source.op_type} {instruction.source.name}".strip())
    return _quoted(*lines)


def _constant(literal: Literal) -> str:
    return f"constant {literal.array.item()}" if literal.array.size == 1 else f"constant {literal.name}".strip()


def _quoted(*lines: str) -> str:
    """A string of Graphviz, one line under the other."""
    cut = [line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…" for line in lines]
    safe = ["".join(c if c.isprintable() else " " for c in line) for line in cut]
    return '"' + "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in safe) + '"'
