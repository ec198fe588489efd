"""Names from debug information: `loc("jit(f)/add"(#loc3))`, and aliases that stand at the end of the text."""

import re

from onnxla.frontends.hlo.syntax import Operation, Program, Written
from onnxla.hlo.attributes import unquote

_NAMED = re.compile(r'(?a)(?:callsite\(|fused(?:<[^>]*>)?\[)?\s*("(?:[^"\\\n]|\\.)*+")(\s*:\s*\d)?')
_MOST_STEPS = 8


def named_location(text: str, program: Program) -> str:
    """The name in a location, followed through aliases; empty for a place in a file, and for none."""
    for _ in range(_MOST_STEPS):
        text = text.strip()
        if text.startswith("#"):
            alias = program.aliases.get(text)
            if not isinstance(alias, Written):
                return ""
            text = alias.text.removeprefix("loc(").removesuffix(")") if alias.text.startswith("loc(") else alias.text
            continue
        found = _NAMED.match(text)
        return unquote(found[1]) if found and not found[2] else ""
    return ""


def name_in(operation: Operation, program: Program) -> str:
    """What the program's author calls an operation, else its first result."""
    name = named_location(operation.location, program) if operation.location else ""
    return name or (f"%{operation.results[0].removesuffix('#0')}" if operation.results else operation.name)
