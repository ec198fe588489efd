"""PTX text to instructions: the part of the language that NVRTC writes for onnxla's kernels.

What is not understood raises UnsupportedPtx, so a simulation never skips what it does not know.
"""

import re
from dataclasses import dataclass, field


class UnsupportedPtx(Exception):
    """The text has an instruction, a modifier or a directive that the simulator does not know."""


@dataclass(frozen=True)
class PtxInstruction:
    """`@guard opcode operands;`, where a guard may be negated."""

    opcode: str
    operands: tuple[str, ...]
    guard: str | None
    negated: bool
    text: str


@dataclass
class PtxKernel:
    """One `.entry`."""

    name: str
    parameters: tuple[str, ...]
    threads: int
    """What `__launch_bounds__` says."""
    registers: dict[str, str] = field(default_factory=dict)
    """Type of each register: `pred`, `b32`, `f32`, ..."""
    instructions: list[PtxInstruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    symbols: dict[str, int] = field(default_factory=dict)
    """Offset of each array in shared or in local memory."""
    shared_bytes: int = 0
    local_bytes: int = 0


_ENTRY = re.compile(r"\.visible\s+\.entry\s+(\w+)\s*\(([^)]*)\)([^{]*)\{", re.S)
_REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(%\w+)<(\d+)>")
_ARRAY = re.compile(r"\.(shared|local)\s+\.align\s+(\d+)\s+\.b8\s+(\w+)\[(\d+)\]")
_INSTRUCTION = re.compile(r"(?:@(!?)(%\w+)\s+)?([\w.]+)\s*(.*)", re.S)
_OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*")
_LABEL = re.compile(r"(\$\w+):\s*")
_IGNORED = (".pragma ", ".loc ", ".file ")


def parse_ptx(text: str) -> dict[str, PtxKernel]:
    """The kernels of a PTX module by name."""
    text = re.sub(r"//[^\n]*", "", text)
    if re.search(r"^\s*(\.visible )?\.(func|global|const)\b", text, re.M):
        raise UnsupportedPtx("functions and global variables")
    kernels = {}
    for match in _ENTRY.finditer(text):
        name, parameters, directives = match.groups()
        threads = re.search(r"\.maxntid\s+(\d+)", directives)
        names = tuple(p.split()[-1] for p in parameters.split(",") if p.strip())
        kernel = PtxKernel(name, names, int(threads[1]) if threads else 1024)
        end = text.index("\n}", match.end())
        for statement in text[match.end() : end].split(";"):
            _statement(kernel, statement.strip())
        kernels[name] = kernel
    return kernels


def _statement(kernel: PtxKernel, text: str) -> None:
    while label := _LABEL.match(text):
        kernel.labels[label[1]] = len(kernel.instructions)
        text = text[label.end() :].strip()
    if not text or text.startswith(_IGNORED):
        return
    if found := _REGISTERS.fullmatch(text):
        kind, name, count = found.groups()
        kernel.registers |= {f"{name}{k}": kind for k in range(int(count))} | {name: kind}
    elif text.startswith(".reg"):
        kind, names = re.fullmatch(r"\.reg\s+\.(\w+)\s+(.*)", text, re.S).groups()  # type: ignore[union-attr]
        kernel.registers |= {n.strip(): kind for n in names.split(",")}
    elif found := _ARRAY.fullmatch(text):
        space, alignment, name, size = found.groups()
        start = kernel.shared_bytes if space == "shared" else kernel.local_bytes
        start = -(-start // int(alignment)) * int(alignment)
        kernel.symbols[name] = start
        if space == "shared":
            kernel.shared_bytes = start + int(size)
        else:
            kernel.local_bytes = start + int(size)
    elif text.startswith(".") or text.startswith("{"):
        raise UnsupportedPtx(text)
    else:
        negated, guard, opcode, rest = _INSTRUCTION.fullmatch(text).groups()  # type: ignore[union-attr]
        operands = tuple(o.strip() for o in _OPERAND.findall(rest))
        kernel.instructions.append(PtxInstruction(opcode, operands, guard, negated == "!", text))
