"""The data of the page as one JSON document, and the long texts apart, which the page reads when they are asked for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnxla.codegen.choices import Decision, read_decisions, site_of
from onnxla.codegen.plan import Access, Launch, Slot, slots_of, walk_steps
from onnxla.hlo.module import Instruction, sources_of
from onnxla.hlo.ops.control_flow import Fusion
from onnxla.hlo.ops.structural import Constant
from onnxla.hlo.printer import print_computation, print_instruction, print_module
from onnxla.inside.inside import DECISIONS_STAGE, Inside
from onnxla.page.arrange import Picture, arrange
from onnxla.page.graph import Box, all_boxes, graph_of, type_text
from onnxla.page.memory_picture import memory_document
from onnxla.roofline.limits import Limits
from onnxla.runtime.profiler import Profile
from onnxla.runtime.program import Program

_WITH_WAYS = ("fusion", "dot", "convolution")
_ACCESS = {Access.READ: "reads", Access.WRITE: "writes", Access.SCRATCH: "scratch"}


@dataclass(frozen=True)
class Document:
    """`data` is small; `texts` maps keys that the data names to texts."""

    data: dict[str, Any]
    texts: dict[str, Any]


def document_of(
    inside: Inside,
    program: Program,
    title: str,
    facts: Sequence[tuple[str, str]],
    profile: Profile | None = None,
    limits: Limits | None = None,
) -> Document:
    """Everything that the page of a program shows."""
    group = graph_of(inside.module, [t.name for t in program.inputs + program.state], _output_names(program))
    boxes = list(all_boxes(group))
    symbols = sorted({s.kernel for s in program.steps if s.kernel}, key=_position)
    decisions = read_decisions(program.texts.get(DECISIONS_STAGE, ""))
    texts: dict[str, Any] = {
        "module": print_module(inside.module),
        "plan": str(inside.plan),
        "boxes": {
            str(box.number): _hlo(box.instruction) + _ways(box.instruction, decisions)
            for box in boxes
            if box.instruction is not None
        },
        "code": {
            symbol: list(map(list, inside.code[symbol].texts.items())) for symbol in symbols if symbol in inside.code
        },
    }
    data = {
        "title": title,
        "facts": [list(fact) for fact in facts],
        "notes": list(inside.notes),
        "boxes": [_box(box) for box in boxes],
        "closed": _picture(arrange(group, open_fusions=False)),
        "open": _picture(arrange(group, open_fusions=True)),
        "steps": _steps(inside, program, boxes, symbols, profile, limits),
        "kernels": [
            [symbol, [[k, v] for k, v in inside.code[symbol].resources.items()] if symbol in inside.code else []]
            for symbol in symbols
        ],
        "memory": memory_document(inside.plan),
        "seconds": None if profile is None else profile.seconds,
        "limits": None if limits is None else limits.json(),
    }
    return Document(data, texts)


def _output_names(program: Program) -> list[str]:
    return [t.name for t in program.outputs + program.state]


def _position(symbol: str) -> tuple[int, str]:
    """Symbols are numbered in the order of first use: `onnxla_12_dot`."""
    number = symbol.split("_")[1] if symbol.count("_") else ""
    return (int(number) if number.isdigit() else 0, symbol)


def _box(box: Box) -> dict[str, Any]:
    found: dict[str, Any] = {"c": box.category, "t": box.title, "s": box.subtitle}
    if box.inner:
        found["inner"] = 1
    if box.instruction is not None:
        found["name"] = box.instruction.name
        found["op"] = box.instruction.op.opcode
        if not box.inner:
            found["nodes"] = [[node.op_type, node.name] for node in sources_of(box.instruction)]
            found["weights"] = [
                [o.op.literal.name or o.name, type_text(o.type)]
                for o in dict.fromkeys(box.instruction.operands)
                if isinstance(o.op, Constant) and o.op.literal.array.size > 1
            ]
            found["ops"] = sorted(set(_opcodes(box.instruction)))
    return found


def _opcodes(instruction: Instruction) -> Iterator[str]:
    for computation in instruction.op.computations if isinstance(instruction.op, Fusion) else ():
        for inner in computation.instructions():
            yield inner.op.opcode


def _picture(picture: Picture) -> dict[str, Any]:
    return {
        "width": round(picture.width),
        "height": round(picture.height),
        "boxes": picture.boxes,
        "lines": picture.lines,
        "titles": picture.titles,
    }


def _hlo(instruction: Instruction) -> str:
    """The instruction, and what is fused into it."""
    lines = [print_instruction(instruction)]
    if isinstance(instruction.op, Fusion):
        lines.append(print_computation(instruction.op.calls))
    return "\n\n".join(lines)


def _ways(instruction: Instruction, decisions: Mapping[str, Decision]) -> str:
    """The ways there were to compute it, as comments."""
    decision = decisions.get(site_of(instruction)) if decisions and instruction.op.opcode in _WITH_WAYS else None
    if decision is None:
        return ""
    lines = ["", "", "// ways to compute it, microseconds predicted for a stated machine and measured on this one"]
    for c in decision.candidates:
        measured = "-" if c.measured is None else f"{c.measured * 1e6:.1f}"
        mark = " <- taken" if c.name == decision.chosen else ""
        lines.append(f"// {c.name:<36} {c.predicted * 1e6:>10.1f} {measured:>10}{mark}")
    return "\n".join(lines)


def _steps(
    inside: Inside,
    program: Program,
    boxes: Sequence[Box],
    symbols: Sequence[str],
    profile: Profile | None,
    limits: Limits | None,
) -> list[dict[str, Any]]:
    """The steps of the program; their boxes and buffers as far as the plan has the same steps."""
    kernels = {symbol: k for k, symbol in enumerate(symbols)}
    numbers = {box.instruction: box.number for box in boxes if box.instruction is not None and not box.inner}
    rows = [None] * len(program.steps) if profile is None else profile.rows
    planned = list(walk_steps(inside.plan.steps))
    same = [inside.symbols[p.kernel] if isinstance(p, Launch) else "" for p in planned] == [
        s.kernel for s in program.steps
    ]
    found = []
    for k, (step, row) in enumerate(zip(program.steps, rows, strict=True)):
        entry: dict[str, Any] = {
            "name": step.name,
            "op": step.op,
            "node": step.source,
            "also": list(step.also),
            "bytes": step.bytes,
            "flops": step.flops,
            "depth": step.depth,
            "tasks": step.tasks,
            "kernel": kernels.get(step.kernel, -1),
            "box": -1,
        }
        if same:
            instruction = inside.plan.instructions.get(planned[k].name.removesuffix(":copy"))
            entry["box"] = -1 if instruction is None else numbers.get(instruction, -1)
            entry["buffers"] = [_buffer(slot, access) for slot, access in _accesses(planned[k])]
        if row is not None:
            entry |= {"seconds": row.seconds, "rounds": row.rounds}
        if limits is not None and (step.kernel or step.op == "copy"):
            entry |= {"floor": limits.seconds(step), "bound": limits.bound(step)}
        found.append(entry)
    return found


def _accesses(step: Any) -> list[tuple[Slot, str]]:
    if isinstance(step, Launch):
        return [(slot, _ACCESS[access]) for slot, access in zip(step.arguments, step.access, strict=True)]
    return [(slot, "uses") for slot in slots_of(step)]


def _buffer(slot: Slot, access: str) -> list[Any]:
    return [access, slot.value, slot.buffer.space.value, slot.buffer.place, slot.buffer.bytes]
